"""The environment of device selectors, and devices as its input.

An expression sees one variable, `device`, with exactly the fields declared here; the sizes are the
limits that the API puts on devices, and bound what a selector can cost. A lookup of an unknown
domain gives an empty map rather than an error; `in` still returns false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Protocol

from sully.machinery.cel import types
from sully.machinery.cel.costs.sizes import MOST
from sully.machinery.cel.declarations import SizeEstimate
from sully.machinery.cel.environment import Environment, Program
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.catalogue import kubernetes_library
from sully.machinery.cel.library.kubernetes import QUANTITY, SEMVER
from sully.machinery.cel.types import Type
from sully.machinery.cel.values import type_of
from sully.machinery.formats.quantity import Quantity, parse_quantity
from sully.machinery.formats.semver import SemverError, parse_semver
from sully.machinery.memo import memoized

MAX_DOMAIN: Final = 63
MAX_ID: Final = 32
MAX_DRIVER: Final = 63
MAX_ENTRIES: Final = 32
MAX_VALUE: Final = 64
DEVICE_TYPE: Final = types.object_type("kubernetes.DRADevice")


def _maps(value: SizeEstimate, *, named: bool) -> SizeEstimate:
    inner = SizeEstimate(MAX_ENTRIES, key=SizeEstimate(MAX_ID), element=value, named=named)
    return SizeEstimate(MAX_ENTRIES, key=SizeEstimate(MAX_DOMAIN), element=inner)


@lru_cache(maxsize=8)
def device_environment(
    *, consumable_capacity: bool = True, list_attributes: bool = False, derived: bool = False
) -> Environment:
    """Return the environment of selectors under these feature gates.

    Stored expressions, which may have been written under other gates, are compiled with all of
    them on. With `derived`, the expression computes an attribute instead of a yes or no.
    """
    # With lists the type must be one that loops accept; the two differ only in their names.
    attribute = types.DYN if list_attributes else types.ANY
    fields: dict[str, Type] = {
        "driver": types.STRING,
        "attributes": _nested(attribute),
        "capacity": _nested(QUANTITY),
    }
    sizes = {
        "driver": SizeEstimate(MAX_DRIVER),
        "attributes": _maps(SizeEstimate(MAX_VALUE), named=True),
        "capacity": _maps(SizeEstimate(MOST), named=False),
    }
    if consumable_capacity:
        fields["allowMultipleAllocations"] = types.BOOL
        sizes["allowMultipleAllocations"] = SizeEstimate(1)
    environment = Environment(
        library=kubernetes_library(includes=list_attributes),
        variables={"device": DEVICE_TYPE},
        objects={DEVICE_TYPE.name: fields},
        sizes={"device": SizeEstimate(MOST, fields=sizes)},
        results=(types.BOOL, attribute),
    )
    return _deriving(environment, lists=list_attributes) if derived else environment


def _deriving(environment: Environment, *, lists: bool) -> Environment:
    scalars = (types.BOOL, types.INT, types.STRING, types.ANY, types.DYN, SEMVER)
    expects = "a primitive scalar (string, integer, boolean, semver)"
    if not lists:
        return replace(environment, results=scalars, expects=expects)
    results = (*scalars, *map(types.list_of, scalars))
    return replace(environment, results=results, expects=f"{expects} or a list of these scalars")


def _nested(value: Type) -> Type:
    return types.map_of(types.STRING, types.map_of(types.STRING, value))


class Domains(dict[str, dict[str, Any]]):
    """Domain to name to value; an unknown domain reads as an empty map."""

    __slots__ = ()

    def __missing__(self, _: str) -> dict[str, Any]:
        return {}


class Attribute(Protocol):
    """A typed attribute: the one member that is set is its value."""

    @property
    def int_value(self) -> int | None: ...
    @property
    def bool_value(self) -> bool | None: ...
    @property
    def string_value(self) -> str | None: ...
    @property
    def version_value(self) -> str | None: ...
    @property
    def ints(self) -> Sequence[int] | None: ...
    @property
    def bools(self) -> Sequence[bool] | None: ...
    @property
    def strings(self) -> Sequence[str] | None: ...
    @property
    def versions(self) -> Sequence[str] | None: ...


class Capacity(Protocol):
    """A typed capacity."""

    @property
    def value(self) -> str: ...


class DeviceInput(dict[str, Any]):
    """The activation of one device, built once and evaluated often.

    `attributes` maps qualified names to `{"int": 1}`, `{"string": "a"}` and so on, `capacity` maps
    them to `{"value": "10Gi"}`, as the API has them; typed objects with the same members will do.
    Raises EvaluationError for a value that expressions cannot see.
    """

    __slots__ = ()

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, Mapping[str, Any] | Attribute] | None = None,
        capacity: Mapping[str, Mapping[str, Any] | Capacity | str] | None = None,
        *,
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        known, capacities = Domains(), Domains()
        for name, attribute in (attributes or {}).items():
            _put(known, name, driver, _attribute(name, attribute))
        for name, amount in (capacity or {}).items():
            _put(capacities, name, driver, _amount(amount))
        device = {
            "driver": driver,
            "attributes": known,
            "capacity": capacities,
            "allowMultipleAllocations": bool(allow_multiple_allocations),
        }
        super().__init__(device=device)


def _put(domains: Domains, name: str, driver: str, value: Any) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    domains.setdefault(domain, {})[identifier] = value


_KINDS: Final = ("int", "bool", "string", "ints", "bools", "strings", "version", "versions")
_MEMBERS: Final = attrgetter(*(kind if kind[-1] == "s" else f"{kind}_value" for kind in _KINDS))


def _attribute(name: str, attribute: Mapping[str, Any] | Attribute) -> Any:
    if isinstance(attribute, Mapping):
        members: Sequence[Any] = [attribute.get(kind) for kind in _KINDS]
    else:
        members = _MEMBERS(attribute)
    *plain, version, versions = members
    for value in plain:
        if value is not None:
            return value
    try:
        if version is not None:
            return parse_semver(version)
        if versions is not None:
            return [parse_semver(item) for item in versions]
    except SemverError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


def _amount(amount: Mapping[str, Any] | Capacity | str) -> Quantity:
    if isinstance(amount, str):
        return _parsed(amount)
    value = amount["value"] if isinstance(amount, Mapping) else amount.value
    return value if isinstance(value, Quantity) else _parsed(str(value))


@memoized(1024)
def _parsed(text: str) -> Quantity:
    # A fleet has few sizes of devices.
    return parse_quantity(text)


def selects(program: Program, device: DeviceInput) -> bool:
    """Report whether a selector matches; raise EvaluationError if it cannot be evaluated."""
    return as_bool(program.evaluate(device))


def as_bool(result: Any) -> bool:
    """Return the result of a selector; raise EvaluationError if it is neither yes nor no."""
    if result is True or result is False:
        return bool(result)
    name = type_of(result).name
    text = f"CEL result of type {name} could not be converted to bool"
    raise EvaluationError(f"{text}: unsupported type conversion from '{name}' to bool")
