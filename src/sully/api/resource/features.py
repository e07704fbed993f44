"""Fields that belong to feature gates, and what happens to them while a gate is off.

A field whose gate is off is dropped silently, unless the stored object already used the feature
anywhere: then everything the client sends is kept, so that switching a gate off and on again loses
nothing. Selection criteria of rules are never dropped but refused (validation/rules.py).
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from sully.api.resource.defaults import requests_of, results_of, slice_taints
from sully.machinery.gates import Gates

Obj = dict[str, Any]
Places = Iterator[tuple[Obj, str]]


class Feature(msgspec.Struct, frozen=True):
    """A gate and its fields in an object: (holder, name) pairs."""

    gate: str
    places: Callable[[Obj], Places]

    def used_in(self, obj: Obj) -> bool:
        """Report whether an object has any of the fields."""
        return any(True for _ in self.places(obj))

    def drop_from(self, obj: Obj) -> None:
        """Remove all of the fields."""
        for holder, name in list(self.places(obj)):
            del holder[name]


def drop_disabled(features: tuple[Feature, ...], obj: Obj, old: Obj | None, gates: Gates) -> None:
    """Remove what is switched off and was not in use before."""
    for feature in features:
        if not gates[feature.gate] and not (old is not None and feature.used_in(old)):
            feature.drop_from(obj)


def _set_fields(holder: Obj, *names: str) -> Places:
    for name in names:
        if name in holder:
            yield holder, name


def _devices(obj: Obj) -> Iterator[Obj]:
    yield from obj["spec"].get("devices", ())


def _of_devices(*names: str) -> Callable[[Obj], Places]:
    def places(obj: Obj) -> Places:
        for device in _devices(obj):
            yield from _set_fields(device, *names)

    return places


def _of_spec(*names: str) -> Callable[[Obj], Places]:
    return lambda obj: _set_fields(obj["spec"], *names)


def _partitions(obj: Obj) -> Places:
    yield from _set_fields(obj["spec"], "sharedCounters", "perDeviceNodeSelection")
    names = ("consumesCounters", "nodeName", "nodeSelector", "allNodes")
    yield from _of_devices(*names)(obj)


def _shares(obj: Obj) -> Places:
    for device in _devices(obj):
        yield from _set_fields(device, "allowMultipleAllocations")
        yield from _policies_in(device)


def _policies_in(holder: Obj) -> Places:
    for capacity in holder.get("capacity", {}).values():
        yield from _set_fields(capacity, "requestPolicy")


def _lists_in(holder: Obj) -> Places:
    for attribute in holder.get("attributes", {}).values():
        yield from _set_fields(attribute, "ints", "bools", "strings", "versions")


def _list_attributes(obj: Obj) -> Places:
    for device in _devices(obj):
        yield from _lists_in(device)


def _groups(obj: Obj) -> Places:
    for device in _devices(obj):
        for consumption in device.get("consumesCounters", ()):
            yield from _set_fields(consumption, "compatibilityGroups")


def _of_slice_taints(*names: str) -> Callable[[Obj], Places]:
    def places(obj: Obj) -> Places:
        for taint in slice_taints(obj["spec"]):
            yield from _set_fields(taint, *names)

    return places


def _taints_of_slice(obj: Obj) -> Places:
    yield from _of_spec("taints")(obj)
    yield from _of_devices("taints")(obj)


SLICE_FEATURES = (
    Feature("DRADeviceTaints", _taints_of_slice),
    Feature("DRAPartitionableDevices", _partitions),
    Feature(
        "DRADeviceBindingConditions",
        _of_devices("bindsToNode", "bindingConditions", "bindingFailureConditions"),
    ),
    Feature("DRAConsumableCapacity", _shares),
    Feature("DRAListTypeAttributes", _list_attributes),
    Feature("DRADeviceCompatibilityGroups", _groups),
    Feature("DRANodeAllocatableResources", _of_devices("nodeAllocatableResources")),
    Feature("DRAOptionalNodeOperations", _of_spec("skipNodeOperations")),
    Feature("DRAPartitionableDevicesType", _of_spec("partitionTypeAttribute")),
    Feature("SullyTaintSlices", _of_spec("taints")),
    Feature("SullyTaintDetails", _of_slice_taints("description", "data")),
    Feature("SullyEvictionRate", _of_slice_taints("evictionsPerSecond")),
)


def _of_requests(*names: str) -> Callable[[Obj], Places]:
    def places(spec: Obj) -> Places:
        for request in requests_of(spec):
            yield from _set_fields(request, *names)

    return places


def _shared_requests(spec: Obj) -> Places:
    yield from _of_requests("capacity")(spec)
    for constraint in spec["devices"].get("constraints", ()):
        yield from _set_fields(constraint, "distinctAttribute")


# These read a claim's spec, which a template has too.
CLAIM_SPEC_FEATURES = (
    Feature("DRADeviceTaints", _of_requests("tolerations")),
    Feature("DRAConsumableCapacity", _shared_requests),
    Feature("DRADerivedAttributes", _of_requests("derivedAttributes")),
)


def _of_results(*names: str) -> Callable[[Obj], Places]:
    def places(status: Obj) -> Places:
        for result in results_of(status):
            yield from _set_fields(result, *names)

    return places


def _bindings(status: Obj) -> Places:
    yield from _set_fields(status.get("allocation") or {}, "allocationTimestamp")
    yield from _of_results("bindingConditions", "bindingFailureConditions")(status)


def _shared_results(status: Obj) -> Places:
    yield from _of_results("shareID", "consumedCapacity")(status)
    for device in status.get("devices", ()):
        yield from _set_fields(device, "shareID")


# Tolerations of results are never dropped: eviction reads them there.
CLAIM_STATUS_FEATURES = (
    Feature("DRADeviceBindingConditions", _bindings),
    Feature("DRAConsumableCapacity", _shared_results),
    Feature("DRAOptionalNodeOperations", _of_results("skipNodeOperations")),
)


def _of_rule_taint(*names: str) -> Callable[[Obj], Places]:
    return lambda obj: _set_fields(obj["spec"]["taint"], *names)


RULE_FEATURES = (
    Feature("SullyTaintDetails", _of_rule_taint("description", "data")),
    Feature("SullyEvictionRate", _of_rule_taint("evictionsPerSecond")),
)


def _of_patch(*names: str) -> Callable[[Obj], Places]:
    return lambda obj: _set_fields(obj["spec"]["devices"], *names)


def _of_patch_taints(*names: str) -> Callable[[Obj], Places]:
    def places(obj: Obj) -> Places:
        for taint in obj["spec"]["devices"].get("taints", ()):
            yield from _set_fields(taint, *names)

    return places


PATCH_FEATURES = (
    Feature("DRAAdminControlledDeviceAttributes", _of_patch("attributes", "capacity")),
    Feature("DRADeviceTaints", _of_patch("taints")),
    Feature("DRAListTypeAttributes", lambda obj: _lists_in(obj["spec"]["devices"])),
    Feature("DRAConsumableCapacity", lambda obj: _policies_in(obj["spec"]["devices"])),
    Feature("SullyTaintDetails", _of_patch_taints("description", "data")),
    Feature("SullyEvictionRate", _of_patch_taints("evictionsPerSecond")),
)
POOL_STATUS_FEATURES = (
    Feature("DRAPartitionableDevicesType", _of_spec("defaultPartitionTypeAttribute")),
)
