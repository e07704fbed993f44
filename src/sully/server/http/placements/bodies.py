"""What is sent to the pages about placements: a placement to try, or changes to play through.

A body with `changes` is a what-if; any other is taken for a Placement, as Open Cluster Management's
debug server takes it. Changes happen in order; `advance` lets time pass before the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from sully.api.cluster.types import CLUSTER_EFFECTS, Placement, Taint
from sully.domain.placement.changes import (
    Change,
    DropCluster,
    LabelCluster,
    PutObject,
    SilenceClusters,
    TaintCluster,
    UntaintCluster,
)
from sully.machinery.selectors import labels
from sully.machinery.serialization.codec import TooManyValuesError, check_values

MAX_BYTES = 1 << 20
MAX_VALUES = 5_000
_MAX_ADVANCE = timedelta(days=3650)
T = TypeVar("T")


class UnreadableBodyError(ValueError):
    """An invalid body; the message is sent to the client."""


class _Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Users write these by hand: a misspelled field must not be ignored."""


class _Taint(_Body):
    cluster: str
    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class _Untaint(_Body):
    cluster: str
    key: str


class _Unreachable(_Body):
    selector: str | dict[str, Any]


class _Delete(_Body):
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
    unreachable: _Unreachable | None = None
    delete: _Delete | None = None
    label: _Label | None = None
    advance: _Advance | None = None


class _WhatIf(_Body):
    changes: list[_Change]
    placement: Placement | None = None


class WhatIf(msgspec.Struct, frozen=True):
    """Changes with their times, and the simulated duration."""

    changes: tuple[Change, ...]
    duration: timedelta
    placement: Placement | None = None

    def clusters_read(self) -> Iterator[tuple[str, str]]:
        """Yield the verb and the name by which each change reads clusters; no name means all."""
        for change in self.changes:
            if isinstance(change, TaintCluster | UntaintCluster | DropCluster | LabelCluster):
                yield "get", change.cluster
            elif isinstance(change, SilenceClusters):
                yield "list", ""


def read_body(raw: bytes) -> Placement | WhatIf:
    """Parse a request body; raises UnreadableBodyError."""
    if len(raw) > MAX_BYTES:
        raise UnreadableBodyError("request body too large: http: request body too large")
    try:
        check_values(raw, MAX_VALUES)
        value = msgspec.json.decode(raw)
    except TooManyValuesError as error:
        raise UnreadableBodyError(f"request body too large: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    elapsed = timedelta(0)
    changes: list[Change] = [] if body.placement is None else [PutObject(body.placement)]
    for at, change in enumerate(body.changes):
        fields = [name for name in _Change.__struct_fields__ if getattr(change, name) is not None]
        if len(fields) != 1:
            raise UnreadableBodyError(f"changes[{at}] must have exactly one field")
        if change.advance is not None:
            elapsed += _advance(change.advance, at)
        else:
            changes.append(_change(change, at, elapsed))
    return WhatIf(tuple(changes), elapsed, body.placement)


def _advance(advance: _Advance, at: int) -> timedelta:
    if not 0 <= advance.seconds <= _MAX_ADVANCE.total_seconds():
        raise UnreadableBodyError(f"changes[{at}].advance.seconds is out of range")
    return timedelta(seconds=advance.seconds)


def _change(change: _Change, at: int, after: timedelta) -> Change:
    if (taint := change.taint) is not None:
        if taint.effect not in CLUSTER_EFFECTS:
            raise UnreadableBodyError(
                f"changes[{at}].taint.effect must be {', '.join(CLUSTER_EFFECTS)}"
            )
        put = Taint(
            key=taint.key, value=taint.value, effect=taint.effect, time_added=taint.time_added
        )
        return TaintCluster(taint.cluster, put, after)
    if (untaint := change.untaint) is not None:
        return UntaintCluster(untaint.cluster, untaint.key, after)
    if (delete := change.delete) is not None:
        return DropCluster(delete.cluster, after)
    if (label := change.label) is not None:
        return LabelCluster(label.cluster, label.label, label.value, after)
    if change.unreachable is None:
        raise UnreadableBodyError(f"changes[{at}] must have exactly one field")
    return SilenceClusters(_selector(change.unreachable, at), after)


def _selector(unreachable: _Unreachable, at: int) -> labels.Selector:
    selector = unreachable.selector
    try:
        return labels.parse(selector) if isinstance(selector, str) else labels.from_object(selector)
    except (labels.SelectorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableBodyError(f"changes[{at}].unreachable.selector: {error}") from None
