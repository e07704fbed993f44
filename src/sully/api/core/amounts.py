"""Amounts of resources, as pods request them and nodes have them."""

import re
from collections.abc import Iterator, Mapping, MutableMapping

from sully.api.core.checks import NOT_NEGATIVE, Errors, label_key
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import NANO, Quantity, parse_quantity

_MILLI = NANO // 1000
_FINER = re.compile(r"[nu]$|[eE]-")
_STANDARD = frozenset(
    (
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
        "storage",
        "requests.storage",
    )
)
_COUNTED = frozenset(
    (
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
HUGE_PAGES = "hugepages-"
NOT_STANDARD = "must be a standard resource type or fully qualified"


def round_up(amounts: MutableMapping[str, str]) -> None:
    """Round amounts finer than a thousandth up, which is as fine as the API keeps them."""
    for name, text in amounts.items():
        if _FINER.search(text):
            quantity = parse_quantity(text)
            nanos = -(-quantity.nanos // _MILLI) * _MILLI
            if nanos != quantity.nanos:
                amounts[name] = str(Quantity(nanos, quantity.style))


def is_native(name: str) -> bool:
    """Report whether the resource is defined by Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    """Report whether requests may exceed what a node has."""
    return is_native(name) and not name.startswith(HUGE_PAGES)


def is_quota_resource(name: str) -> bool:
    """Report whether a quota can limit a resource by this name, among those without a prefix."""
    hugepages = name.removeprefix("requests.").startswith(HUGE_PAGES)
    return hugepages or (name in _STANDARD and name != "storage")


def quota_resource_name(name: str, at: Path) -> Errors:
    """Check the name of a resource that a quota limits."""
    problems = [*label_key(name, at)]
    yield from problems
    if "/" in name:
        return
    if not problems and name not in _STANDARD and not is_quota_resource(name):
        yield at.invalid(name, NOT_STANDARD)
    if not is_quota_resource(name):
        yield at.invalid(name, "must be a standard resource for quota")


def is_integer(name: str) -> bool:
    """Report whether a resource is counted in whole numbers."""
    extended = not is_native(name) and not name.startswith("requests.")
    return name in _COUNTED or extended


def amount(name: str, text: str, at: Path) -> Errors:
    """Check one amount: not negative, and whole where it is a count."""
    value = parse_quantity(text)
    if value.sign() < 0:
        yield at.invalid(text, NOT_NEGATIVE)
    if is_integer(name) and not _whole(value):
        yield at.invalid(text, "must be an integer")


def _whole(value: Quantity) -> bool:
    # Only thousandths count: finer parts are rounded to them.
    return -(-value.nanos // _MILLI) % 1000 == 0


def amounts(values: Mapping[str, str], at: Path) -> Iterator[FieldError]:
    """Check amounts that are written as fields, as nodes report them."""
    for name, text in sorted(values.items()):
        yield from amount(name, text, at.child(name))


def resource_name(name: str, at: Path) -> Errors:
    """Check that the name of a resource is known, or has a domain."""
    problems = [*label_key(name, at)]
    yield from problems
    known = name in _STANDARD or name.startswith(HUGE_PAGES) or "/" in name
    if not problems and not known:
        yield at.invalid(name, NOT_STANDARD)


def container_resource_name(name: str, at: Path) -> Errors:
    """Check the name of a resource that a container requests."""
    yield from resource_name(name, at)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(HUGE_PAGES):
            yield at.invalid(name, "must be a standard resource for containers")
    elif not is_native(name) and name.startswith("requests."):
        yield at.invalid(name, "doesn't follow extended resource name standard")
