"""Merges devices with the rules and patches that select them, one by one or a whole pool.

Nearly every rule names no device and so selects whole pools. Therefore each pool has a `Layer` that
most of its devices share, including the tuple of taints; only devices that are named, patched or
have taints of their own are merged individually. inventory.py invalidates; how values are merged is
decided in `domain/devices/patches.py` and `domain/devices/rules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from sully.api.resource.types import DeviceTaintRule, ResourceSlicePatch
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.patches import applies, overlay
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import (
    Choice,
    names_match,
    needs_content,
    sourced,
    stacked,
    with_taints,
)
from sully.domain.devices.selectors import Content
from sully.domain.devices.suppression import RuleSuppression, suppressed, suppression_of
from sully.domain.devices.taints import SourcedTaints
from sully.machinery.memo import Memo
from sully.views.devices.changes import Features
from sully.views.devices.choices import Choices, Owner
from sully.views.devices.name_index import NameIndex, Names
from sully.views.devices.pools.pool import PoolSlices

_MAX_CONTENTS = 8192
"""Contents cached per set of rules."""
_NOTHING: Memo[Content, SourcedTaints] = Memo(0)


class PreparedRule(msgspec.Struct, frozen=True):
    """A rule, and what is computed once for all devices."""

    rule: DeviceTaintRule
    alone: SourcedTaints
    """Its taint, as devices have it that no other rule selects."""
    by_name: bool
    suppression: RuleSuppression | None = None
    """What it suppresses."""

    @classmethod
    def of(cls, rule: DeviceTaintRule) -> PreparedRule:
        """Prepare a rule."""
        by_name = not needs_content(rule.spec.device_selector)
        return cls(rule, (sourced(rule),), by_name, suppression_of(rule))


class Layer(NamedTuple):
    """The taints of the devices of a pool that are not merged individually."""

    rules: Sequence[PreparedRule]
    stack: SourcedTaints | None
    """The taints of all these rules; None if they depend on the device."""
    by_content: Memo[Content, SourcedTaints]
    """If they do: the taints by the content of devices; shared with other pools."""
    individual: Set[str]
    """The devices that are merged individually."""


class Merger:
    """Applies rules and patches to devices."""

    def __init__(self, features: Features, choices: Choices) -> None:
        self.patches: NameIndex[ResourceSlicePatch] = NameIndex()
        self.rules: NameIndex[PreparedRule] = NameIndex()
        self._suppressing: NameIndex[PreparedRule] = NameIndex()
        """The rules that suppress taints of drivers; their own taints only carry that."""
        self._features = features
        self._choices = choices
        self._stacks: dict[tuple[str, ...], SourcedTaints] = {}
        """The taints of several rules together, by the names of the rules."""
        self._by_content: dict[tuple[str, ...], Memo[Content, SourcedTaints]] = {}

    def put_rule(self, rule: DeviceTaintRule, names: Names) -> None:
        """Add or update a rule."""
        self.forget()
        prepared = PreparedRule.of(rule)
        suppresses = self._features.suppression and prepared.suppression is not None
        index = self._suppressing if suppresses else self.rules
        index.put(rule.metadata.name, names, prepared)

    def remove_rule(self, name: str) -> None:
        """Remove a rule if it exists."""
        self.forget()
        self.rules.remove(name)
        self._suppressing.remove(name)

    def forget(self) -> None:
        """Drop cached taints, because a rule or a class changed."""
        # Layers that did not change keep theirs.
        self._stacks, self._by_content = {}, {}

    def patch_choice(self, patch: ResourceSlicePatch, published: Published) -> Choice:
        """Decide whether a patch selects a device."""
        filter_ = patch.spec.devices.filter
        if filter_ is None or not needs_content(filter_) or not names_match(filter_, published.id):
            return applies(filter_, published, self._choices.classes)
        owner = Owner("ResourceSlicePatch", patch.metadata.name)
        return self._choices.choose(owner, filter_, published.content)

    def layer(self, pool: PoolSlices) -> Layer:
        """Return the layer of a pool."""
        rules, named = self.rules.for_pool(pool.id, pool.names)
        tainted = pool.tainted()
        individual: Set[str] = named | tainted if tainted else named
        if self.patches and self.patches.has_any_for(pool.id):
            individual = frozenset(pool.names())
        if all(rule.by_name for rule in rules):
            return Layer(rules, self._stack(rules), _NOTHING, individual)
        by_content = self._by_content.setdefault(_key(rules), Memo(_MAX_CONTENTS))
        return Layer(rules, None, by_content, individual)

    def merge_with_layer(self, published: Published, layer: Layer) -> EffectiveDevice:
        """Return a device with the taints of the layer of its pool."""
        if layer.stack is not None:
            return EffectiveDevice(published, layer.stack)
        stack = layer.by_content.get(published.content)
        if stack is None:
            taints = self._selecting(layer.rules, published)
            stack = layer.by_content.keep(published.content, taints)
        return EffectiveDevice(published, stack)

    def merge_individually(self, published: Published, pool: PoolSlices) -> EffectiveDevice:
        """Return a device with its own taints, patches and rules."""
        id_ = DeviceId(*pool.id, published.device.name)
        patches = self.patches.for_device(id_) if self.patches else ()
        device = overlay(
            published,
            [patch for patch in patches if self.patch_choice(patch, published).selected],
            pool.slice_taints(id_.device),
            attributes=self._features.patch_attributes,
            taints=self._features.taints,
            evictions_only=self._features.patch_evictions_only,
        )
        rules = self.rules.for_device(id_)
        if self._suppressing and device.taints:
            device = self._without_effects(id_, device)
        return with_taints(device, self._selecting(rules, device))

    def _without_effects(self, id_: DeviceId, device: EffectiveDevice) -> EffectiveDevice:
        """Suppress taints of the driver, as rules that select the device specify."""
        suppressions = [
            rule.suppression
            for rule in self._suppressing.for_device(id_)
            if rule.suppression is not None and (rule.by_name or self._selects(rule, device))
        ]
        taints = suppressed(device.taints, suppressions)
        return msgspec.structs.replace(device, taints=taints)

    def _selecting(
        self, rules: Sequence[PreparedRule], device: Published | EffectiveDevice
    ) -> SourcedTaints:
        """Return the taints of the rules that select a device whose names match."""
        return self._stack([rule for rule in rules if rule.by_name or self._selects(rule, device)])

    def _selects(self, prepared: PreparedRule, device: Published | EffectiveDevice) -> bool:
        selector = prepared.rule.spec.device_selector
        if selector is None or not self._features.rule_selectors:
            return False
        owner = Owner("DeviceTaintRule", prepared.rule.metadata.name)
        return self._choices.choose(owner, selector, device.content).selected

    def _stack(self, rules: Sequence[PreparedRule]) -> SourcedTaints:
        if len(rules) < 2:
            return rules[0].alone if rules else ()
        key = _key(rules)
        stack = self._stacks.get(key)
        if stack is None:
            stack = self._stacks[key] = stacked(rule.alone[0] for rule in rules)
        return stack


class MergedPool:
    """The devices of one pool, merged when they are read, and cached."""

    __slots__ = ("_complete", "_devices", "_layer", "_merger", "_pool")

    def __init__(self, merger: Merger, pool: PoolSlices) -> None:
        self._merger = merger
        self._pool = pool
        self._layer: Layer | None = None
        self._devices: dict[str, EffectiveDevice] = {}
        self._complete = False

    def get(self, name: str) -> EffectiveDevice | None:
        """Return a device, or None."""
        device = self._devices.get(name)
        if device is not None:
            return device
        published = self._pool.get(name)
        if published is None:
            return None
        layer = self._current_layer()
        if name in layer.individual:
            device = self._merger.merge_individually(published, self._pool)
        else:
            device = self._merger.merge_with_layer(published, layer)
        self._devices[name] = device
        return device

    def all(self) -> Mapping[str, EffectiveDevice]:
        """Return all devices by name, until the next change."""
        known = self._devices
        if not self._complete:
            self._devices = self._merge_all(self._current_layer())
            if known:
                # Devices that were read before stay the same objects.
                self._devices.update(known)
            self._complete = True
        return self._devices

    def forget(self, devices: Set[str] | None) -> None:
        """Drop cached devices; None: all of the pool."""
        self._layer, self._complete = None, False
        if devices is None or not self._devices:
            self._devices = {}
        else:
            for name in devices:
                self._devices.pop(name, None)

    def _current_layer(self) -> Layer:
        if self._layer is None:
            self._layer = self._merger.layer(self._pool)
        return self._layer

    def _merge_all(self, layer: Layer) -> dict[str, EffectiveDevice]:
        merger, pool, stack = self._merger, self._pool, layer.stack
        individual = layer.individual
        if stack is None:
            return {
                name: merger.merge_individually(device, pool)
                if name in individual
                else merger.merge_with_layer(device, layer)
                for name, device in pool.items()
            }
        # The same, in a third of the time.
        devices = pool.with_taints(stack)
        for name in individual:
            devices[name] = merger.merge_individually(devices[name].published, pool)
        return devices


def _key(rules: Sequence[PreparedRule]) -> tuple[str, ...]:
    return tuple([prepared.rule.metadata.name for prepared in rules])
