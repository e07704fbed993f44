"""Kinds that are listed only if a pod is there about which they decide.

Most clusters have thousands of volumes and namespaces, and most questions are about none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.client.transport import Kind
from sully.domain.scheduling.objects import Pod, PodAffinity
from sully.views.snapshot.kinds import CONSTRAINT_KINDS, NAMESPACES
from sully.views.snapshot.snapshot import Objects


def is_on_demand(kind: Kind[Any], pods: Kind[Any] | None) -> bool:
    """Report whether a kind need not be listed unless pods, which are read as a kind, need it."""
    if pods is None or pods.type is dict[str, Any] or not issubclass(pods.type, Pod):
        return False
    return any((kind.group, kind.plural) == (x.group, x.plural) for x in CONSTRAINT_KINDS)


def is_needed(kind: Kind[Any], objects: Iterable[Objects]) -> bool:
    """Report whether pods among the objects need a kind."""
    pods = (pod for items in objects if items.kind.plural == "pods" for pod in items.items)
    needs = _selects_namespaces if kind.plural == NAMESPACES.plural else _has_volume_claims
    return any(map(needs, pods))


def _has_volume_claims(pod: Pod) -> bool:
    return any(volume.has_claim for volume in pod.spec.volumes)


def _selects_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (
        _selects(affinity.pod_affinity) or _selects(affinity.pod_anti_affinity)
    )


def _selects(affinity: PodAffinity | None) -> bool:
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    return any(term.namespace_selector is not None for term in terms)
