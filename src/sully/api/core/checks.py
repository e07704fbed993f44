"""Small checks that the kinds of these groups share: numbers, names, labels, label selectors.

Each is a generator of FieldErrors over plain dicts in normal form (machinery.decode). The checks of
one kind are defined with that kind; those of pods are in pods/.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import (
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)

Obj = dict[str, Any]
Errors = Iterator[FieldError]

DRIVER_MAX = 63
"""Bytes in the name of a driver, of storage or of devices."""
ANNOTATIONS_MAX = 256 * 1024
"""Bytes of all annotations of an object."""
NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"
_IN = "must be specified when `operator` is 'In' or 'NotIn'"
_EXISTS = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
NOT_AN_OPERATOR = "not a valid selector operator"


def not_negative(value: int, at: Path) -> Errors:
    """Check a count."""
    if value < 0:
        yield at.invalid(value, NOT_NEGATIVE)


def counts(obj: Mapping[str, Any], names: Sequence[str], at: Path) -> Errors:
    """Check some counts of an object, which may be absent."""
    for name in names:
        yield from not_negative(obj.get(name, 0), at.child(name))


def between(value: int, low: int, high: int, at: Path) -> Errors:
    """Check a number against both ends of a range."""
    if not low <= value <= high:
        yield at.invalid(value, f"must be between {low} and {high}, inclusive")


def unchanged(new: Any, old: Any, at: Path) -> Errors:
    """Check a field that keeps the value it was created with."""
    if (new or None) != (old or None):
        yield at.invalid(new, IMMUTABLE)


def one_of(value: str, supported: Sequence[str], at: Path, *, required: bool = False) -> Errors:
    """Check an enumeration, which error texts list in order of the alphabet."""
    if not value and required:
        yield at.required()
    elif value not in supported:
        yield at.not_supported(value, sorted(supported))


def formatted(value: str, problems: Callable[[str], Sequence[str]], at: Path) -> Errors:
    """Yield an error for each problem of a value."""
    for text in problems(value):
        yield at.invalid(value, text)


def driver_name(name: str, at: Path) -> Errors:
    """Check the name of a driver: a short subdomain in which case does not matter."""
    if not name:
        yield at.required()
        return
    if len(name.encode()) > DRIVER_MAX:
        yield at.too_long(DRIVER_MAX)
    for text in dns_subdomain_problems(name.lower()):
        yield at.invalid(name, text)


def dns_label(value: str, at: Path) -> Errors:
    """Check an RFC 1123 label."""
    return formatted(value, dns_label_problems, at)


def dns_subdomain(value: str, at: Path) -> Errors:
    """Check an RFC 1123 subdomain."""
    return formatted(value, dns_subdomain_problems, at)


def label_key(value: str, at: Path) -> Errors:
    """Check `[prefix/]name`."""
    return formatted(value, label_key_problems, at)


def labels(values: Mapping[str, str], at: Path) -> Errors:
    """Check a map of labels; errors name the map, not the entry."""
    for key, value in sorted(values.items()):
        yield from label_key(key, at)
        yield from formatted(value, label_value_problems, at)


def annotations(values: Mapping[str, str], at: Path) -> Errors:
    """Check a map of annotations, and its size; errors name the map, not the entry."""
    total = 0
    for key, value in sorted(values.items()):
        # Case does not matter.
        for text in label_key_problems(key.lower()):
            yield at.invalid(key, text)
        total += len(key.encode()) + len(value.encode())
    if total > ANNOTATIONS_MAX:
        yield at.too_long(ANNOTATIONS_MAX)


def label_selector(selector: Obj | None, at: Path) -> Errors:
    """Check a LabelSelector; an absent one is fine."""
    if selector is None:
        return
    yield from labels(selector.get("matchLabels") or {}, at.child("matchLabels"))
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression(expression, at.child("matchExpressions").index(position))


def _expression(expression: Obj, at: Path) -> Errors:
    values = expression.get("values") or []
    yield from set_operator(expression, at)
    yield from label_key(expression.get("key", ""), at.child("key"))
    for position, value in enumerate(values):
        yield from formatted(value, label_value_problems, at.child("values").index(position))


def set_operator(
    expression: Obj, at: Path, otherwise: Callable[[Obj, Path], Errors] | None = None
) -> Errors:
    """Check that operator and values fit; `otherwise` checks other operators."""
    values = expression.get("values") or []
    match expression.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                yield at.child("values").required(_IN)
        case "Exists" | "DoesNotExist":
            if values:
                yield at.child("values").forbidden(_EXISTS)
        case operator:
            if otherwise is None:
                yield at.child("operator").invalid(operator, NOT_AN_OPERATOR)
            else:
                yield from otherwise(expression, at)


def explained(error: FieldError, why: str) -> FieldError:
    """Add a reason to an error whose kind has none of its own."""
    return replace(error, body=f"{error.body}: {why}")


def as_go(value: Obj, *names: str) -> Obj:
    """Return an object under the names of Go's fields, which is how error texts quote it."""
    return {name: value.get(name[0].lower() + name[1:]) for name in names}


def selector_in_order(selector: Obj | None) -> Obj | None:
    """Return a LabelSelector with its fields in the order in which error texts quote them."""
    if selector is None:
        return None
    shown: Obj = {}
    if selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if expressions := selector.get("matchExpressions"):
        # Key and operator are written also when they are empty.
        shown["matchExpressions"] = [
            {"key": "", "operator": ""} | _picked(one, ("key", "operator", "values"))
            for one in expressions
        ]
    return shown


def same_selector(spec: Obj, old: Obj) -> Errors:
    """Check that a workload keeps the selector of its pods."""
    new, before = spec.get("selector"), old.get("selector")
    if not same(new, before):
        yield Path("spec.selector").invalid(selector_in_order(new), IMMUTABLE)


def _picked(value: Obj, names: Sequence[str]) -> Obj:
    return {name: value[name] for name in names if name in value}


def same(left: Any, right: Any) -> bool:
    """Compare as Kubernetes does: an empty list or map equals an absent one."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(left.get(key), right.get(key)) for key in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if left in ([], {}, None) and right in ([], {}, None):
        return True
    return bool(left == right)
