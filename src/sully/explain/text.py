"""How times, numbers, names and taints are written in sentences and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from sully.api.resource.types import (
    DeviceAttribute,
    DeviceConstraint,
    DeviceTaintSelector,
    DeviceToleration,
)
from sully.domain.eviction.records import devices_text
from sully.machinery.formats.timestamps import age, format_time, human_duration

MAX_NAMES: Final = 4
"""Names in a sentence; more are counted, and are listed in a table."""
MAX_DATA: Final = 200
_NOUNS: Final = {
    "DeviceTaintRule": "rule",
    "ResourceSlice": "slice",
    "ResourceSlicePatch": "patch",
    "ClusterTaintPolicy": "policy",
    "DeviceTaintPolicy": "policy",
    "DeviceMaintenance": "maintenance",
}


def toleration_text(toleration: DeviceToleration) -> str:
    """Write a toleration like a taint, with how long it lasts."""
    key = toleration.key or "*"
    value = f"={toleration.value}" if toleration.operator != "Exists" and toleration.value else ""
    effect = toleration.effect or "*"
    seconds = toleration.toleration_seconds
    return f"{key}{value}:{effect}" + (f" for {seconds}s" if seconds is not None else "")


def constraint_text(constraint: DeviceConstraint) -> str:
    if constraint.match_attribute is not None:
        return f"matchAttribute {constraint.match_attribute}"
    return f"distinctAttribute {constraint.distinct_attribute}"


def attribute_text(attribute: DeviceAttribute) -> str:
    """Write the value of an attribute, of whatever type."""
    for field in attribute.__struct_fields__:
        value = getattr(attribute, field)
        if value is not None:
            return str(value).lower() if isinstance(value, bool) else str(value)
    return ""


def data_text(data: Any) -> str:
    """Write data on one line; it may have kilobytes, of which the beginning is shown."""
    text = msgspec.json.encode(data).decode()
    return text if len(text) <= MAX_DATA else f"{text[:MAX_DATA]}…"


def selector_text(selector: DeviceTaintSelector | None) -> str:
    """Name the devices that a selector selects."""
    if selector is None:
        return "no device"
    text = devices_text(selector)
    rest = text.removeprefix("*/*/*")
    return f"devices {text}" if rest == text else f"all devices{rest}"


def time_text(at: datetime, now: datetime) -> str:
    """Write a time, and how far away it is."""
    seconds = int((at - now).total_seconds())
    distance = f"in {human_duration(seconds)}" if seconds > 0 else f"{age(at, now)} ago"
    return f"{format_time(at)} ({distance})"


def enumerate_names(names: Iterable[str], most: int = MAX_NAMES) -> str:
    """Write names in a sentence, and how many are left out."""
    listed = list(names)
    if len(listed) > most:
        return f"{', '.join(listed[:most])} and {len(listed) - most} more"
    return join(listed)


def join(parts: Sequence[str], word: str = "and") -> str:
    """Join parts as a sentence does."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def object_text(origin: str) -> str:
    """Name an object in a sentence: `DeviceTaintRule/x` is rule x."""
    kind, _, name = origin.partition("/")
    return f"{_NOUNS.get(kind, kind)} {name}"


def as_sentence(text: str) -> str:
    """Put a message into a sentence: one line, one full stop."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?")) else f"{line}."


def code(text: str) -> str:
    """Set an expression apart; it may have quotation marks of its own."""
    return f"`{' '.join(text.split())}`"


def quote(text: str) -> str:
    return f'"{" ".join(text.split())}"'
