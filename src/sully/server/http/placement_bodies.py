"""What is sent to the pages about placements: a placement to try, or changes to play through.

A body with `changes` is a what-if; any other is taken for a Placement, as Open Cluster Management's
debug server takes it. Changes happen in order; `advance` lets time pass before the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from sully.api.cluster.types import EFFECTS, Placement, Taint
from sully.domain.placement.changes import (
    Change,
    DropCluster,
    LabelCluster,
    PutObject,
    SilenceClusters,
    TaintCluster,
    UntaintCluster,
)
from sully.machinery import labels
from sully.machinery.codec import TooManyValuesError, check_values

LARGEST = 1 << 20
MOST_VALUES = 5_000
_LONGEST = timedelta(days=3650)
T = TypeVar("T")


class UnreadableBodyError(ValueError):
    """A body that cannot be acted on; the message is what the client sees."""


class _Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Written by hand: a misspelled field must not be ignored."""


class _Taint(_Body):
    cluster: str
    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class _Untaint(_Body):
    cluster: str
    key: str


class _Silence(_Body):
    selector: str | dict[str, Any]


class _Drop(_Body):
    cluster: str


class _Label(_Body):
    cluster: str
    label: str
    value: str | None = None


class _Advance(_Body):
    seconds: float


class _Change(_Body):
    taint: _Taint | None = None
    untaint: _Untaint | None = None
    silence: _Silence | None = None
    drop: _Drop | None = None
    label: _Label | None = None
    advance: _Advance | None = None


class _WhatIf(_Body):
    changes: list[_Change]
    placement: Placement | None = None


class WhatIf(msgspec.Struct, frozen=True):
    """Changes with their times, and how long to look on."""

    changes: tuple[Change, ...]
    lasting: timedelta
    placement: Placement | None = None

    def clusters_read(self) -> Iterator[tuple[str, str]]:
        """Yield the verb and the name by which each change reads clusters; no name means all."""
        for change in self.changes:
            if isinstance(change, TaintCluster | UntaintCluster | DropCluster | LabelCluster):
                yield "get", change.cluster
            elif isinstance(change, SilenceClusters):
                yield "list", ""


def read_body(raw: bytes) -> Placement | WhatIf:
    """Read what was sent; raise UnreadableBodyError."""
    if len(raw) > LARGEST:
        raise UnreadableBodyError("request body too large: http: request body too large")
    try:
        check_values(raw, MOST_VALUES)
        value = msgspec.json.decode(raw)
    except TooManyValuesError as error:
        raise UnreadableBodyError(f"request body too large: {error}") from None
    except msgspec.DecodeError as error:
        raise UnreadableBodyError(f"failed to unmarshal placement JSON: {error}") from None
    if isinstance(value, dict) and "changes" in value:
        return _whatif(_convert(value, _WhatIf, "failed to read what-if JSON"))
    return _convert(value, Placement, "failed to unmarshal placement JSON")


def _convert(value: object, type_: type[T], prefix: str) -> T:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise UnreadableBodyError(f"{prefix}: {error}") from None


def _whatif(body: _WhatIf) -> WhatIf:
    passed = timedelta(0)
    changes: list[Change] = [] if body.placement is None else [PutObject(body.placement)]
    for at, change in enumerate(body.changes):
        given = [name for name in _Change.__struct_fields__ if getattr(change, name) is not None]
        if len(given) != 1:
            raise UnreadableBodyError(f"changes[{at}] must say exactly one thing")
        if change.advance is not None:
            passed += _pause(change.advance, at)
        else:
            changes.append(_change(change, at, passed))
    return WhatIf(tuple(changes), passed, body.placement)


def _pause(advance: _Advance, at: int) -> timedelta:
    if not 0 <= advance.seconds <= _LONGEST.total_seconds():
        raise UnreadableBodyError(f"changes[{at}].advance.seconds is out of range")
    return timedelta(seconds=advance.seconds)


def _change(change: _Change, at: int, after: timedelta) -> Change:
    if (taint := change.taint) is not None:
        if taint.effect not in EFFECTS:
            raise UnreadableBodyError(f"changes[{at}].taint.effect must be {', '.join(EFFECTS)}")
        put = Taint(
            key=taint.key, value=taint.value, effect=taint.effect, time_added=taint.time_added
        )
        return TaintCluster(taint.cluster, put, after)
    if (untaint := change.untaint) is not None:
        return UntaintCluster(untaint.cluster, untaint.key, after)
    if (drop := change.drop) is not None:
        return DropCluster(drop.cluster, after)
    if (label := change.label) is not None:
        return LabelCluster(label.cluster, label.label, label.value, after)
    if change.silence is None:
        raise UnreadableBodyError(f"changes[{at}] must say exactly one thing")
    return SilenceClusters(_selector(change.silence, at), after)


def _selector(silence: _Silence, at: int) -> labels.Selector:
    given = silence.selector
    try:
        return labels.parse(given) if isinstance(given, str) else labels.from_object(given)
    except (labels.SelectorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableBodyError(f"changes[{at}].silence.selector: {error}") from None
