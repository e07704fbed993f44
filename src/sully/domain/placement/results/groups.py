"""How the selected clusters are written: decision groups, and objects of at most a hundred.

Groups come in the order of the placement, the rest without a name last. Every group is cut into
PlacementDecisions whose names count on over all groups; inside, clusters stand in order of name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from sully.api.cluster.types import (
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
    DecisionGroup,
    DecisionGroupStatus,
    GroupStrategy,
)
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.predicates import select_claims, select_labels
from sully.domain.placement.results.status import SUCCESS, MisconfiguredError, Status
from sully.machinery.formats.integers import parse_natural

CHUNK = 100
"""How many clusters one PlacementDecision holds at most."""

Lookup = Callable[[str], Candidate]


class DecisionSlice(msgspec.Struct, frozen=True):
    """The desired content of one PlacementDecision."""

    name: str
    group_index: int
    group_name: str
    clusters: tuple[str, ...]

    def labels(self, placement: str) -> dict[str, str]:
        """Return the labels by which it is found."""
        return {
            PLACEMENT_LABEL: placement,
            GROUP_INDEX_LABEL: str(self.group_index),
            GROUP_NAME_LABEL: self.group_name,
        }


class Group(msgspec.Struct, frozen=True):
    """Some of the selected clusters, in order of name."""

    name: str
    clusters: Sequence[str]


def group_length(size: int | str, total: int, *, quoted: bool = False) -> int:
    """Return how many clusters a group has at most; raise MisconfiguredError.

    `quoted` reads a text such as `5` as the number it stands for.
    """
    if isinstance(size, str) and quoted:
        number = parse_natural(size)
        size = size if number is None else number
    length = size if isinstance(size, int) else _share(size, total)
    return length if 0 < length <= total else total


def _share(text: str, total: int) -> int:
    if not text.endswith("%"):
        raise MisconfiguredError("", f"{text} invalid type: string is not a percentage")
    try:
        percent = float(text[:-1])
    except ValueError:
        raise MisconfiguredError("", f"{text} invalid type: string is not a percentage") from None
    return math.ceil(percent / 100 * total)


def make_groups(
    strategy: GroupStrategy, selected: Sequence[str], find: Lookup, *, quoted: bool = False
) -> tuple[list[Group], Status]:
    """Divide the selected clusters, given in order of name.

    Nothing selected is one empty group, so that an object shows it. An error in the strategy is
    returned with the groups before it, to which OCM then reduces the placement.
    """
    groups: list[Group] = []
    rest = selected
    try:
        length = group_length(strategy.clusters_per_decision_group, len(selected), quoted=quoted)
        for decision_group in strategy.decision_groups:
            taken = _members(decision_group, rest, find)
            groups += _cut(decision_group.group_name, taken, length)
            rest = _without(rest, taken)
    except MisconfiguredError as error:
        return groups, error.status
    groups += _cut("", rest, length)
    return groups or [Group("", ())], SUCCESS


def _members(decision_group: DecisionGroup, names: Sequence[str], find: Lookup) -> list[str]:
    selector = decision_group.group_cluster_selector
    labels = select_labels(selector.label_selector, "")
    claims = select_claims(selector.claim_selector, "")
    candidates = ((name, find(name)) for name in names)
    return [
        name
        for name, candidate in candidates
        if labels.matches(candidate.labels) and claims.matches(candidate.claims)
    ]


def _without(names: Sequence[str], taken: Sequence[str]) -> Sequence[str]:
    gone = frozenset(taken)
    return [name for name in names if name not in gone] if gone else names


def _cut(name: str, clusters: Sequence[str], length: int) -> list[Group]:
    return [
        Group(name, clusters[at : at + length]) for at in range(0, len(clusters), max(length, 1))
    ]


def slices(placement: str, groups: Sequence[Group]) -> tuple[DecisionSlice, ...]:
    """Cut groups into what PlacementDecisions hold, with names that count on."""
    parts: list[DecisionSlice] = []
    for index, group in enumerate(groups):
        for at in range(0, len(group.clusters) or 1, CHUNK):
            part = tuple(group.clusters[at : at + CHUNK])
            name = f"{placement}-decision-{len(parts) + 1}"
            parts.append(DecisionSlice(name, index, group.name, part))
    return tuple(parts)


def group_statuses(
    groups: Sequence[Group], parts: Sequence[DecisionSlice]
) -> tuple[DecisionGroupStatus, ...]:
    """Return the groups as in the status of a placement."""
    names: Mapping[int, list[str]] = {index: [] for index in range(len(groups))}
    for part in parts:
        names[part.group_index].append(part.name)
    return tuple(
        DecisionGroupStatus(
            decision_group_index=index,
            decision_group_name=group.name,
            decisions=tuple(names[index]),
            cluster_count=len(group.clusters),
        )
        for index, group in enumerate(groups)
    )
