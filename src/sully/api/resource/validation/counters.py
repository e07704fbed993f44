"""Counters that devices of a pool share: the sets a slice publishes, what devices take of them.

Whether the sets that devices name exist is not checked here: they may be in another slice.
"""

from collections.abc import Mapping

from sully.api.resource.checks import Errors, unique, validate_declared_items
from sully.api.resource.types import Counter, CounterSet, DeviceCounterConsumption
from sully.api.resource.validation.names import validate_short_name
from sully.machinery.declared import declared
from sully.machinery.fields import Path

CONSUMPTIONS_MAX = 2
COUNTERS_MAX = 32
GROUPS_MAX = 2


def validate_consumptions(consumptions: tuple[DeviceCounterConsumption, ...], at: Path) -> Errors:
    """Check what a device consumes of counter sets."""
    if len(consumptions) <= CONSUMPTIONS_MAX:
        yield from declared(unique(consumptions, lambda one: one.counter_set, at))
    yield from validate_declared_items(consumptions, CONSUMPTIONS_MAX, _consumption, at)


def _consumption(consumption: DeviceCounterConsumption, at: Path) -> Errors:
    yield from _counters(consumption.counter_set, consumption.counters, at, "counterSet")
    groups = at.child("compatibilityGroups")
    if len(consumption.compatibility_groups) > GROUPS_MAX:
        yield from declared([groups.too_many(len(consumption.compatibility_groups), GROUPS_MAX)])
    yield from declared(unique(consumption.compatibility_groups, str, groups))


def validate_counter_set(counters: CounterSet, at: Path) -> Errors:
    """Check the counters that a slice publishes."""
    yield from _counters(counters.name, counters.counters, at, "name")


def _counters(name: str, counters: Mapping[str, Counter], at: Path, name_field: str) -> Errors:
    if not name:
        yield from declared([at.child(name_field).required()])
    else:
        yield from declared(validate_short_name(name, at.child(name_field)))
    at = at.child("counters")
    if not counters:
        yield from declared([at.required()])
    elif len(counters) > COUNTERS_MAX:
        yield at.too_many(len(counters), COUNTERS_MAX)
    else:
        for key in counters:
            yield from declared(validate_short_name(key, at))
