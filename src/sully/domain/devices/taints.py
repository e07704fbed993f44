"""Taints of devices: which of them prevent scheduling, which evict running pods.

The scheduler asks through `untolerated`, eviction through `tolerates_eviction`. Who put a taint
on a device travels with it as `Origin`; rules.py and patches.py lay taints over what drivers
publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.tolerations import difference
from sully.machinery.compat import Compat

NONE = "None"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
NO_EXECUTE_WITH_BUDGET = "NoExecuteWithPodDisruptionBudget"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
"""Advises against a device, and never refuses it."""

BLOCKING = frozenset((NO_SCHEDULE, NO_EXECUTE))
"""Effects that prevent scheduling on a device; any other, also an unknown one, does not."""
BLOCKING_WITH_BUDGETS = BLOCKING | {NO_EXECUTE_WITH_BUDGET}
"""The same where budgets may have a say, which is behind a gate."""

OriginKind = Literal["DeviceTaintRule", "ResourceSlice", "ResourceSlicePatch"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The object that says something about a device, and at which place it says so."""

    kind: OriginKind
    name: str
    uid: str = ""
    index: int = 0

    def __str__(self) -> str:
        """Name the object as people do."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class SourcedTaint:
    """A taint, and who put it there."""

    taint: DeviceTaint
    origin: Origin
    group: str = ""
    """What it shares its eviction rate with: rules that were created together share one."""


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Report whether one toleration covers one taint."""
    return difference(toleration, taint) is None


def tolerates_eviction(
    toleration: DeviceToleration, taint: DeviceTaint, compat: Compat = Compat.SULLY
) -> bool:
    """Report whether one toleration keeps a pod on a device that carries one taint.

    Kubernetes 1.37 lets only a toleration do so that names the effect, against its documentation:
    a pod with an effect-less one is scheduled to a tainted device and evicted immediately.
    """
    if not compat.tolerates_every_effect and toleration.effect != taint.effect:
        return False
    return tolerates(toleration, taint)


def blocks(taint: DeviceTaint) -> bool:
    """Report whether a taint keeps new pods off its device unless it is tolerated.

    With the effects of all gates: for those who cannot see which are on.
    """
    return taint.effect in BLOCKING_WITH_BUDGETS


def untolerated(
    taints: Iterable[SourcedTaint],
    tolerations: Sequence[DeviceToleration],
    effects: frozenset[str] = BLOCKING_WITH_BUDGETS,
) -> tuple[SourcedTaint, ...]:
    """Return the taints that keep a request with these tolerations off the device, in order."""
    return tuple(
        taint
        for taint in taints
        if taint.taint.effect in effects
        and not any(tolerates(one, taint.taint) for one in tolerations)
    )


def discouraging(taints: Iterable[SourcedTaint], tolerations: Sequence[DeviceToleration]) -> int:
    """Count the taints that advise a request with these tolerations against the device."""
    return sum(
        taint.taint.effect == PREFER_NO_SCHEDULE
        and not any(tolerates(one, taint.taint) for one in tolerations)
        for taint in taints
    )
