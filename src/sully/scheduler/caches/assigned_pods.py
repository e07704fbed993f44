"""Pods on nodes, for constraints between pods.

Nothing is indexed until a constraint asks for it, so a cluster without such constraints pays
nothing. Only required anti-affinity is indexed always: it also concerns pods without constraints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.pod_affinity import (
    AffinityTerm,
    NamespaceLabels,
    anti_affinity_terms,
    has_anti_affinity,
)
from sully.domain.scheduling.pod_matching import PodMatcher

_MOST_MATCHERS: Final = 256
"""Matchers whose pods are counted; with more, counting all again is cheaper than updating."""


class AssignedPod(NamedTuple):
    """A pod, and the node it is on or was selected for."""

    node: str
    pod: Pod


class AssignedPods:
    """Pods by uid and by node, and how many of them match what was asked for."""

    def __init__(self) -> None:
        self._pods: dict[str, AssignedPod] = {}
        self._by_node: dict[str, dict[str, Pod]] | None = None
        self._counts: dict[PodMatcher, Counter[str]] = {}
        self._terms: dict[AffinityTerm, Counter[str]] = {}
        """Anti-affinity of these pods, and on which nodes they are."""
        self._by_namespace: dict[str, dict[AffinityTerm, None]] = {}
        """Terms by the namespace of pods that they may be about; of any namespace under ``*``."""

    def copy_from(self, other: AssignedPods) -> None:
        """Take the pods of another cache; this one has none yet."""
        self._pods = other._pods.copy()
        self._terms = {term: nodes.copy() for term, nodes in other._terms.items()}
        self._by_namespace = {name: terms.copy() for name, terms in other._by_namespace.items()}

    @property
    def has_anti_affinity(self) -> bool:
        """Report whether a pod requires anti-affinity."""
        return bool(self._terms)

    def add(self, node: str, pod: Pod) -> None:
        """Add a pod."""
        self._pods[pod.metadata.uid] = AssignedPod(node, pod)
        affinity = pod.spec.affinity
        if affinity is not None and has_anti_affinity(affinity):
            self._add_terms(node, pod)
        if self._by_node is not None:
            self._by_node.setdefault(node, {})[pod.metadata.uid] = pod
        if self._counts:
            self._count(node, pod, 1)

    def remove(self, uid: str) -> None:
        """Remove a pod."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        node, pod = known
        affinity = pod.spec.affinity
        if affinity is not None and has_anti_affinity(affinity):
            self._remove_terms(node, pod)
        if self._by_node is not None:
            self._by_node[node].pop(uid, None)
        if self._counts:
            self._count(node, pod, -1)

    def update(self, pod: Pod) -> bool:
        """Replace the state of a pod, so that the old one is freed.

        Report whether that changed how many pods match what was asked for.
        """
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        if known is None:
            return False
        self._pods[uid] = AssignedPod(known.node, pod)
        if self._by_node is not None:
            self._by_node[known.node][uid] = pod
        if not self._counts or _matches_as(pod, known.pod):
            return False
        self._count(known.node, known.pod, -1)
        self._count(known.node, pod, 1)
        return True

    def get(self, uid: str) -> AssignedPod | None:
        """Return a pod with its node, or None."""
        return self._pods.get(uid)

    def on(self, node: str) -> Iterable[Pod]:
        """Return the pods on a node."""
        if self._by_node is None:
            self._by_node = {}
            for uid, assigned in self._pods.items():
                self._by_node.setdefault(assigned.node, {})[uid] = assigned.pod
        return self._by_node.get(node, {}).values()

    def values(self) -> Iterable[AssignedPod]:
        """Return all pods, with their nodes."""
        return self._pods.values()

    def count(self, matcher: PodMatcher) -> Mapping[str, int]:
        """Return how many pods on each node match."""
        counts = self._counts.get(matcher)
        if counts is None:
            if len(self._counts) >= _MOST_MATCHERS:
                self._counts.clear()
            counts = Counter(node for node, pod in self._pods.values() if matcher.matches(pod))
            self._counts[matcher] = counts
        return counts

    def terms_about(
        self, pod: Pod, namespaces: NamespaceLabels
    ) -> Iterator[tuple[AffinityTerm, Mapping[str, int]]]:
        """Yield the anti-affinity terms of these pods that are about a pod, with their nodes."""
        for namespace in (pod.metadata.namespace, _ANY):
            for term in self._by_namespace.get(namespace, ()):
                if term.matches(pod, namespaces):
                    yield term, self._terms[term]

    def _count(self, node: str, pod: Pod, number: int) -> None:
        for matcher, counts in self._counts.items():
            if matcher.matches(pod):
                _add(counts, node, number)

    def _add_terms(self, node: str, pod: Pod) -> None:
        for term in anti_affinity_terms(pod):
            if term not in self._terms:
                self._terms[term] = Counter()
                for namespace in _namespaces(term):
                    self._by_namespace.setdefault(namespace, {})[term] = None
            _add(self._terms[term], node, 1)

    def _remove_terms(self, node: str, pod: Pod) -> None:
        for term in anti_affinity_terms(pod):
            _add(self._terms[term], node, -1)
            if not self._terms[term]:
                del self._terms[term]
                for namespace in _namespaces(term):
                    del self._by_namespace[namespace][term]


_ANY: Final = "*"


def _matches_as(pod: Pod, other: Pod) -> bool:
    """Report whether a pod is the same to selectors as another state of it."""
    return (
        pod.metadata.labels == other.metadata.labels and pod.is_terminating == other.is_terminating
    )


def _namespaces(term: AffinityTerm) -> tuple[str, ...]:
    return tuple(term.namespaces) if term.namespace_selector.never else (_ANY,)


def _add(counts: Counter[str], node: str, number: int) -> None:
    counts[node] += number
    if not counts[node]:
        del counts[node]
