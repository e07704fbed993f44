"""Where in an object something is wrong, and what: the values validation yields.

`Path` names the place, `FieldError` the problem. The server turns a list of them into one
`Invalid` answer (errors.py); nothing here raises.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.machinery.serialization.gotext import quote, show

_NULL = "Invalid value: null"
_STEP = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class FieldError(msgspec.Struct, frozen=True):
    """One problem with one field; `body` is the text clients see after the path."""

    reason: str
    field: str
    body: str
    shows_null: bool = False
    """The value is null, as Kubernetes shows an absent one."""

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def with_empty(self, value: Any) -> "FieldError":
        """Return the error with an empty list or map where it shows null."""
        if value not in ([], {}) or not self.shows_null:
            return self
        body = f"Invalid value: {show(value)}{self.body[len(_NULL) :]}"
        return msgspec.structs.replace(self, body=body)


def _text(kind: str, value: str | None, detail: str) -> str:
    return ": ".join(part for part in (kind, value, detail) if part)


class Path(msgspec.Struct, frozen=True, gc=False):
    """A place in an object, written as clients read it: `spec.taints[0].key`.

    A Struct because validation makes hundreds of them, and a frozen dataclass takes far longer.
    """

    text: str = ""

    def __str__(self) -> str:
        # The empty path prints as Go prints a nil one.
        return self.text or "<nil>"

    def child(self, *names: str) -> "Path":
        """Go down to a field."""
        joined = names[0] if len(names) == 1 else ".".join(names)
        return Path(f"{self.text}.{joined}" if self.text else joined)

    def index(self, position: int) -> "Path":
        """Go down to a list entry."""
        return Path(f"{self.text}[{position}]")

    def key(self, name: str) -> "Path":
        """Go down to a map entry."""
        return Path(f"{self.text}[{name}]")

    def required(self, detail: str = "") -> FieldError:
        """Return the error for a missing value."""
        return FieldError("FieldValueRequired", str(self), _text("Required value", None, detail))

    def invalid(self, value: Any, detail: str) -> FieldError:
        """Return the error for an invalid value."""
        text = _text("Invalid value", show(value), detail)
        return FieldError("FieldValueInvalid", str(self), text, shows_null=value is None)

    def invalid_without_value(self, detail: str) -> FieldError:
        """Return the error for a value that texts leave out."""
        return FieldError("FieldValueInvalid", str(self), _text("Invalid value", None, detail))

    def internal(self, detail: str) -> FieldError:
        """Return the error for a value that made the server fail."""
        return FieldError("InternalError", str(self), _text("Internal error", None, detail))

    def type_invalid(self, value: Any, detail: str) -> FieldError:
        """Return the error for a value of the wrong type."""
        text = _text("Invalid value", show(value), detail)
        return FieldError("FieldValueTypeInvalid", str(self), text, shows_null=value is None)

    def not_supported(self, value: Any, supported: Iterable[str]) -> FieldError:
        """Return the error for an unknown value of an enumeration; the list is not sorted."""
        choices = ", ".join(quote(choice) for choice in supported)
        detail = f"supported values: {choices}" if choices else ""
        return FieldError(
            "FieldValueNotSupported", str(self), _text("Unsupported value", show(value), detail)
        )

    def duplicate(self, value: Any) -> FieldError:
        """Return the error for a repeated value."""
        return FieldError(
            "FieldValueDuplicate", str(self), _text("Duplicate value", show(value), "")
        )

    def forbidden(self, detail: str) -> FieldError:
        """Return the error for a field that must not be set."""
        return FieldError("FieldValueForbidden", str(self), _text("Forbidden", None, detail))

    def too_long(self, limit: int) -> FieldError:
        """Return the error for a value with too many bytes."""
        detail = f"may not be more than {limit} bytes"
        return FieldError("FieldValueTooLong", str(self), _text("Too long", None, detail))

    def too_many_characters(self, limit: int) -> FieldError:
        """Return the error for a text with too many characters."""
        detail = f"may not be more than {limit} characters"
        return FieldError("FieldValueTooLong", str(self), _text("Too long", None, detail))

    def too_many(self, count: int, limit: int) -> FieldError:
        """Return the error for a list with too many entries."""
        noun = "item" if limit == 1 else "items"
        detail = f"must have at most {limit} {noun}"
        return FieldError("FieldValueTooMany", str(self), _text("Too many", str(count), detail))

    def not_found(self, value: Any) -> FieldError:
        """Return the error for a reference to something that does not exist."""
        return FieldError("FieldValueNotFound", str(self), _text("Not found", show(value), ""))


def errors_at(errors: Iterable[FieldError], at: Path) -> Iterator[FieldError]:
    """Yield the errors of a part of an object as errors of the object; their texts stay."""
    for error in errors:
        place = at if error.field == "<nil>" else at.child(error.field)
        yield replace(error, field=str(place))


def value_at(value: Any, path: Iterable[str]) -> Any:
    """Return what an object has at a path of names; None if there is nothing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def value_at_path(value: Any, path: str) -> Any:
    """Return what the path of an error names in an object; None if there is nothing."""
    for step in _STEP.findall(path):
        name = step.strip("[]")
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value
