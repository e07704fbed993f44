"""Which clusters belong to a set, and which sets a placement may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sully.api.cluster.types import SET_LABEL, ManagedClusterSet
from sully.domain.placement.predicates import select_labels
from sully.domain.placement.results.status import MisconfiguredError
from sully.machinery.selectors.labels import NOTHING, Selector


class BrokenSetError(Exception):
    """A set with unknown members; nothing is decided while it is eligible."""


class Membership(msgspec.Struct, frozen=True):
    """The rule of one set."""

    name: str
    selector: Selector | None = None
    """None: membership is by the exclusive label."""
    problem: str = ""

    def has(self, labels: Mapping[str, str]) -> bool:
        """Report whether a cluster with these labels belongs to the set."""
        if self.selector is None:
            return labels.get(SET_LABEL) == self.name
        return self.selector.matches(labels)


def membership(cluster_set: ManagedClusterSet) -> Membership:
    """Read the rule of a set; an invalid rule selects nothing and has an error."""
    name, selector = cluster_set.metadata.name, cluster_set.spec.cluster_selector
    match selector.selector_type:
        case "ExclusiveClusterSetLabel" | "":
            return Membership(name)
        case "LabelSelector":
            if selector.label_selector is None:
                return Membership(name, NOTHING)
            try:
                return Membership(name, select_labels(selector.label_selector))
            except MisconfiguredError as error:
                return Membership(name, NOTHING, str(error))
        case other:
            return Membership(name, NOTHING, f"selectorType is not right: {other}")


def eligible_sets(bound: Iterable[str], cluster_sets: Sequence[str]) -> tuple[str, ...]:
    """Return the bound sets that a placement may use; naming none means all."""
    return tuple(sorted(name for name in set(bound) if not cluster_sets or name in cluster_sets))
