"""How good each cluster is for a placement: the prioritizers, their weights and their scores.

A total is the sum of weight times score. What other placements have decided (Balance) and what this
one has (Steady) changes all the time and is scored by the ranking; the rest depends on the
clusters alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from sully.api.cluster.types import (
    AddOnScore,
    PrioritizerPolicy,
    ScoreCoordinate,
)
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.options import PlacementOptions
from sully.domain.placement.results.status import MisconfiguredError

BALANCE = "Balance"
STEADY = "Steady"
MOST = 100

_RESOURCES = {"ResourceAllocatableCPU": "cpu", "ResourceAllocatableMemory": "memory"}
_DEFAULTS = {BALANCE: 1, STEADY: 1}


class Prioritizer(msgspec.Struct, frozen=True):
    """One score that counts, under the name that results carry."""

    kind: Literal["Balance", "Steady", "Resource", "AddOn"]
    name: str
    weight: int
    resource: str = ""
    add_on: AddOnScore | None = None


def prioritizers(policy: PrioritizerPolicy, options: PlacementOptions) -> tuple[Prioritizer, ...]:
    """Return what counts, in the order of the policy; raise MisconfiguredError."""
    defaults = _defaults(policy.mode)
    weights: dict[object, tuple[ScoreCoordinate, int]] = {
        name: (ScoreCoordinate(built_in=name), weight) for name, weight in defaults.items()
    }
    for at, configuration in enumerate(policy.configurations):
        coordinate = configuration.score_coordinate
        if coordinate is None:
            raise MisconfiguredError("", "scoreCoordinate field is required")
        weights[_identity(coordinate, at, options)] = (coordinate, configuration.weight)
    return tuple(
        _prioritizer(coordinate, weight) for coordinate, weight in weights.values() if weight
    )


def _defaults(mode: str) -> Mapping[str, int]:
    match mode:
        case "Exact":
            return {}
        case "Additive" | "":
            return _DEFAULTS
        case _:
            raise MisconfiguredError("", f"incorrect prioritizer policy mode: {mode}")


def _identity(coordinate: ScoreCoordinate, at: int, options: PlacementOptions) -> object:
    """Return what two entries share of which the later counts.

    In OCM an entry with an add-on is like no other, even when it names a built-in.
    """
    alone = coordinate.type == "AddOn" or not options.compat.merges_built_in_prioritizers
    if coordinate.add_on is not None and alone:
        return at
    return coordinate.built_in if coordinate.type == "BuiltIn" else (coordinate.type, at)


def _prioritizer(coordinate: ScoreCoordinate, weight: int) -> Prioritizer:
    if coordinate.type == "AddOn":
        add_on = coordinate.add_on
        if add_on is None:
            raise MisconfiguredError("", "addOn should not be empty")
        name = f"AddOn/{add_on.resource_name}/{add_on.score_name}"
        return Prioritizer("AddOn", name, weight, add_on=add_on)
    name = coordinate.built_in
    if name == BALANCE:
        return Prioritizer("Balance", name, weight)
    if name == STEADY:
        return Prioritizer("Steady", name, weight)
    if name in _RESOURCES:
        return Prioritizer("Resource", name, weight, resource=_RESOURCES[name])
    raise MisconfiguredError("", f"incorrect builtin prioritizer: {name}")


def balance_score(count: int, most: int) -> int:
    """Score a cluster by how often other placements decided for it, against the most decided."""
    if count <= 0 or most <= 0:
        return MOST
    return 2 * int(MOST * (0.5 - count / most))


def resource_score(amount: float, least: float, most: float) -> int:
    """Score an amount by where it lies between the least and the most."""
    if most == least:
        return MOST
    return int(((amount - least) / (most - least) - 0.5) * 2.0 * MOST)


class AddOnResult(msgspec.Struct, frozen=True):
    """The score of a cluster from an add-on; an expired score is 0."""

    value: int = 0
    expired: bool = False
    valid_until: datetime | None = None
    """When a score that counts now will not any more."""


def add_on_score(add_on: AddOnScore, candidate: Candidate, now: datetime) -> AddOnResult:
    """Read the score that an add-on gives a cluster; what is missing counts as 0."""
    scores = candidate.scores.get(add_on.resource_name)
    if scores is None:
        return _NO_SCORE
    until = scores.status.valid_until
    if until is not None and now > until:
        return AddOnResult(expired=True)
    value = next(
        (score.value for score in scores.status.scores if score.name == add_on.score_name), 0
    )
    return AddOnResult(value, valid_until=until)


_NO_SCORE = AddOnResult()


def expired_message(add_on: AddOnScore, clusters: list[str]) -> str:
    """Return the clusters, in the given order, whose scores have expired."""
    entries = "".join(f" {name}/{add_on.resource_name}" for name in clusters)
    return f"AddOnPlacementScores{entries} expired"
