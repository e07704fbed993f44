"""Who tainted a cluster, why and until when: an annotation, as taints of OCM have no such fields.

Clients append what they do; Sully's server sets the user, and adds what other clients did. A taint
expires as its newest entry specifies. Taints for the health of a cluster are not recorded: the hub
sets and removes them all the time.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from sully.api.cluster.taints.policy_taints import TaintId
from sully.api.cluster.types import HEALTH_KEYS
from sully.machinery.formats.texts import truncated
from sully.machinery.formats.timestamps import TimeError, parse_time
from sully.machinery.serialization.notes import read_note

TAINT_HISTORY = "sully.dev/taint-history"
"""The annotation of a cluster with what happened to its taints, oldest first."""
EXPIRY = "expiry"
"""What removed a taint that had expired."""
ENTRIES_MAX = 50
TEXT_MAX = 1024


class TaintEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A taint that was set or removed."""

    time: Annotated[datetime, msgspec.Meta(tz=True)]
    event: Literal["tainted", "untainted"]
    key: str
    value: str = ""
    effect: str
    by: str = ""
    reason: str = ""
    expires_at: str = ""

    @property
    def id(self) -> TaintId:
        return self.key, self.value, self.effect

    def expiry(self) -> datetime | None:
        """Return when the taint expires; an invalid time does not count."""
        try:
            return parse_time(self.expires_at)
        except TimeError:
            return None


def read_history(annotations: Mapping[str, str] | None) -> tuple[TaintEntry, ...]:
    """Return the entries of a cluster; a text that cannot be read counts as none."""
    text = (annotations or {}).get(TAINT_HISTORY, "")
    return read_note(text, tuple[TaintEntry, ...]) or ()


def write_history(entries: Sequence[TaintEntry]) -> str:
    """Return the annotation; the oldest entries are dropped."""
    return msgspec.json.encode([_bounded(entry) for entry in entries[-ENTRIES_MAX:]]).decode()


def set_by(entries: Iterable[TaintEntry], taint: TaintId) -> TaintEntry | None:
    """Return the entry that set a taint, if it is not removed since."""
    newest = {entry.id: entry for entry in entries}.get(taint)
    return newest if newest is not None and newest.event == "tainted" else None


def expiry_of(entries: Sequence[TaintEntry], taint: TaintId) -> datetime | None:
    """Return when a taint expires, or None."""
    entry = set_by(entries, taint)
    return entry.expiry() if entry is not None else None


def is_expired(entries: Sequence[TaintEntry], taint: TaintId, now: datetime) -> bool:
    """Report whether the time of a taint is over."""
    time = expiry_of(entries, taint)
    return time is not None and time <= now


def with_removed(
    entries: Sequence[TaintEntry], taints: Iterable[TaintId], *, now: datetime, by: str
) -> tuple[TaintEntry, ...]:
    """Add the removal of recorded taints that a cluster no longer has."""
    gone = {entry.id for entry in entries} - set(taints)
    removed = [
        _entry("untainted", taint, now=now, by=EXPIRY if is_expired(entries, taint, now) else by)
        for taint in sorted(gone)
        if set_by(entries, taint) is not None
    ]
    return (*entries, *removed)


def with_added(
    entries: Sequence[TaintEntry], taints: Iterable[TaintId], *, now: datetime, by: str
) -> tuple[TaintEntry, ...]:
    """Add taints of a cluster that are not recorded."""
    added = [
        _entry("tainted", taint, now=now, by=by)
        for taint in taints
        if taint[0] not in HEALTH_KEYS and set_by(entries, taint) is None
    ]
    return (*entries, *added)


def with_sent(
    stored: Sequence[TaintEntry],
    sent: Iterable[TaintEntry],
    taints: Iterable[TaintId],
    *,
    now: datetime,
    by: str,
) -> tuple[TaintEntry, ...]:
    """Add what a client sent about taints of a cluster; it cannot change stored entries."""
    new = {entry.id: entry for entry in sent if entry not in stored and entry.event == "tainted"}
    added = [
        msgspec.structs.replace(new[taint], time=_whole(now), by=by)
        for taint in taints
        if taint in new and taint[0] not in HEALTH_KEYS
    ]
    return (*stored, *added)


def _entry(
    event: Literal["tainted", "untainted"], taint: TaintId, *, now: datetime, by: str
) -> TaintEntry:
    key, value, effect = taint
    return TaintEntry(time=_whole(now), event=event, key=key, value=value, effect=effect, by=by)


def _whole(now: datetime) -> datetime:
    return now.replace(microsecond=0)


def _bounded(entry: TaintEntry) -> TaintEntry:
    return msgspec.structs.replace(
        entry, by=truncated(entry.by, TEXT_MAX), reason=truncated(entry.reason, TEXT_MAX)
    )
