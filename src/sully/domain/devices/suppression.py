"""Taints of drivers that have no effect, because a user decided so: false positives, mostly.

The controller of DeviceTaintPolicies compiles its decisions into annotations of rules, so that
every reader of the effective taints of a device, to schedule, to evict, to plan or to show them,
needs no policy and no clock. The taint stays visible: it gets the effect None, and
`SourcedTaint.suppression` has the effect of before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.annotations import SUPPRESSES, creator_of, expiry
from sully.api.resource.types import DeviceTaint, DeviceTaintRule
from sully.domain.devices.taints import NONE, SourcedTaint, Suppression
from sully.machinery.serialization.notes import read_note

_DRIVER: Final = "ResourceSlice"


class SuppressedTaint(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which taints of a driver have no effect."""

    key: str
    value: str | None = None
    """None: any."""
    effect: str = ""
    """Empty: any."""

    def __str__(self) -> str:
        """Return it as people write a taint."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}" + (f":{self.effect}" if self.effect else "")


class RuleSuppression(msgspec.Struct, frozen=True):
    """What one rule suppresses, and for whom."""

    taints: tuple[SuppressedTaint, ...]
    by: Suppression


def encode(taints: Iterable[SuppressedTaint]) -> str:
    """Return taints as the value of the annotation."""
    texts = {str(msgspec.json.encode(taint).decode()) for taint in taints}
    return f"[{','.join(sorted(texts))}]"


def suppression_of(rule: DeviceTaintRule) -> RuleSuppression | None:
    """Return what a rule suppresses; None if nothing."""
    annotations = rule.metadata.annotations
    text, until = annotations.get(SUPPRESSES, ""), expiry(annotations)
    # Without an end, a fault could stay hidden indefinitely.
    if not text or until is None:
        return None
    # If it is malformed, the driver's taints have their effect.
    taints = read_note(text, tuple[SuppressedTaint, ...])
    by = Suppression("", creator_of(annotations), rule.metadata.name, until)
    return RuleSuppression(taints, by) if taints else None


def named(taint: DeviceTaint) -> SuppressedTaint:
    """Return what is exactly this taint."""
    return SuppressedTaint(taint.key, taint.value, taint.effect)


def _matches(suppressed: SuppressedTaint, taint: DeviceTaint) -> bool:
    return (
        suppressed.key == taint.key
        and suppressed.value in (None, taint.value)
        and suppressed.effect in ("", taint.effect)
    )


def suppressed(
    taints: tuple[SourcedTaint, ...], suppressions: Sequence[RuleSuppression]
) -> tuple[SourcedTaint, ...]:
    """Return the taints of a device, without the effects of those of its driver that rules name."""
    return tuple(_suppressed(taint, suppressions) for taint in taints)


def _suppressed(sourced: SourcedTaint, suppressions: Sequence[RuleSuppression]) -> SourcedTaint:
    if sourced.origin.kind != _DRIVER or sourced.taint.effect == NONE:
        return sourced
    for suppression in suppressions:
        if any(_matches(one, sourced.taint) for one in suppression.taints):
            return replace(
                sourced,
                taint=replace(sourced.taint, effect=NONE),
                suppression=replace(suppression.by, effect=sourced.taint.effect),
            )
    return sourced


def published_taint(sourced: SourcedTaint) -> DeviceTaint:
    """Return a taint as the driver published it."""
    if sourced.suppression is None:
        return sourced.taint
    return replace(sourced.taint, effect=sourced.suppression.effect)


def suppression_text(suppression: Suppression) -> str:
    """Return in short that a taint has no effect, and why."""
    return f"{suppression.effect} suppressed by {suppression.by or f'rule {suppression.rule}'}"
