"""The state of all devices at one time, for `sully status`: counts by class and by node, and what
needs attention.

Devices are those of `sully devices` (devices/device_views.py), so that both count the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from sully.api.resource.types import ResourceClaimSpec
from sully.api.sully.types import DeviceMaintenance
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.capabilities.control_plane import (
    PATCHES_GATE,
    RULES_GATE,
    TAINTS_GATE,
    ControlPlane,
)
from sully.domain.claims.pods import claim_references
from sully.domain.devices.taints import strongest_effect
from sully.domain.maintenance.decisions import FINAL
from sully.domain.planning.device_counts import DeviceCounter
from sully.domain.planning.selector_matches import requested_classes
from sully.domain.scheduling.extended import Backings
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.views.devices.device_views import DeviceView, DeviceViews, natural, node_obstacle
from sully.views.eviction_loops import LoopWithRules, loops_with_rules
from sully.views.evictions import EvictionProgress
from sully.views.kinds import CLAIMS, CLASSES, MAINTENANCES, PATCHES
from sully.views.snapshot.kinds import NODES, PODS, TEMPLATES
from sully.views.snapshot.snapshot import Snapshot
from sully.views.taint_sources import TaintSource, eviction_progress, taint_sources

NO_CLASS = ""
"""The class of devices that no class selects."""


class DeviceTally(msgspec.Struct):
    """The numbers of some devices."""

    devices: int = 0
    in_use: int = 0
    free: int = 0
    """That a new pod without tolerations could get; a shared device may be in use and free."""
    tainted: Counter[str] = msgspec.field(default_factory=Counter)
    """By the strongest effect of each device."""
    pending_pods: int = 0

    def add(self, view: DeviceView) -> None:
        """Count a device."""
        self.devices += 1
        self.in_use += view.in_use
        self.free += view.free
        effects = {taint.sourced.taint.effect for taint in view.taints}
        if effects:
            self.tainted[strongest_effect(effects)] += 1


class NodeDevices(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of one node."""

    node: str
    tally: DeviceTally
    obstacle: str = ""
    """Why the node gets no new pods."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all devices."""

    total: DeviceTally
    classes: Mapping[str, DeviceTally]
    """By class, those without any device included; a device may be in several classes."""
    nodes: tuple[NodeDevices, ...]
    pending: Mapping[Key, set[str]]
    """The pods without a node that request devices, and of which classes."""
    unpublished: int
    """Allocated devices that no slice has any more."""
    conflicts: tuple[DeviceView, ...]
    """Devices that are allocated to claims that cannot all use them."""
    sources: tuple[TaintSource, ...]
    evictions: tuple[EvictionProgress, ...]
    """The rules with pods that have yet to be evicted, or to terminate."""
    loops: tuple[LoopWithRules, ...]
    disabled_gates: tuple[str, ...]
    maintenances: tuple[DeviceMaintenance, ...] = ()
    """Those that are not over."""


def status_of(snapshot: Snapshot, *, claims_visible: bool = True, namespace: str = "") -> Status:
    """Count the devices of a cluster, and find what needs attention.

    With a namespace, only its pods are counted as Pending.
    """
    counter = DeviceCounter({x.metadata.name: x for x in snapshot.of(CLASSES).values()})
    total, unpublished = DeviceTally(), 0
    classes = {name: DeviceTally() for name in sorted(counter.classes)}
    nodes: dict[str, DeviceTally] = {}
    conflicts: list[DeviceView] = []
    for view in _views(snapshot, claims_visible=claims_visible).all(snapshot.taken):
        if view.conflict is not None:
            conflicts.append(view)
        if view.device is None:
            unpublished += 1
            continue
        for name in counter.classes_of(view.device) or (NO_CLASS,):
            classes.setdefault(name, DeviceTally()).add(view)
        total.add(view)
        nodes.setdefault(view.node, DeviceTally()).add(view)
    pending = {
        key: classes
        for key, classes in pending_pods(snapshot).items()
        if namespace in ("", key.namespace)
    }
    total.pending_pods = len(pending)
    for requested in pending.values():
        for name in requested:
            classes.setdefault(name, DeviceTally()).pending_pods += 1
    progress = eviction_progress(snapshot)
    return Status(
        total=total,
        classes=classes,
        nodes=tuple(_nodes(snapshot, nodes)),
        pending=pending,
        unpublished=unpublished,
        conflicts=tuple(conflicts),
        sources=tuple(taint_sources(snapshot, progress)),
        evictions=tuple(x for x in progress if x.pending or x.terminating),
        loops=tuple(loops_with_rules(snapshot)),
        disabled_gates=tuple(disabled_gates(snapshot.control_plane)),
        maintenances=tuple(_maintenances(snapshot)),
    )


def _maintenances(snapshot: Snapshot) -> list[DeviceMaintenance]:
    maintenances = [
        one
        for one in snapshot.of(MAINTENANCES).values()
        if one.status.phase not in FINAL or one.status.units
    ]
    return sorted(maintenances, key=lambda one: (one.spec.start, one.metadata.name))


def _views(snapshot: Snapshot, *, claims_visible: bool) -> DeviceViews:
    return DeviceViews(
        snapshot.inventory,
        snapshot.usage,
        snapshot.of(PATCHES),
        plane=snapshot.control_plane,
        nodes=snapshot.of(NODES),
        claims_visible=claims_visible,
    )


def _nodes(snapshot: Snapshot, tallies: Mapping[str, DeviceTally]) -> Iterator[NodeDevices]:
    nodes = snapshot.of(NODES)
    for name in sorted(tallies, key=lambda name: (natural(name), name)):
        node = nodes.get(Key("", name))
        obstacle = node_obstacle(node) if node is not None else None
        text = obstacle.text if obstacle is not None else ""
        yield NodeDevices(node=name, tally=tallies[name], obstacle=text)


def disabled_gates(plane: ControlPlane) -> Iterable[str]:
    """Return the feature gates that are known to be off, and that taints depend on."""
    relevant = (TAINTS_GATE, RULES_GATE) + ((PATCHES_GATE,) if plane.scheduler == "Sully" else ())
    return [gate for gate in relevant if not plane.is_enabled(gate)]


def pending_pods(snapshot: Snapshot) -> dict[Key, set[str]]:
    """Return the pods without a node that request devices, and of which classes."""
    backings = Backings()
    for class_ in snapshot.of(CLASSES).values():
        backings.change(None, class_)
    pods: dict[Key, set[str]] = {}
    for pod in sorted(snapshot.of(PODS).values(), key=key_of):
        if pod.spec.node_name or not pod.is_active:
            continue
        classes = {x for spec in _claim_specs(snapshot, pod) for x in requested_classes(spec)}
        classes |= {x.metadata.name for x in backings.backed(requests_of(pod)).values()}
        if classes:
            pods[key_of(pod)] = classes
    return pods


def _claim_specs(snapshot: Snapshot, pod: Pod) -> Iterator[ResourceClaimSpec]:
    """Yield what a pod requests by claims; one that is not created yet has a template."""
    namespace = pod.metadata.namespace
    for reference in claim_references(pod):
        claim = snapshot.get(CLAIMS, Key(namespace, reference.name)) if reference.name else None
        if claim is not None:
            yield claim.spec
            continue
        template = snapshot.get(TEMPLATES, Key(namespace, reference.template))
        if template is not None:
            yield template.spec.spec
