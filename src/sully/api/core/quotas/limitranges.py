"""LimitRanges: limits of single containers, pods and claims; limits.py enforces them."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.amounts import container_resource_name, may_overcommit, resource_name
from sully.api.core.checks import Errors, label_key
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_TYPES = ("Container", "Pod", "PersistentVolumeClaim")
_AT = Path("spec").child("limits")
# Which amount must not exceed which, what the error is about, and the names in its text.
_ORDER = (
    ("min", "max", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
    ("defaultRequest", "default", "defaultRequest", "default request value", "default limit value"),
    ("min", "default", "default", "min value", "default value"),
    ("default", "max", "default", "default value", "max value"),
)


class LimitRangeStrategy(Strategy, frozen=True):
    """Writes to limit ranges."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in limits and requests of containers: limits from `max`, requests from them."""
        for item in obj["spec"]["limits"] or ():
            if item["type"] == "Container":
                default = (item.get("max") or {}) | (item.get("default") or {})
                own = item.get("defaultRequest") or {}
                requests = (item.get("min") or {}) | default | own
                for name, amounts in (("default", default), ("defaultRequest", requests)):
                    if amounts:
                        item[name] = amounts

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check types, names and the order of amounts."""
        seen: set[str] = set()
        for position, item in enumerate(obj["spec"]["limits"] or ()):
            at, type_ = _AT.index(position), item["type"]
            problems = [*label_key(type_, at.child("type"))]
            yield from problems
            if not problems and "/" not in type_ and type_ not in _TYPES:
                text = "must be a standard limit type or fully qualified"
                yield at.child("type").invalid(type_, text)
            if type_ in seen:
                yield at.child("type").duplicate(type_)
            seen.add(type_)
            yield from _item(item, at)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state like a new object."""
        return self.validate_create(obj, ctx)


def _item(item: Obj, at: Path) -> Errors:
    is_pod = item["type"] == "Pod"
    check = container_resource_name if item["type"] in _TYPES[:2] else resource_name
    for part in ("max", "min", "default", "defaultRequest"):
        if part.startswith("default") and is_pod:
            if item.get(part):
                text = "may not be specified when `type` is 'Pod'"
                yield at.child(part).forbidden(text)
            continue
        for name in sorted(item.get(part) or {}):
            yield from check(name, at.child(part).key(name))
    storage = [part for part in ("min", "max") if "storage" in (item.get(part) or {})]
    if item["type"] == "PersistentVolumeClaim" and not storage:
        text = "either minimum or maximum storage value is required, but neither was provided"
        yield at.child("limits").required(text)
    for name in sorted(item.get("maxLimitRequestRatio") or {}):
        yield from check(name, at.child("maxLimitRequestRatio").key(name))
    names = {name for part in item.values() if isinstance(part, dict) for name in part}
    for name in sorted(names):
        yield from _amounts(item, name, at)


def _amounts(item: Obj, name: str, at: Path) -> Errors:
    values = {
        part: parse_quantity(amounts[name])
        for part, amounts in item.items()
        if isinstance(amounts, dict) and name in amounts
    }
    if item["type"] == "Pod":
        values = {part: value for part, value in values.items() if "default" not in part}
    text = {part: item[part][name] for part in values}
    for low, high, about, low_name, high_name in _ORDER:
        if low in values and high in values and values[low].nanos > values[high].nanos:
            # Kubernetes quotes the other amount where the default is at fault.
            quoted = {"default": low if low == "min" else high}.get(about, about)
            why = f"{low_name} {text[low]} is greater than {high_name} {text[high]}"
            yield at.child(about).key(name).invalid(text[quoted], why)
    ratio = values.get("maxLimitRequestRatio")
    if ratio is not None:
        yield from _ratio(item, name, at)
    pair = [values.get(part) for part in ("default", "defaultRequest")]
    if None not in pair and not may_overcommit(name) and pair[0] != pair[1]:
        why = f"must equal to defaultRequest value {text['defaultRequest']} in {name}"
        here = at.child("defaultRequest").key(name)
        yield here.invalid(text["defaultRequest"], f"default value {text['default']} {why}")


def _ratio(item: Obj, name: str, at: Path) -> Errors:
    text, here = item["maxLimitRequestRatio"][name], at.child("maxLimitRequestRatio").key(name)
    ratio = parse_quantity(text).nanos
    if ratio < parse_quantity("1").nanos:
        yield here.invalid(text, f"ratio {text} is less than 1")
    low, high = (item.get(part) or {} for part in ("min", "max"))
    if name in low and name in high and parse_quantity(low[name]).nanos:
        limit = parse_quantity(high[name]).nanos / parse_quantity(low[name]).nanos
        if ratio / parse_quantity("1").nanos > limit:
            yield here.invalid(text, f"ratio {text} is greater than max/min = {limit:f}")


LIMIT_RANGES = ResourceType(
    group="",
    kind="LimitRange",
    plural="limitranges",
    singular="limitrange",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1"),),
    strategy=LimitRangeStrategy(),
    short_names=("limits",),
    create_on_update=True,
)
