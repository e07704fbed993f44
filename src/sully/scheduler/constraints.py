"""Builds the filters for constraints that few pods have, from the caches.

Pods without such constraints pay one look at their fields. What only kube-scheduler can do, such as
binding volumes, is refused by name; where kube-scheduler acts, it is simulated, or called unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from sully.domain.scheduling.causes import NotReadable, Unknown, UnsupportedField
from sully.domain.scheduling.filters import NodeFilter, PodConstraints
from sully.domain.scheduling.host_ports import host_ports, ports_filter
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.pod_affinity import (
    AffinityTerm,
    affinity_filter,
    affinity_terms,
    anti_affinity_terms,
    has_affinity,
    has_anti_affinity,
)
from sully.domain.scheduling.pod_matching import PodMatcher
from sully.domain.scheduling.topology_spread import spread_constraints, spread_filter
from sully.domain.scheduling.volumes.filter import volumes_filter
from sully.domain.scheduling.volumes.topology import (
    PodVolumes,
    VolumeProblem,
    claim_name,
    has_placed_volumes,
    pod_volumes,
)
from sully.scheduler.caches.constraint_sources import ConstraintSources
from sully.scheduler.caches.node_cache import NodeCache

VOLUME_KINDS = ("persistentvolumeclaims", "persistentvolumes", "storageclasses")


class Constraints(msgspec.Struct, frozen=True):
    """The constraints of one pod, and what decides about it as well and is not known."""

    filters: PodConstraints
    unknown: tuple[Unknown, ...] = ()


def is_constrained(pod: Pod) -> bool:
    """Report whether a pod has a constraint that is evaluated here."""
    # Asked three times for each pod that is scheduled, so it calls nothing for most of them.
    spec = pod.spec
    if spec.topology_spread_constraints or spec.scheduling_group is not None:
        return True
    affinity = spec.affinity
    if affinity is not None and (has_affinity(affinity) or has_anti_affinity(affinity)):
        return True
    if spec.volumes and has_placed_volumes(pod):
        return True
    for container in spec.containers:
        if container.ports and host_ports(spec):
            return True
    return bool(spec.init_containers and host_ports(spec))


class ConstraintBuilder:
    """Builds filters for pods; `nodes` are all of the cluster.

    With `simulates` it stands for kube-scheduler, and refuses nothing.
    """

    def __init__(
        self, nodes: NodeCache, sources: ConstraintSources, *, simulates: bool = False
    ) -> None:
        self._nodes = nodes
        self._sources = sources
        self._simulates = simulates

    def build(
        self, pod: Pod, gone: Collection[str] = ()
    ) -> Constraints | UnsupportedField | VolumeProblem | None:
        """Return the constraints of a pod as if some pods, by uid, were gone.

        None: it has none; otherwise why no node is evaluated.
        """
        constrained = is_constrained(pod)
        if not constrained and not self._nodes.pods.has_anti_affinity:
            return None
        view = _PodsWithout(self._nodes, gone)
        existing = list(view.terms_about(pod, self._sources))
        if not constrained and not existing:
            return None
        unknown: list[Unknown] = []
        if pod.spec.scheduling_group is not None:
            unknown.append(UnsupportedField("spec.schedulingGroup"))
        volumes = self._volumes(pod, unknown)
        if isinstance(volumes, VolumeProblem):
            return volumes
        if not self._simulates:
            for field in _unsupported(pod, unknown, volumes):
                return field
        return Constraints(
            PodConstraints(
                tuple(self._ports(pod, view)),
                tuple(self._others(pod, view, volumes, existing, unknown)),
            ),
            tuple(unknown),
        )

    def _volumes(self, pod: Pod, unknown: list[Unknown]) -> PodVolumes | VolumeProblem | None:
        if not has_placed_volumes(pod):
            return None
        if unreadable := [x for x in VOLUME_KINDS if x in self._sources.unreadable]:
            unknown += map(NotReadable, unreadable)
            return None
        volumes = pod_volumes(pod, self._sources, expects_ephemeral=self._simulates)
        if isinstance(volumes, PodVolumes):
            unknown += volumes.provisioning
        return volumes

    def _ports(self, pod: Pod, view: _PodsWithout) -> Iterator[NodeFilter]:
        if ports := host_ports(pod.spec):
            yield ports_filter(ports, view.on)

    def _others(
        self,
        pod: Pod,
        view: _PodsWithout,
        volumes: PodVolumes | None,
        existing: list[tuple[AffinityTerm, Mapping[str, int]]],
        unknown: list[Unknown],
    ) -> Iterator[NodeFilter]:
        if volumes is not None:
            in_use = bool(volumes.one_pod) and view.uses(pod, volumes.one_pod)
            yield volumes_filter(volumes, self._sources, view.on, in_use=in_use)
        if pod.spec.topology_spread_constraints and (spread := spread_constraints(pod)):
            yield spread_filter(pod, spread, self._nodes.by_load(), view.count)
        terms = (*affinity_terms(pod), *anti_affinity_terms(pod))
        if terms or existing:
            selects = any(not term.namespace_selector.never for term in terms)
            if selects and "namespaces" in self._sources.unreadable:
                unknown.append(NotReadable("namespaces"))
            yield affinity_filter(
                pod,
                count=view.count,
                node_labels=self._nodes.labels,
                namespaces=self._sources.namespaces,
                existing=existing,
            )


def _unsupported(
    pod: Pod, unknown: Iterable[Unknown], volumes: PodVolumes | None
) -> Iterator[UnsupportedField]:
    """Yield the fields of a pod that take more than choosing a node."""
    yield from (x for x in unknown if isinstance(x, UnsupportedField))
    unbound = {claim.metadata.name for claim in volumes.unbound} if volumes is not None else set()
    for index, volume in enumerate(pod.spec.volumes) if unbound else ():
        if claim_name(pod, volume) in unbound:
            kind = "ephemeral" if volume.ephemeral else "persistentVolumeClaim"
            yield UnsupportedField(f"spec.volumes[{index}].{kind}")


class _PodsWithout:
    """The pods on nodes, without some that are gone."""

    def __init__(self, nodes: NodeCache, gone: Collection[str]) -> None:
        self._pods = nodes.pods
        self._gone = gone

    def on(self, node: str) -> Iterable[Pod]:
        pods = self._pods.on(node)
        if not self._gone:
            return pods
        return [pod for pod in pods if pod.metadata.uid not in self._gone]

    def count(self, matcher: PodMatcher) -> Mapping[str, int]:
        counts = self._pods.count(matcher)
        if not self._gone:
            return counts
        left = dict(counts)
        for node, pod in self._assigned_gone():
            if matcher.matches(pod):
                left[node] -= 1
        return {node: count for node, count in left.items() if count}

    def terms_about(
        self, pod: Pod, sources: ConstraintSources
    ) -> Iterator[tuple[AffinityTerm, Mapping[str, int]]]:
        if not self._pods.has_anti_affinity:
            return
        for term, counts in self._pods.terms_about(pod, sources.namespaces):
            left = dict(counts)
            for node, other in self._assigned_gone():
                if term in anti_affinity_terms(other):
                    left[node] -= 1
            yield term, {node: count for node, count in left.items() if count}

    def uses(self, pod: Pod, claims: Collection[str]) -> bool:
        """Report whether another pod uses a claim of a pod."""
        namespace = pod.metadata.namespace
        return any(
            (volume.persistent_volume_claim or {}).get("claimName") in claims
            for _, other in self._pods.values()
            if other.metadata.namespace == namespace and other.metadata.uid not in self._gone
            for volume in other.spec.volumes
        )

    def _assigned_gone(self) -> Iterator[tuple[str, Pod]]:
        return (x for uid in self._gone if (x := self._pods.get(uid)) is not None)
