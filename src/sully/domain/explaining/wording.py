"""How times, numbers, names and taints read in sentences; everything beside this uses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.eviction.records import devices_text
from sully.machinery.timestamps import age, format_time, human_duration

MOST_NAMED: Final = 4
"""Names in a sentence; more are counted, and stand in a table."""
_NOUNS: Final = {
    "DeviceTaintRule": "rule",
    "ResourceSlice": "slice",
    "ResourceSlicePatch": "patch",
    "ClusterTaintPolicy": "policy",
}


class AnyTaint(Protocol):
    """A taint of a device, of a cluster, or as an account names it."""

    @property
    def key(self) -> str:
        """Return what it is about."""

    @property
    def value(self) -> str:
        """Return its value, which may be empty."""

    @property
    def effect(self) -> str:
        """Return what it does."""


def which(selector: DeviceTaintSelector | None) -> str:
    """Name the devices that a selector is for: in a sentence, any of any is all."""
    if selector is None:
        return "no device"
    text = devices_text(selector)
    rest = text.removeprefix("*/*/*")
    return f"devices {text}" if rest == text else f"all devices{rest}"


def mark(taint: AnyTaint) -> str:
    """Write a taint as commands take it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def moment(at: datetime, now: datetime) -> str:
    """Write a time, and how far away it is."""
    seconds = int((at - now).total_seconds())
    far = f"in {human_duration(seconds)}" if seconds > 0 else f"{age(at, now)} ago"
    return f"{format_time(at)} ({far})"


def since(at: datetime | None, now: datetime) -> str:
    """Write since when, with a space before it; nothing if nobody knows."""
    return f" since {moment(at, now)}" if at is not None else ""


def number(count: int, noun: str) -> str:
    """Write a number of things."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(count: int) -> str:
    """Return the verb for so many things."""
    return "is" if count == 1 else "are"


def listed(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Write names in a sentence, and how many were left out."""
    known = list(names)
    shown = known[:most]
    if len(known) > most:
        return f"{', '.join(shown)} and {len(known) - most} more"
    return joined(shown)


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Join parts as a sentence does."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def noun(origin: str) -> str:
    """Name an object in a sentence: `DeviceTaintRule/x` is rule x."""
    kind, _, name = origin.partition("/")
    return f"{_NOUNS.get(kind, kind)} {name}"


def ended(text: str) -> str:
    """Bring somebody's text into a sentence of ours: one line, one full stop."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?")) else f"{line}."


def code(text: str) -> str:
    """Set an expression apart; it may have quotation marks of its own."""
    return f"`{' '.join(text.split())}`"


def quoted(text: str) -> str:
    """Quote somebody's words on one line."""
    return f'"{" ".join(text.split())}"'
