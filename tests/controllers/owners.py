"""Config maps that own each other, and the collector."""

from __future__ import annotations

from typing import Any

from controllers.world import CONFIG_MAPS, Obj, World
from sully.client.discovery.resources import of_scheme
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Kind
from sully.controllers.framework.manager import Manager
from sully.controllers.garbagecollection.controller import COMPONENT, GarbageCollector
from sully.controllers.garbagecollection.graph import Graph
from sully.controllers.garbagecollection.owners import collected_kinds

SECRETS: Kind[Obj] = Kind("", "v1", "secrets", "Secret", dict)
ORPHAN = DeleteOptions(propagation_policy="Orphan")
FOREGROUND = DeleteOptions(propagation_policy="Foreground")
BACKGROUND = DeleteOptions(propagation_policy="Background")


def collector(world: World, manager: Manager, without: str = "") -> GarbageCollector:
    graph, kinds = Graph(), collected_kinds(of_scheme(world.api.scheme))
    for kind in kinds.all:
        if kind.plural != without:
            graph.follow(kind, manager.informer(kind))
    transport, recorder, _ = manager.env(world.transport(GarbageCollector.name), COMPONENT)
    return GarbageCollector(graph=graph, kinds=kinds, transport=transport, recorder=recorder)


def owned_by(*owners: Obj, block: bool = False) -> Obj:
    refs = [
        {
            "apiVersion": owner.get("apiVersion", "v1"),
            "kind": owner.get("kind", "ConfigMap"),
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    return {"ownerReferences": refs}


async def config_map(
    world: World, name: str, *owners: Obj, namespace: str = "a", **more: Any
) -> Obj:
    block = more.pop("block", False)
    return await world.create(
        CONFIG_MAPS, namespace, name, metadata=owned_by(*owners, block=block) | more
    )


async def names(world: World) -> list[str]:
    return [key.removeprefix("a/") for key in await world.names(CONFIG_MAPS)]


async def delete(world: World, name: str, options: DeleteOptions = BACKGROUND) -> None:
    await world.admin.delete(CONFIG_MAPS, Key("a", name), options)


async def get(world: World, name: str) -> Obj:
    return await world.admin.get(CONFIG_MAPS, Key("a", name))
