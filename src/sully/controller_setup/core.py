"""Controllers for objects of any kind: namespaces, garbage collection, quota, roles."""

from __future__ import annotations

from functools import partial
from typing import Any

from sully.client.discovery.resources import APIResource
from sully.client.informers.informer import Informer
from sully.client.transport import Kind
from sully.controller_context import ControllerContext
from sully.controllers.aggregation import CLUSTER_ROLES, AggregationController
from sully.controllers.framework.customkinds import DEFINITIONS, listed_kinds
from sully.controllers.framework.kinds import NAMESPACES, SERVICE_ACCOUNTS, PartialObjectMetadata
from sully.controllers.framework.manager import Manager
from sully.controllers.garbagecollection import controller as garbagecollection
from sully.controllers.garbagecollection.graph import Graph
from sully.controllers.garbagecollection.owners import Kinds, collected_kinds
from sully.controllers.namespaces.controller import (
    BACKOFF,
    Content,
    NamespacesController,
    namespaced_kinds,
)
from sully.controllers.resourcequota.controller import QUOTAS, ResourceQuotaController
from sully.controllers.resourcequota.usage import UsageCalculator
from sully.controllers.rootca import CONFIG_MAPS, PUBLISHED, RootCaController
from sully.controllers.serviceaccounts import ACCOUNTS, ServiceAccountsController
from sully.domain.workloads.ownership import Owned, shows_ownership
from sully.views.kinds import (
    CLAIMS,
    CLASSES,
)


def add_aggregation(context: ControllerContext) -> None:
    context.manager.add(
        AggregationController(
            roles=context.manager.informer(CLUSTER_ROLES),
            transport=context.config.transport(AggregationController.name),
        )
    )


def add_serviceaccounts(context: ControllerContext) -> None:
    context.manager.add(
        ServiceAccountsController(
            namespaces=context.manager.informer(NAMESPACES),
            accounts=context.manager.informer(SERVICE_ACCOUNTS, ACCOUNTS),
            transport=context.config.transport(ServiceAccountsController.name),
        )
    )


def add_namespaces(context: ControllerContext) -> None:
    access = context.config.transport(NamespacesController.name)
    content = Content(access, namespaced_kinds(context.config.served))
    if context.config.serves(DEFINITIONS):
        # Listed when they are needed: the role of the controller does not allow a watch.
        served = context.config.served
        content.custom = partial(listed_kinds, access, served, PartialObjectMetadata)
    controller = NamespacesController(
        namespaces=context.manager.informer(NAMESPACES),
        content=content,
        transport=access,
        clock=context.clock,
    )
    context.manager.add(controller, backoff=BACKOFF)


def add_rootca(context: ControllerContext) -> None:
    if not (context.config.certificate and context.config.compat.publishes_root_ca):
        return
    context.manager.add(
        RootCaController(
            namespaces=context.manager.informer(NAMESPACES),
            maps=context.manager.informer(CONFIG_MAPS, PUBLISHED),
            transport=context.config.transport(RootCaController.name),
            certificate=context.config.certificate,
        )
    )


def add_garbagecollection(context: ControllerContext) -> None:
    graph, kinds = Graph(), collected_kinds(context.config.served)
    shared = _shared(context.manager)
    for kind in kinds.all:
        objects = shared.get(kind)
        graph.follow(kind, context.manager.informer(kind) if objects is None else objects)
    env = context.env(garbagecollection.GarbageCollector.name, garbagecollection.COMPONENT)
    collector = garbagecollection.GarbageCollector(
        graph=graph, kinds=kinds, transport=env.transport, recorder=env.recorder
    )
    context.manager.add(collector, workers=garbagecollection.WORKERS)
    if context.custom_kinds is not None:
        context.custom_kinds.on_change(partial(_collect, context.manager, graph, kinds))


def _shared(manager: Manager) -> dict[Kind[Owned], Informer[Any]]:
    """Return the informers of other controllers that show owners and finalizers."""
    return {
        informer.kind.read_as(Owned): informer
        for informer in manager.complete_informers()
        if shows_ownership(informer.kind.type)
    }


def _collect(
    manager: Manager,
    graph: Graph,
    kinds: Kinds,
    old: APIResource | None,
    new: APIResource | None,
) -> None:
    """Watch the objects of a kind that came, or no longer those of one that went."""
    if old is not None:
        kind = old.as_kind(Owned)
        kinds.remove(kind)
        manager.end(kind)
        graph.forget(kind)
    if new is not None:
        kind = new.as_kind(Owned)
        kinds.add(kind, new.versions)
        graph.follow(kind, manager.start(kind))


def add_resourcequota(context: ControllerContext) -> None:
    access = context.config.transport(ResourceQuotaController.name)
    kinds = [kind for kind in collected_kinds(context.config.served).all if kind.namespaced]
    classes = context.manager.informer(CLASSES)
    usage = UsageCalculator(access, kinds, classes, context.clock)
    if context.custom_kinds is not None:
        usage.custom = partial(context.custom_kinds.all, PartialObjectMetadata)
    context.manager.add(
        ResourceQuotaController(
            quotas=context.manager.informer(QUOTAS),
            pods=context.pods.informer,
            claims=context.manager.informer(CLAIMS),
            usage=usage,
            transport=access,
            clock=context.clock,
        ),
        workers=5,
    )
