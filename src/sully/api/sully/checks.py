"""Checks that kinds of this group share."""

from collections.abc import Callable, Sequence
from typing import Any

from sully.api.core.checks import Errors, between, formatted, label_key
from sully.api.core.fractions import at_most_all, count_or_percent, is_zero
from sully.api.sully.durations import validate_duration
from sully.machinery.fields import Path
from sully.machinery.formats.names import label_value_problems

Obj = dict[str, Any]

TEXT_MAX = 1024
FLAPS_MAX = 32
CONDITION_STATUSES = ("True", "False", "Unknown")
_NO_DEVICE = "must be written driver/pool/device"


def required(holder: Obj, name: str, at: Path) -> Errors:
    """Check that a field is set."""
    if not holder.get(name):
        yield at.child(name).required()


def limited(holder: Obj, name: str, at: Path, most: int = TEXT_MAX) -> Errors:
    """Check the length of a text, in bytes."""
    if len(holder.get(name, "").encode()) > most:
        yield at.child(name).too_long(most)


def validate_items(
    items: Sequence[Any] | None, most: int, at: Path, check: Callable[[Any, Path], Errors]
) -> Errors:
    """Check the items of a list, and how many there are."""
    if items is None:
        return
    if len(items) > most:
        yield at.too_many(len(items), most)
    for position, item in enumerate(items[:most]):
        yield from check(item, at.index(position))


def required_key(key: str, at: Path) -> Errors:
    """Check `[prefix/]name`, which must be set."""
    yield from label_key(key, at) if key else (at.required(),)


def key_and_value(taint: Obj, at: Path) -> Errors:
    """Check the key and the value of a taint, or of what taints are compared with."""
    yield from required_key(taint.get("key", ""), at.child("key"))
    yield from formatted(taint.get("value", ""), label_value_problems, at.child("value"))


def validate_amount(value: int | str, at: Path, *, positive: bool = False) -> Errors:
    """Check a count, or a percentage of at most everything."""
    yield from count_or_percent(value, at)
    yield from at_most_all(value, at)
    if positive and is_zero(value):
        yield at.invalid(value, "must be greater than 0")


def validate_flaps(flaps: Obj | None, at: Path) -> Errors:
    """Check when a device or a cluster counts as flapping."""
    if flaps is not None:
        yield from between(flaps["count"], 2, FLAPS_MAX, at.child("count"))
        yield from validate_duration(flaps["within"], at.child("within"), required=True)


def validate_device(device: str, at: Path) -> Errors:
    """Check the name of a device, written `driver/pool/device`."""
    # The name of a pool may have slashes itself.
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    if not (driver and pool and name):
        yield at.invalid(device, _NO_DEVICE)
