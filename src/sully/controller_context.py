"""What controllers are constructed from, and what they share.

controller_setup passes a `ControllerContext` to each function that adds a controller. The API
server may be in this process or not: app.py creates the `ControllerConfig` of an embedded control
plane, remote.py that of controllers in a process of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import DeviceTaintRule
from sully.client.discovery.resources import APIResource
from sully.client.transport import Key, Kind, Transport
from sully.controllers.evaluation import BACKOFF, WORKERS, SelectorEvaluation
from sully.controllers.framework.controller import ControllerEnv
from sully.controllers.framework.customkinds import DEFINITIONS, CustomKinds
from sully.controllers.framework.manager import Manager
from sully.controllers.history.retention import DEFAULT_RETENTION
from sully.controllers.notifications.metrics import NotificationMetrics
from sully.controllers.notifications.sender import Notifier
from sully.controllers.placement.settings import PlacementSettings
from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
from sully.controllers.workloads.kinds import Pods
from sully.domain.devicepolicies.sources.prometheus_servers import PrometheusServer
from sully.domain.notifications.settings import Receiver
from sully.domain.scheduling.objects import SCHEDULERS
from sully.domain.simulated.clusters import Members
from sully.evictor.settings import EvictionOptions, EvictionSettings, eviction_options
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views.devices.changes import Features, features
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLASSES, EVICTION_RECORDS, PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.kinds import PODS

__all__ = ["DEFAULT_RETENTION", "LEASE", "MANAGER", "ControllerConfig", "ControllerContext"]

MANAGER = "kube-controller-manager"
"""The user of the shared informers; it may read everything and write almost nothing."""
LEASE = Key("kube-system", "sully-controllers")
"""The lease of a process that runs all controllers."""


class ControllerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The control plane that controllers run against."""

    transport: Callable[[str], Transport]
    """A controller's own client, by its name, so that audit and RBAC distinguish controllers."""
    served: tuple[APIResource, ...]
    """The resources of the server."""
    gates: Gates
    ids: Ids
    certificate: str = ""
    """The CA certificate to publish in every namespace; empty publishes none."""
    compat: Compat = Compat.SULLY
    eviction: EvictionSettings = msgspec.field(default_factory=EvictionSettings)
    placement: PlacementSettings = msgspec.field(default_factory=PlacementSettings)
    history: timedelta = DEFAULT_RETENTION
    """How long records of evictions and deleted rules are kept."""
    simulated_nodes: SimulatedNodeSettings | None = None
    """Simulated nodes; None: none, and those of an earlier start are kept."""
    simulated_clusters: Members | None = None
    """Simulated managed clusters; None: none, and those of an earlier start are kept."""
    agent: Callable[[str], Transport] | None = None
    """The client of a managed cluster's agent, by cluster name; for simulated clusters."""
    serving_since: datetime | None = None
    """When the server started, if it runs in this process."""
    chosen: frozenset[str] | None = None
    """Which controllers run, by their names in controller_setup; None: all."""
    embedded: bool = False
    """Whether the API server is in this process, so that it has the same version and `compat`."""
    own_server: bool = True
    """Whether the API server is Sully's: others set no times of cluster taints, and accept a device
    in two claims."""
    describes_rules: Callable[[Callable[[DeviceTaintRule], str]], None] | None = None
    """Gets what describes a rule that is about to be written; None if the server is elsewhere."""
    receivers: tuple[Receiver, ...] = ()
    """Who is notified of taints, evictions and storms."""
    prometheus_servers: tuple[PrometheusServer, ...] = ()
    """Which servers of queries get credentials."""
    otlp_endpoint: str = ""
    """Where traces of evictions are sent; empty: nowhere."""
    schedulers: frozenset[str] = SCHEDULERS
    """The values of `schedulerName` to schedule; fewer where another scheduler runs."""

    def runs(self, name: str) -> bool:
        """Report whether a controller is one of those that run."""
        return self.chosen is None or name in self.chosen

    def serves(self, kind: Kind[Any]) -> bool:
        """Report whether the server has a resource; without it an informer would never sync."""
        return any(
            (resource.group, resource.plural) == (kind.group, kind.plural)
            and kind.version in resource.versions
            for resource in self.served
        )


class ControllerContext:
    """One run of the controllers: the manager, and the caches and views that they share."""

    def __init__(self, config: ControllerConfig, clock: Clock, metrics: Metrics) -> None:
        self.config = config
        self.clock = clock
        self.metrics = metrics
        self.manager = Manager(config.transport(MANAGER), clock=clock, metrics=metrics)

    def env(self, name: str, component: str = "") -> ControllerEnv:
        """Return a controller's own client and event recorder, and the clock."""
        return self.manager.env(self.config.transport(name), component or name)

    @cached_property
    def notifier(self) -> Notifier | None:
        """What sends notifications; None if notifications are disabled."""
        if not self.config.receivers:
            return None
        notifier = Notifier(self.config.receivers, NotificationMetrics(self.metrics), self.clock)
        self.manager.add_runnable(notifier.run)
        return notifier

    @cached_property
    def features(self) -> Features:
        """What changes devices here."""
        enabled = features(self.config.gates, self.config.compat)
        # Elsewhere kube-scheduler honors the taints of drivers, whatever rules exist.
        return replace(enabled, suppression=enabled.suppression and self.config.own_server)

    @cached_property
    def inventory(self) -> Inventory:
        """The devices with their effective taints."""
        return self._inventory(self.features)

    @cached_property
    def scheduling_inventory(self) -> Inventory:
        """The devices as the scheduler sees them; in Kubernetes it evaluates rules differently."""
        if self.config.compat.rules_need_selector:
            return self.inventory
        return self._inventory(replace(self.features, absent_selects_all=True))

    @cached_property
    def eviction_options(self) -> EvictionOptions:
        """The options of the eviction controller, and of others that evict pods."""
        config = self.config
        options = eviction_options(
            config.eviction,
            config.gates,
            compat=config.compat,
            records=config.serves(EVICTION_RECORDS),
            # Without the history controller there may be no permission to read its records.
            totals=config.serves(TAINT_RECORDS) and config.runs("history"),
            transactions=config.embedded,
        )
        return replace(options, alone=config.own_server)

    @cached_property
    def evaluator(self) -> Evaluator:
        """The evaluator of expensive expressions."""
        return Evaluator(self.clock)

    def _inventory(self, enabled: Features) -> Inventory:
        inventory = Inventory(
            slices=self.manager.informer(SLICES),
            classes=self.manager.informer(CLASSES),
            # Kubernetes may have them disabled.
            rules=self.manager.informer(RULES) if self.config.serves(RULES) else None,
            # Kubernetes has no such kind.
            patches=self.manager.informer(PATCHES) if self.config.serves(PATCHES) else None,
            features=enabled,
            defer=True,
        )
        evaluation = SelectorEvaluation(
            inventory=inventory, evaluator=self.evaluator, clock=self.clock
        )
        self.manager.add(evaluation, workers=WORKERS, backoff=BACKOFF)
        return inventory

    @cached_property
    def custom_kinds(self) -> CustomKinds | None:
        """The kinds of CustomResourceDefinitions; None if the server has no such kind."""
        if not self.config.serves(DEFINITIONS):
            return None
        return CustomKinds(self.manager.informer(DEFINITIONS), self.config.served)

    @cached_property
    def pods(self) -> Pods:
        """The pods, indexed by their controllers."""
        return Pods(self.manager.informer(PODS))
