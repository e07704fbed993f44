"""Taints of devices, and the table of their effects (`EFFECTS`).

The scheduler calls `untolerated`, the evictor `tolerates_eviction`. Each taint carries the object
that sets it as `Origin`; rules.py and patches.py add taints to those that drivers publish. When a
toleration with `tolerationSeconds` expires is decided in `domain/eviction/judge.py`
(`eviction_time`) for running pods and in `domain/allocation/toleration_expiry.py` for new ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from sully.api.resource.eviction_rate import EvictionRate
from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.tolerations import tolerates
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

NONE = "None"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
NO_EXECUTE_WITH_BUDGET = "NoExecuteWithPodDisruptionBudget"
PREFER_NO_SCHEDULE = "PreferNoSchedule"


class TaintEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What a taint with an effect does to pods that do not tolerate it."""

    blocks_scheduling: bool = False
    """Requests do not get the device."""
    evicts: bool = False
    """Running pods are evicted; tolerations of it may have `tolerationSeconds`."""
    honors_budgets: bool = False
    """Pods are evicted only as their PodDisruptionBudgets allow."""
    is_preference: bool = False
    """Requests get the device only if no other one is available."""
    feature_gate: str = ""
    """The gate that enables it; empty for the effects of Kubernetes."""


EFFECTS: Final[Mapping[str, TaintEffect]] = {
    NO_SCHEDULE: TaintEffect(blocks_scheduling=True),
    NO_EXECUTE: TaintEffect(blocks_scheduling=True, evicts=True),
    NONE: TaintEffect(),
    PREFER_NO_SCHEDULE: TaintEffect(is_preference=True, feature_gate="SullyPreferNoSchedule"),
    NO_EXECUTE_WITH_BUDGET: TaintEffect(
        blocks_scheduling=True,
        evicts=True,
        honors_budgets=True,
        feature_gate="SullyNoExecuteWithPodDisruptionBudget",
    ),
}
"""All effects, as help texts list them. A taint with an unknown effect does nothing."""

BLOCKING_EFFECTS: Final = frozenset(name for name in EFFECTS if EFFECTS[name].blocks_scheduling)
EVICTING_EFFECTS: Final = frozenset(name for name in EFFECTS if EFFECTS[name].evicts)
BUDGET_EFFECTS: Final = frozenset(name for name in EFFECTS if EFFECTS[name].honors_budgets)
PREFERENCE_EFFECTS: Final = frozenset(name for name in EFFECTS if EFFECTS[name].is_preference)
KUBERNETES_EFFECTS: Final = frozenset(name for name in EFFECTS if not EFFECTS[name].feature_gate)


def strongest_effect(effects: Collection[str]) -> str:
    """Return the effect with most consequences; of unknown ones the first, of none an empty one."""
    known = (name for name in _BY_STRENGTH if name in effects)
    return next(known, min(effects, default=""))


def _strength(name: str) -> tuple[bool, ...]:
    effect = EFFECTS[name]
    forces = effect.evicts and not effect.honors_budgets
    return forces, effect.evicts, effect.blocks_scheduling, effect.is_preference


_BY_STRENGTH: Final = sorted(EFFECTS, key=_strength, reverse=True)


def enabled_effects(effects: Iterable[str], gates: Gates) -> frozenset[str]:
    """Return those of these effects whose feature gate is on, or that have none."""
    return frozenset(
        name
        for name in effects
        if not EFFECTS[name].feature_gate or gates[EFFECTS[name].feature_gate]
    )


OriginKind = Literal["DeviceTaintRule", "ResourceSlice", "ResourceSlicePatch"]


class Origin(msgspec.Struct, frozen=True):
    """The object that sets a taint, an attribute or a capacity, and its index there."""

    kind: OriginKind
    name: str
    uid: str = ""
    index: int = 0

    def __str__(self) -> str:
        """Return kind and name: `DeviceTaintRule/broken`."""
        return f"{self.kind}/{self.name}"


class Suppression(msgspec.Struct, frozen=True):
    """Why a taint of a driver has no effect: suppression.py."""

    effect: str
    """The effect that the driver published."""
    by: str
    """Who decided that: `policy NAME`."""
    rule: str
    """The name of the rule that has it."""
    until: datetime | None = None


class SourcedTaint(msgspec.Struct, frozen=True):
    """A taint, and the object that sets it."""

    taint: DeviceTaint
    origin: Origin
    group: str = ""
    """Taints of one group share an eviction rate: those of rules that were created together."""
    annotated_rate: EvictionRate | None = None
    """The rate of its rule, if annotations set more than `evictionsPerSecond`."""
    suppression: Suppression | None = None
    """Set if the taint has no effect although its driver publishes one: its effect is None."""

    @property
    def rate(self) -> EvictionRate | None:
        """Return how fast it evicts pods; None: no limit."""
        if self.annotated_rate is not None:
            return self.annotated_rate
        per_second = self.taint.evictions_per_second
        return EvictionRate(per_second) if per_second is not None else None


SourcedTaints = tuple[SourcedTaint, ...]


def tolerates_eviction(
    toleration: DeviceToleration, taint: DeviceTaint, compat: Compat = Compat.SULLY
) -> bool:
    """Report whether a toleration prevents the eviction of a pod from a device with a taint.

    For Kubernetes 1.37 the toleration has to name the effect, against its documentation: a pod
    with a toleration of all effects is scheduled to a tainted device and evicted immediately.
    Whether the toleration expires is not asked here: `eviction_time` in eviction/judge.py does.
    """
    if not compat.tolerates_every_effect and toleration.effect != taint.effect:
        return False
    return tolerates(toleration, taint)


def expires(toleration: DeviceToleration) -> bool:
    """Report whether a toleration expires; seconds mean nothing without an evicting effect."""
    limited = toleration.toleration_seconds is not None
    return limited and toleration.effect in EVICTING_EFFECTS


def blocks(taint: DeviceTaint) -> bool:
    """Report whether a taint prevents scheduling on its device, with all feature gates on.

    For clients, which cannot see the gates.
    """
    return taint.effect in BLOCKING_EFFECTS


def untolerated(
    taints: Iterable[SourcedTaint],
    tolerations: Sequence[DeviceToleration],
    effects: frozenset[str] = BLOCKING_EFFECTS,
) -> tuple[SourcedTaint, ...]:
    """Return the taints that prevent a request with these tolerations from getting the device."""
    return tuple(
        taint
        for taint in taints
        if taint.taint.effect in effects
        and not any(tolerates(toleration, taint.taint) for toleration in tolerations)
    )


def untolerated_preferences(
    taints: Iterable[SourcedTaint], tolerations: Sequence[DeviceToleration]
) -> int:
    """Count the PreferNoSchedule taints that a request with these tolerations does not tolerate."""
    return len(untolerated(taints, tolerations, PREFERENCE_EFFECTS))
