"""Which pods a constraint between pods is about: label selectors, and their namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sully.domain.scheduling.objects import Pod
from sully.machinery.selectors.labels import NOTHING, Selector, SelectorError, from_object


class PodSelector(msgspec.Struct, frozen=True):
    """Pods with some labels in some namespaces."""

    selector: Selector
    namespaces: frozenset[str] | None
    """None: all namespaces."""

    def matches(self, pod: Pod) -> bool:
        """Report whether it selects a pod."""
        metadata = pod.metadata
        if self.namespaces is not None and metadata.namespace not in self.namespaces:
            return False
        return self.selector.matches(metadata.labels)


class PodMatcher(msgspec.Struct, frozen=True):
    """Pods that all of some selectors select."""

    selectors: tuple[PodSelector, ...]
    skips_terminating: bool = False

    def matches(self, pod: Pod) -> bool:
        """Report whether a pod counts."""
        if self.skips_terminating and pod.is_terminating:
            return False
        return all(selector.matches(pod) for selector in self.selectors)


CountByNode = Callable[[PodMatcher], Mapping[str, int]]
"""Returns how many pods match, by the name of their node; without nodes that have none."""


def selector_from(selector: Mapping[str, Any] | None) -> Selector:
    """Read a label selector; one that is invalid selects nothing."""
    try:
        return from_object(selector)
    except SelectorError:
        return NOTHING
