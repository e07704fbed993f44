"""Fills a control plane with the demo, as a user with kubectl would.

Existing objects are not changed, so that another start changes nothing that people did. It
comes in stages, each once the pods of those before run: a machine that fails before anybody uses it
shows nothing, and who is where would depend on who came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from importlib.resources import files
from typing import Any

import yaml

from sully.client.discovery.resources import APIResource
from sully.client.objects import key_of
from sully.client.options import WatchOptions, WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.machinery.errors import AlreadyExists, ApiError, NotFound
from sully.runtime.log import get_logger

log = get_logger("demo")

Obj = dict[str, Any]
STAGES = (("fleet.yaml", "teams.yaml"), ("training.yaml",), ("trouble.yaml",))
HOPELESS = frozenset((Key("team-lab", "big-model"),))
"""What never runs, on purpose."""
_OWN = WriteOptions(field_manager="sully-demo")
_OURS = WatchOptions(label_selector="sully.dev/demo=true")
DEPLOYMENTS: Kind[Obj] = Kind("apps", "v1", "deployments", "Deployment", dict)


class Filler:
    """Creates the objects of the demo."""

    def __init__(self, transport: Transport, served: Iterable[APIResource]) -> None:
        self._transport = transport
        self._kinds = _by_kind(served)

    async def fill(self) -> None:
        """Create what is missing, each stage as soon as everybody works who came before."""
        before: list[Obj] = []
        for stage in STAGES:
            wanted = list(objects(*stage))
            if before and not await self._is_there(wanted[0]):
                await self._everybody_works(before)
            for obj in wanted:
                await self._create(obj)
            before += wanted
        log.info("the demo is complete")

    async def _create(self, obj: Obj) -> None:
        kind = self._kinds.get((obj["apiVersion"], obj["kind"]))
        if kind is None:
            # Switched off by a gate; the rest is worth seeing nevertheless.
            log.info(
                "kind is not served, skipping object",
                kind=obj["kind"],
                name=obj["metadata"]["name"],
            )
            return
        try:
            await self._transport.create(kind, obj, options=_OWN)
        except AlreadyExists:
            return
        except ApiError as error:
            log.warning("refused", kind=obj["kind"], name=str(key_of(obj)), error=str(error))

    async def _is_there(self, obj: Obj) -> bool:
        kind = self._kinds.get((obj["apiVersion"], obj["kind"]))
        try:
            if kind is not None:
                await self._transport.get(kind, key_of(obj))
        except NotFound:
            return False
        return True

    async def _everybody_works(self, created: Iterable[Obj]) -> None:
        """Wait until each deployment has the pods that it wants."""
        wanted = {key_of(obj) for obj in created if obj["kind"] == "Deployment"}
        waiting = wanted - HOPELESS
        while waiting:
            async with aclosing(self._transport.watch(DEPLOYMENTS, options=_OURS)) as events:
                async for event in events:
                    if event.object is not None and _works(event.object):
                        waiting.discard(key_of(event.object))
                    if not waiting:
                        return


def objects(*names: str) -> Iterator[Obj]:
    """Go through the objects of manifests, in order."""
    for name in names:
        text = (files("sully.demo") / name).read_text("utf-8")
        yield from filter(None, yaml.safe_load_all(text))


def _by_kind(served: Iterable[APIResource]) -> Mapping[tuple[str, str], Kind[Obj]]:
    found = {}
    for resource in served:
        for version in resource.versions:
            kind: Kind[Obj] = Kind(
                resource.group,
                version,
                resource.plural,
                resource.kind,
                dict,
                namespaced=resource.namespaced,
            )
            found[kind.api_version, resource.kind] = kind
    return found


def _works(deployment: Obj) -> bool:
    wanted = deployment["spec"].get("replicas", 1)
    available = (deployment.get("status") or {}).get("availableReplicas", 0)
    return bool(available >= wanted)
