"""What all validation of this group shares: layers of checks, limits of lists, options.

Kubernetes has two layers of checks: written by hand, and generated from the schema. Errors of the
second are marked as `Declared` where they arise, because a client sees them after all others.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from sully.machinery.compat import Compat
from sully.machinery.declared import Declared, declared
from sully.machinery.fields import FieldError, Path
from sully.machinery.gates import Gates
from sully.machinery.strategy import WriteContext

T = TypeVar("T")
Errors = Iterator[FieldError]

_DEVICE = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")
_EXACTLY = re.compile(r"(\brequests\[\d+\])\.exactly\.")


class Options(msgspec.Struct, frozen=True):
    """What else decides how strictly a value is checked."""

    gates: Gates
    compat: Compat = Compat.SULLY
    # Expressions that did not change are not compiled again.
    stored: bool = False
    # Lists that were sent without items, where that counts as present.
    sent_empty: tuple[tuple[str, ...], ...] = ()
    # Of the API that the client speaks: the schema-driven layer quotes values in its shape.
    version: str = ""

    @property
    def effects(self) -> list[str]:
        """Return the effects a taint may have, as error texts list them."""
        extra = {
            "PreferNoSchedule": "SullyPreferNoSchedule",
            "NoExecuteWithPodDisruptionBudget": "SullyNoExecuteWithPodDisruptionBudget",
        }
        gated = [effect for effect, gate in extra.items() if self.gates[gate]]
        return sorted(["NoExecute", "NoSchedule", "None", *gated])

    def as_stored(self, stored: bool) -> "Options":
        """Return the same options for values that did, or did not, change."""
        return replace(self, stored=stored)


def options(ctx: WriteContext) -> Options:
    """Return the options of a request."""
    return Options(ctx.gates, ctx.compat, sent_empty=ctx.sent_empty, version=ctx.version)


def only_declared(errors: Iterable[FieldError]) -> Errors:
    """Yield the errors of the schema-driven layer."""
    return (error for error in errors if isinstance(error, Declared))


def under_basic(errors: Iterable[FieldError], *, only_declared: bool) -> Errors:
    """Name fields of devices as v1beta1 does, under `basic`.

    The hand-written layer of Kubernetes knows only the names of v1, so it names only what the
    schema declares.
    """
    for error in errors:
        if only_declared and not isinstance(error, Declared):
            yield error
        else:
            yield replace(error, field=_DEVICE.sub(r"\1.basic.", error.field))


def named_in(version: str, errors: Iterable[FieldError], *, only_declared: bool) -> Errors:
    """Name fields of requests as a version does: in v1beta1 nothing is under `exactly`."""
    for error in errors:
        if version != "v1beta1" or (only_declared and not isinstance(error, Declared)):
            yield error
        else:
            yield replace(error, field=_EXACTLY.sub(r"\1.", error.field))


def validate_items(
    items: Sequence[T], limit: int | None, check: Callable[[T, Path], Errors], at: Path
) -> Errors:
    """Check a list item by item; too long a list is one error.

    Only the hand-written layer stops there: the schema still checks the items.
    """
    collected = _items(items, check, at)
    if limit is not None and len(items) > limit:
        yield at.too_many(len(items), limit)
        collected = only_declared(collected)
    yield from collected


def validate_declared_items(
    items: Sequence[T], limit: int, check: Callable[[T, Path], Errors], at: Path
) -> Errors:
    """Check a list whose length the schema limits; a longer one is the only error."""
    if len(items) > limit:
        yield from declared([at.too_many(len(items), limit)])
    else:
        yield from _items(items, check, at)


def _items(items: Sequence[T], check: Callable[[T, Path], Errors], at: Path) -> Errors:
    for position, item in enumerate(items):
        yield from check(item, at.index(position))


def shown(value: Any) -> Any:
    """Return a value in the form in which error texts show it: the keys of maps in order."""
    return msgspec.to_builtins(value, order="deterministic")


def unique(
    items: Sequence[T],
    key: Callable[[T], Hashable],
    at: Path,
    show: Callable[[T], Any] = shown,
) -> Errors:
    """Yield an error for items with a duplicate key; it shows the whole item."""
    for position, item in repeated(items, key):
        yield at.index(position).duplicate(show(item))


def unique_keys(items: Sequence[T], key: Callable[[T], Hashable], at: Path) -> Errors:
    """Yield an error for items with a duplicate key; it shows the key."""
    for position, item in repeated(items, key):
        yield at.index(position).duplicate(key(item))


def repeated(items: Sequence[T], key: Callable[[T], Hashable]) -> Iterator[tuple[int, T]]:
    """Yield items whose key an earlier one has, with their positions."""
    seen: set[Hashable] = set()
    for position, item in enumerate(items):
        if key(item) in seen:
            yield position, item
        seen.add(key(item))


def shortened(key: str, limit: int) -> str:
    """Cut the middle out of a map key that is too long to be shown in a path."""
    if len(key) <= limit:
        return key
    length = limit - 3
    return f"{key[: (length + 1) // 2]}...{key[len(key) - length // 2 :]}"
