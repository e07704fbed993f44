"""DaemonSets: which nodes run a pod, and which pods are replaced in an update.

Plans and the controller share `should_run`. A pod is replaced when the old one is deleted, unless
the update strategy allows a second pod on the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sully.domain.allocation.pools import nodes
from sully.domain.scheduling.filters import matches_node_affinity, named_nodes, untolerated_taints
from sully.domain.scheduling.objects import Node, NodeTaint, Pod
from sully.domain.workloads.history import HASH_LABEL
from sully.domain.workloads.percentages import scaled
from sully.domain.workloads.workloads import Workload, WorkloadCondition
from sully.machinery.meta import Wire

_NODE: Final = "node.kubernetes.io"
TOLERATIONS: Final = (
    *((f"{_NODE}/{name}", "NoExecute") for name in ("not-ready", "unreachable")),
    *(
        (f"{_NODE}/{name}", "NoSchedule")
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)
"""Keys and effects of the taints that every pod of a DaemonSet tolerates."""
HOST_NETWORK: Final = (f"{_NODE}/network-unavailable", "NoSchedule")
"""And those that use the network of their node."""


class RollingUpdateDaemonSet(Wire, frozen=True, kw_only=True):
    """On how many nodes a pod may be missing, or a second one run."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DaemonSetUpdateStrategy(Wire, frozen=True, kw_only=True):
    """How pods are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Wire, frozen=True, kw_only=True):
    """Which pods run, and how they are replaced."""

    selector: dict[str, Any] | None = None
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    update_strategy: DaemonSetUpdateStrategy = msgspec.field(
        default_factory=DaemonSetUpdateStrategy
    )
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(Wire, frozen=True, kw_only=True):
    """On how many nodes pods run."""

    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None
    conditions: tuple[WorkloadCondition, ...] = ()


class DaemonSet(Workload, frozen=True, kw_only=True):
    """A pod on each node."""

    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)

    @property
    def replaces_terminating(self) -> bool:
        """Report whether it creates a pod while another on the node is terminating."""
        rolling = self.spec.update_strategy.rolling_update
        surge = rolling.max_surge if rolling is not None else None
        return str(surge or 0).rstrip("%").lstrip("0") != ""


class Suitability(msgspec.Struct, frozen=True):
    """Whether a node gets a pod, and whether a pod that it has stays."""

    run: bool
    keep: bool
    taint: NodeTaint | None = None
    """The taint that prevents it."""


def should_run(pod: Pod, node: Node) -> Suitability:
    """Report whether a node runs the pod of a DaemonSet: it matches, and its taints are tolerated.

    A pod that is there stays unless the taint has the effect NoExecute. Resources do not count:
    a pod without room stays Pending.
    """
    if not matches_node_affinity(
        pod, nodes.AllocatorNode(node.metadata.name, node.metadata.labels)
    ):
        return Suitability(run=False, keep=False)
    taints = [*untolerated_taints(node, pod)]
    evicts = any(taint.effect == "NoExecute" for taint in taints)
    return Suitability(run=not taints, keep=not evicts, taint=taints[0] if taints else None)


def node_of(pod: Pod) -> str:
    """Return the node that a pod runs on, or is created for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    names = named_nodes(pod)
    return next(iter(names)) if names is not None and len(names) == 1 else ""


# -- the controller -------------------------------------------------------------------------------


class DaemonSync(msgspec.Struct, frozen=True):
    """The next step of a DaemonSet."""

    status: DaemonSetStatus
    create: tuple[str, ...] = ()
    """Nodes that get a pod."""
    delete: tuple[Pod, ...] = ()


def sync_daemons(
    owner: DaemonSet,
    pods: Sequence[Pod],
    nodes_: Iterable[Node],
    model: Pod,
    hash_: str,
    now: datetime,
) -> DaemonSync:
    """Return the next step of a DaemonSet; `model` is a pod of its template."""
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    fits = {node.metadata.name: should_run(model, node) for node in nodes_}
    status = _status(owner, by_node, fits, hash_, now)
    if owner.is_terminating:
        return DaemonSync(status)
    create: list[str] = []
    delete: list[Pod] = []
    for name in sorted(fits.keys() | by_node.keys()):
        on_node = by_node.get(name, [])
        fit = fits.get(name, Suitability(run=False, keep=False))
        if not fit.keep:
            delete += [pod for pod in on_node if not pod.is_terminating]
            continue
        missing, surplus = _on_node(owner, on_node, hash_, now)
        delete += surplus
        if missing and fit.run:
            create.append(name)
    if create or delete:
        return DaemonSync(status, tuple(create), tuple(delete))
    desired = [name for name, fit in fits.items() if fit.run]
    outdated, surged = _update(owner, by_node, desired, hash_, now)
    return DaemonSync(status, tuple(surged), tuple(outdated))


def _on_node(
    owner: DaemonSet, pods: Sequence[Pod], hash_: str, now: datetime
) -> tuple[bool, list[Pod]]:
    """Return whether a node needs a pod, and which of its pods are deleted."""
    ended = [pod for pod in pods if pod.is_terminal and not pod.is_terminating]
    running = [pod for pod in pods if pod.is_active]
    if not running:
        waits = any(pod.is_terminating for pod in pods) and not owner.replaces_terminating
        return not waits and not ended, ended
    old = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) != hash_]
    new = [pod for pod in running if pod not in old]
    surplus = _older_first(new)[1:] + _older_first(old)[1:]
    if old and new and _is_available(new[0], owner, now):
        surplus += _older_first(old)[:1]
    elif old and new and not owner.replaces_terminating:
        surplus += new
    return False, [*ended, *surplus]


def _older_first(pods: Iterable[Pod]) -> list[Pod]:
    return sorted(
        pods,
        key=lambda pod: (
            not pod.spec.node_name,
            str(pod.metadata.creation_timestamp),
            pod.metadata.name,
        ),
    )


def _is_available(pod: Pod, owner: DaemonSet, now: datetime) -> bool:
    return pod.is_active and pod.available(owner.spec.min_ready_seconds, now)


def _update(
    owner: DaemonSet,
    by_node: Mapping[str, Sequence[Pod]],
    desired: Sequence[str],
    hash_: str,
    now: datetime,
) -> tuple[list[Pod], list[str]]:
    """Return the old pods to delete in a rolling update, and the nodes that get a second pod."""
    strategy = owner.spec.update_strategy
    if strategy.type != "RollingUpdate" or strategy.rolling_update is None:
        return [], []
    rolling, count = strategy.rolling_update, len(desired)
    old: dict[str, Pod] = {}
    unavailable = surging = 0
    for name in sorted(desired):
        running = [pod for pod in by_node.get(name, ()) if pod.is_active]
        outdated = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) != hash_]
        unavailable += not any(_is_available(pod, owner, now) for pod in running)
        if outdated and len(running) == 1:
            old[name] = outdated[0]
        surging += bool(outdated) and len(running) > 1
    if owner.replaces_terminating:
        most = max(1, scaled(rolling.max_surge or 0, count, up=True))
        return [], list(old)[: max(most - surging, 0)]
    most = max(1, scaled(rolling.max_unavailable or 1, count, up=True))
    idle = [pod for pod in old.values() if not _is_available(pod, owner, now)]
    serving = [pod for pod in old.values() if pod not in idle]
    return idle + serving[: max(most - unavailable, 0)], []


def _status(
    owner: DaemonSet,
    by_node: Mapping[str, Sequence[Pod]],
    fits: Mapping[str, Suitability],
    hash_: str,
    now: datetime,
) -> DaemonSetStatus:
    desired = [name for name, fit in fits.items() if fit.run]
    running = {
        name: _older_first(pod for pod in by_node.get(name, ()) if not pod.is_terminating)
        for name in desired
    }
    available = sum(
        any(_is_available(pod, owner, now) for pod in running[name]) for name in desired
    )
    return replace(
        owner.status,
        observed_generation=owner.metadata.generation,
        desired_number_scheduled=len(desired),
        current_number_scheduled=sum(bool(running[name]) for name in desired),
        number_misscheduled=sum(
            any(pod.is_active for pod in pods)
            for name, pods in by_node.items()
            if name not in desired
        ),
        number_ready=sum(any(pod.ready for pod in running[name]) for name in desired),
        number_available=available,
        number_unavailable=len(desired) - available,
        updated_number_scheduled=sum(
            any(pod.metadata.labels.get(HASH_LABEL) == hash_ for pod in running[name])
            for name in desired
        ),
    )
