"""Pod affinity and anti-affinity that is required, also the anti-affinity of pods on nodes.

Two pods are near each other if their nodes have the same value of a label, the topology key. A pod
with affinity to itself may be the first of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.filters import NodeFilter, NodeInfo, NodeReason, Rejection
from sully.domain.scheduling.objects import Affinity, Pod, PodAffinity, PodAffinityTerm
from sully.domain.scheduling.pod_matching import (
    CountByNode,
    PodMatcher,
    PodSelector,
    selector_from,
)
from sully.machinery.selectors.labels import NOTHING, Selector

_RETRY_ON: Final = (
    ClusterEvent.ASSIGNED_POD_ADD | ClusterEvent.ASSIGNED_POD_DELETE | ClusterEvent.NAMESPACE_UPDATE
)
_NO_AFFINITY: Final = Rejection((NodeReason.POD_AFFINITY,), retry_on=_RETRY_ON)
_CONFLICT: Final = Rejection((NodeReason.POD_ANTI_AFFINITY,), preemptible=True, retry_on=_RETRY_ON)
_EXISTING: Final = Rejection(
    (NodeReason.EXISTING_ANTI_AFFINITY,), preemptible=True, retry_on=_RETRY_ON
)

NodeLabels = Callable[[str], Mapping[str, str] | None]
"""Returns the labels of a node; None if there is no such node."""
NamespaceLabels = Mapping[str, Mapping[str, str]]
"""The labels of all namespaces, by name."""
Topology = tuple[str, str]
"""A topology key and a value of it."""


class AffinityTerm(msgspec.Struct, frozen=True):
    """A term of the (anti-)affinity of a pod."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector = NOTHING

    def matches(self, pod: Pod, namespaces: NamespaceLabels) -> bool:
        """Report whether it is about a pod."""
        namespace = pod.metadata.namespace
        if namespace not in self.namespaces and not self.namespace_selector.matches(
            namespaces.get(namespace, {})
        ):
            return False
        return self.selector.matches(pod.metadata.labels)

    def pods(self, namespaces: NamespaceLabels) -> PodSelector:
        """Return the pods that it is about."""
        if self.namespace_selector.everything:
            return PodSelector(self.selector, None)
        selected = (
            name for name, labels in namespaces.items() if self.namespace_selector.matches(labels)
        )
        return PodSelector(self.selector, self.namespaces.union(selected))


def affinity_terms(pod: Pod) -> tuple[AffinityTerm, ...]:
    """Return the affinity that a pod requires."""
    affinity = pod.spec.affinity
    return _terms(pod, affinity.pod_affinity) if affinity is not None else ()


def anti_affinity_terms(pod: Pod) -> tuple[AffinityTerm, ...]:
    """Return the anti-affinity that a pod requires."""
    affinity = pod.spec.affinity
    return _terms(pod, affinity.pod_anti_affinity) if affinity is not None else ()


def has_anti_affinity(affinity: Affinity) -> bool:
    """Report whether anti-affinity is required."""
    terms = affinity.pod_anti_affinity
    return terms is not None and bool(terms.required_during_scheduling_ignored_during_execution)


def has_affinity(affinity: Affinity) -> bool:
    """Report whether affinity is required."""
    terms = affinity.pod_affinity
    return terms is not None and bool(terms.required_during_scheduling_ignored_during_execution)


def _terms(pod: Pod, affinity: PodAffinity | None) -> tuple[AffinityTerm, ...]:
    if affinity is None:
        return ()
    required = affinity.required_during_scheduling_ignored_during_execution
    return tuple(_term(pod, term) for term in required)


def _term(pod: Pod, term: PodAffinityTerm) -> AffinityTerm:
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        term.topology_key,
        selector_from(term.label_selector),
        frozenset((pod.metadata.namespace,) if own else term.namespaces),
        selector_from(term.namespace_selector),
    )


def affinity_filter(
    pod: Pod,
    *,
    count: CountByNode,
    node_labels: NodeLabels,
    namespaces: NamespaceLabels,
    existing: Iterable[tuple[AffinityTerm, Iterable[str]]],
) -> NodeFilter:
    """Return the filter for the affinity of a pod.

    `existing` are the terms of pods on nodes that are about it, with those nodes.
    """
    terms, anti_terms = affinity_terms(pod), anti_affinity_terms(pod)
    selectors = tuple(term.pods(namespaces) for term in terms)
    near = set(
        _topologies(count(PodMatcher(selectors)), node_labels, {x.topology_key for x in terms})
        if terms
        else ()
    )
    may_be_first = not near and all(selector.matches(pod) for selector in selectors)
    apart = {
        topology
        for term in anti_terms
        for topology in _topologies(
            count(PodMatcher((term.pods(namespaces),))), node_labels, {term.topology_key}
        )
    }
    refused = {
        topology
        for term, nodes in existing
        for topology in _topologies(nodes, node_labels, {term.topology_key})
    }

    def evaluate(node: NodeInfo) -> Rejection | None:
        labels = node.target.labels
        for term in terms:
            value = labels.get(term.topology_key)
            if value is None or not (may_be_first or (term.topology_key, value) in near):
                return _NO_AFFINITY
        if apart and any((t.topology_key, labels.get(t.topology_key)) in apart for t in anti_terms):
            return _CONFLICT
        if refused and not refused.isdisjoint(labels.items()):
            return _EXISTING
        return None

    return evaluate


def _topologies(
    nodes: Iterable[str], node_labels: NodeLabels, keys: Iterable[str]
) -> Iterator[Topology]:
    keys = tuple(keys)
    for node in nodes:
        labels = node_labels(node) or {}
        for key in keys:
            if key in labels:
                yield key, labels[key]
