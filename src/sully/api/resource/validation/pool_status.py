"""Validation of ResourcePoolStatusRequests: the schema declares all of it but conditions.

A status may be written by every user with the permission, so it is checked as it was sent, as a
dict.
"""

from collections.abc import Callable

from sully.api.resource.checks import Errors, Options, unique, validate_declared_items
from sully.api.resource.types import ResourcePoolStatusRequestSpec
from sully.api.resource.validation.names import (
    validate_caseless_name,
    validate_fully_qualified_name,
    validate_long_name,
    validate_pool_segments,
)
from sully.machinery.declared import declared
from sully.machinery.fields import Path
from sully.machinery.strategy import Obj

LIMIT_MAX = 1000
POOLS_MAX = 1000
SUMMARY_MAX = 32
CONDITIONS_MAX = 10
ERROR_MAX = 256
GATE = "DRAPartitionableDevicesType"
_COUNTS = ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices")


def validate_request_spec(spec: ResourcePoolStatusRequestSpec, at: Path, rules: Options) -> Errors:
    """Yield everything wrong with the spec of a request."""
    yield from declared(_request_spec(spec, at, rules))


def _request_spec(spec: ResourcePoolStatusRequestSpec, at: Path, rules: Options) -> Errors:
    yield from validate_caseless_name(spec.driver, at.child("driver"))
    if spec.pool_name is not None:
        yield from _if_set(spec.pool_name, validate_pool_segments, at.child("poolName"))
    if spec.limit is not None:
        yield from _at_least(spec.limit, 1, at.child("limit"))
        if spec.limit > LIMIT_MAX:
            text = f"must be less than or equal to {LIMIT_MAX}"
            yield at.child("limit").invalid(spec.limit, text)
    attribute = spec.default_partition_type_attribute
    if attribute is not None and rules.gates[GATE]:
        here = at.child("defaultPartitionTypeAttribute")
        yield from validate_fully_qualified_name(attribute, here, rules.compat)


def validate_request_status(status: Obj, at: Path) -> Errors:
    """Yield everything wrong with the counts of a status."""
    yield from declared(_required_count(status, "poolCount", at))
    yield from validate_declared_items(
        status.get("pools") or (), POOLS_MAX, _pool, at.child("pools")
    )


def _pool(pool: Obj, at: Path) -> Errors:
    yield from declared(_pool_names(pool, at))
    yield from declared(_at_least(pool.get("generation", 0), 0, at.child("generation")))
    if pool.get("resourceSliceCount") is not None:
        count = at.child("resourceSliceCount")
        yield from declared(_at_least(pool["resourceSliceCount"], 1, count))
    for name in _COUNTS:
        if pool.get(name) is not None:
            yield from declared(_at_least(pool[name], 0, at.child(name)))
    if pool.get("nodeName") is not None:
        yield from declared(validate_long_name(pool["nodeName"], at.child("nodeName")))
    if len(pool.get("validationError", "").encode()) > ERROR_MAX:
        yield from declared([at.child("validationError").too_long(ERROR_MAX)])
    partitions = pool.get("partitionSummary") or ()
    types = at.child("partitionSummary")
    yield from validate_declared_items(partitions, SUMMARY_MAX, _partition, types)
    yield from declared(unique(partitions, lambda p: (p.get("attribute"), p.get("type")), types))
    if pool.get("shareableSummary") is not None:
        yield from _shareable(pool["shareableSummary"], at.child("shareableSummary"))


def _pool_names(pool: Obj, at: Path) -> Errors:
    yield from validate_caseless_name(pool.get("driver", ""), at.child("driver"))
    yield from validate_pool_segments(pool.get("poolName", ""), at.child("poolName"))


def _partition(partition: Obj, at: Path) -> Errors:
    for name in ("attribute", "type"):
        if not partition.get(name):
            yield from declared([at.child(name).required()])
    for name in ("total", "allocatable"):
        yield from declared(_required_count(partition, name, at))


def _shareable(summary: Obj, at: Path) -> Errors:
    for name in ("fullyAvailableDevices", "partiallyAvailableDevices"):
        yield from declared(_required_count(summary, name, at))
    capacities = summary.get("capacity") or ()
    yield from validate_declared_items(capacities, SUMMARY_MAX, _capacity, at.child("capacity"))


def _capacity(capacity: Obj, at: Path) -> Errors:
    for name in ("name", "total", "consumed", "available"):
        if capacity.get(name) in (None, ""):
            yield from declared([at.child(name).required()])


def _required_count(holder: Obj, name: str, at: Path) -> Errors:
    value = holder.get(name)
    if value is None:
        yield at.child(name).required()
    else:
        yield from _at_least(value, 0, at.child(name))


def _at_least(value: int, minimum: int, at: Path) -> Errors:
    if value < minimum:
        yield at.invalid(value, f"must be greater than or equal to {minimum}")


def _if_set(name: str, check: Callable[[str, Path], Errors], at: Path) -> Errors:
    """Check an optional name; one that is set and empty is invalid."""
    if name:
        yield from check(name, at)
    else:
        yield at.invalid(name, "segment 0: must not be empty")
