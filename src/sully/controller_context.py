"""What every controller is put together from, and what they share.

controlling.py hands a `Parts` to each function that adds a controller. Nothing here knows whether
the API is in this process or far away: that is decided by whoever makes the `Given`, app.py for an
embedded control plane and remote.py for controllers in a process of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from sully.client.discovery.resources import Served
from sully.client.events import EventRecorder
from sully.client.transport import Key, Kind, Transport
from sully.controllers.evaluation import BACKOFF, WORKERS, SelectorEvaluation
from sully.controllers.history.retention import DEFAULT as HISTORY_KEPT
from sully.controllers.manager import Manager
from sully.controllers.placement.settings import PlacementSettings
from sully.controllers.simulatednodes.wiring import HollowSettings
from sully.controllers.workloads import PODS, Pods
from sully.domain.scheduling.objects import SCHEDULERS
from sully.domain.simulated.clusters import Members
from sully.evictor.settings import EvictionSettings
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views.devices.changes import Features, features
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLASSES, PATCHES, RULES, SLICES

__all__ = ["HISTORY_KEPT", "LEASE", "MANAGER", "Given", "Parts"]

MANAGER = "kube-controller-manager"
"""Whose informers all controllers share; it may read everything and write next to nothing."""
LEASE = Key("kube-system", "sully-controllers")
"""What those hold who run all controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What controllers need to know of their control plane."""

    transport: Callable[[str], Transport]
    """A controller's own access, by its name, so that the server can tell who did what."""
    served: tuple[Served, ...]
    """What the server offers."""
    gates: Gates
    ids: Ids
    certificate: str = ""
    """Of the authority, to be published in every namespace; empty publishes none."""
    strict: bool = False
    """As the reference does, nothing of ours."""
    eviction: EvictionSettings = field(default_factory=EvictionSettings)
    """What flags say about the pace of evictions."""
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    """What flags say about clusters that leave placements."""
    history: timedelta = HISTORY_KEPT
    """How long records of evictions and lifted rules are kept."""
    hollow: HollowSettings | None = None
    """Machines that exist only in the API; None: none, and those of a former start are left."""
    hollow_clusters: Members | None = None
    """Members of this hub that exist only in the API; None as above."""
    agent: Callable[[str], Transport] | None = None
    """The access of a managed cluster's agent, by the name of the cluster; for hollow clusters."""
    serving_since: datetime | None = None
    """When the server began, if it is of this process; before that nobody could reach it."""
    chosen: frozenset[str] | None = None
    """Which controllers run, by their names in the table of controlling.py; None: all."""

    schedulers: frozenset[str] = SCHEDULERS
    """Which `schedulerName` makes a pod ours; fewer where another scheduler is at work."""

    def runs(self, name: str) -> bool:
        """Say whether a controller is one of those that run."""
        return self.chosen is None or name in self.chosen

    def serves(self, kind: Kind[Any]) -> bool:
        """Say whether the server has a resource; to follow one it has not would never begin."""
        return any(
            (each.group, each.plural) == (kind.group, kind.plural) and kind.version in each.versions
            for each in self.served
        )


class Parts:
    """What one run of the controllers is made of; caches and views are shared among them."""

    def __init__(self, given: Given, clock: Clock, metrics: Metrics) -> None:
        self.given = given
        self.clock = clock
        self.metrics = metrics
        self.manager = Manager(given.transport(MANAGER), clock=clock, metrics=metrics)

    def acting(self, name: str, component: str = "") -> tuple[Transport, EventRecorder]:
        """Return a controller's own access, and how it tells people what it does."""
        access = self.given.transport(name)
        recorder = EventRecorder(access, component or name, clock=self.clock)
        self.manager.alongside(recorder.run)
        return access, recorder

    @cached_property
    def inventory(self) -> Inventory:
        """The devices with their effective taints."""
        return self._inventory(features(self.given.gates, strict=self.given.strict))

    @cached_property
    def scheduling_inventory(self) -> Inventory:
        """The devices as the scheduler sees them: the same ones, except for the reference."""
        if not self.given.strict:
            return self.inventory
        seen = features(self.given.gates, strict=True)
        return self._inventory(replace(seen, absent_selects_all=True))

    @cached_property
    def evaluator(self) -> Evaluator:
        """Who evaluates the expressions that take long."""
        return Evaluator(self.clock)

    def _inventory(self, switched: Features) -> Inventory:
        inventory = Inventory(
            slices=self.manager.informer(SLICES),
            classes=self.manager.informer(CLASSES),
            # A Kubernetes server may have them switched off.
            rules=self.manager.informer(RULES) if self.given.serves(RULES) else None,
            # The reference has no such kind.
            patches=self.manager.informer(PATCHES) if self.given.serves(PATCHES) else None,
            features=switched,
            defer=True,
        )
        evaluation = SelectorEvaluation(
            inventory=inventory, evaluator=self.evaluator, clock=self.clock
        )
        self.manager.add(evaluation, workers=WORKERS, backoff=BACKOFF)
        return inventory

    @cached_property
    def pods(self) -> Pods:
        """The pods as those see them who keep and count them."""
        return Pods(self.manager.informer(PODS))
