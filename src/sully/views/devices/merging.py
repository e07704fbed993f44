"""Merges devices with the rules and patches that are for them, one by one or a pool at once.

What names no device is for a whole pool, and nearly every rule does. So there is a `Layer` for each
pool, which most of its devices share, down to the tuple of taints; only those that are named,
patched, or carry taints of their own, are merged for themselves. inventory.py knows when something
changes; how values are merged is decided in `domain/devices/patches.py` and
`domain/devices/rules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

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
from sully.domain.devices.taints import SourcedTaint
from sully.machinery.memo import Memo
from sully.views.devices.changes import Features
from sully.views.devices.choices import Choices, Owner
from sully.views.devices.name_index import NameIndex, Names
from sully.views.devices.pools import Pool

Stack = tuple[SourcedTaint, ...]
_MOST_LOOKS = 8192
"""Contents remembered per set of rules."""
_NOTHING: Memo[Content, Stack] = Memo(0)


@dataclass(frozen=True, slots=True)
class Marking:
    """A rule, and what need not be worked out again for each device."""

    rule: DeviceTaintRule
    alone: Stack
    """Its taint, as devices have it that are under no other rule."""
    by_name: bool

    @classmethod
    def of(cls, rule: DeviceTaintRule) -> Marking:
        """Prepare a rule."""
        return cls(rule, (sourced(rule),), not needs_content(rule.spec.device_selector))


class Layer(NamedTuple):
    """What rules do to the devices of a pool that have nothing else over them."""

    rules: Sequence[Marking]
    stack: Stack | None
    """The taints of all these rules; None if it depends on the device which of them count."""
    seen: Memo[Content, Stack]
    """The taints of devices by what expressions see of them, then; shared with other pools."""
    apart: Set[str]
    """The devices that are merged for themselves."""


class Merger:
    """The rules and patches there are, laid over devices."""

    def __init__(self, features: Features, choices: Choices) -> None:
        self.patches: NameIndex[ResourceSlicePatch] = NameIndex()
        self.rules: NameIndex[Marking] = NameIndex()
        self._features = features
        self._choices = choices
        self._stacks: dict[tuple[str, ...], Stack] = {}
        """The taints of several rules together, by the names of the rules."""
        self._seen: dict[tuple[str, ...], Memo[Content, Stack]] = {}

    def put_rule(self, rule: DeviceTaintRule, names: Names) -> None:
        """Take a rule, new or changed."""
        self.forget()
        self.rules.put(rule.metadata.name, names, Marking.of(rule))

    def remove_rule(self, name: str) -> None:
        """Forget a rule, if it is there."""
        self.forget()
        self.rules.remove(name)

    def forget(self) -> None:
        """Drop what was found out, because a rule changed or a class that one may name."""
        # Layers that did not change keep what they refer to.
        self._stacks, self._seen = {}, {}

    def patch_choice(self, patch: ResourceSlicePatch, published: Published) -> Choice:
        """Decide whether a patch is for a device."""
        filter_ = patch.spec.devices.filter
        if filter_ is None or not needs_content(filter_) or not names_match(filter_, published.id):
            return applies(filter_, published, self._choices.classes)
        owner = Owner("ResourceSlicePatch", patch.metadata.name)
        return self._choices.choose(owner, filter_, published.content)

    def layer(self, pool: Pool) -> Layer:
        """Return what is the same for most devices of a pool."""
        rules, named = self.rules.for_pool(pool.id, pool.names())
        apart: Set[str] = named | pool.tainted()
        if self.patches.reaches(pool.id):
            apart = frozenset(pool.names())
        if all(each.by_name for each in rules):
            return Layer(rules, self._stack(rules), _NOTHING, apart)
        return Layer(rules, None, self._seen.setdefault(_key(rules), Memo(_MOST_LOOKS)), apart)

    def plain(self, published: Published, layer: Layer) -> EffectiveDevice:
        """Return a device that has nothing over it but the layer of its pool."""
        if layer.stack is not None:
            return EffectiveDevice(published, layer.stack)
        stack = layer.seen.get(published.content)
        if stack is None:
            stack = layer.seen.keep(published.content, self._chosen(layer.rules, published))
        return EffectiveDevice(published, stack)

    def apart(self, published: Published, pool: Pool) -> EffectiveDevice:
        """Return a device on which several things come together."""
        id_ = DeviceId(*pool.id, published.device.name)
        near = self.patches.for_device(id_) if self.patches else ()
        device = overlay(
            published,
            [patch for patch in near if self.patch_choice(patch, published).selected],
            pool.marks(id_.device),
            attributes=self._features.patch_attributes,
            taints=self._features.taints,
        )
        rules = self.rules.for_device(id_)
        return with_taints(device, self._chosen(rules, device))

    def _chosen(self, rules: Sequence[Marking], device: Published | EffectiveDevice) -> Stack:
        return self._stack([each for each in rules if each.by_name or self._fits(each, device)])

    def _fits(self, marking: Marking, device: Published | EffectiveDevice) -> bool:
        """Report whether a rule selects a device whose names the index has compared already."""
        selector = marking.rule.spec.device_selector
        if selector is None or not self._features.rule_selectors:
            return False
        owner = Owner("DeviceTaintRule", marking.rule.metadata.name)
        return self._choices.choose(owner, selector, device.content).selected

    def _stack(self, rules: Sequence[Marking]) -> Stack:
        if len(rules) < 2:
            return rules[0].alone if rules else ()
        key = _key(rules)
        found = self._stacks.get(key)
        if found is None:
            found = self._stacks[key] = stacked(each.alone[0] for each in rules)
        return found


class Merged:
    """The devices of one pool, merged when someone asks, and remembered."""

    __slots__ = ("_devices", "_layer", "_merger", "_pool")

    def __init__(self, merger: Merger, pool: Pool) -> None:
        self._merger = merger
        self._pool = pool
        self._layer: Layer | None = None
        self._devices: dict[str, EffectiveDevice] = {}

    def get(self, name: str) -> EffectiveDevice | None:
        """Return a device, or None."""
        found = self._devices.get(name)
        if found is not None:
            return found
        published = self._pool.get(name)
        if published is None:
            return None
        layer = self._current()
        if name in layer.apart:
            found = self._merger.apart(published, self._pool)
        else:
            found = self._merger.plain(published, layer)
        self._devices[name] = found
        return found

    def all(self) -> Mapping[str, EffectiveDevice]:
        """Return all devices by name, until the next change."""
        if len(self._devices) < len(self._pool):
            fresh = self._fresh(self._current())
            # Who was told of a device earlier goes on sharing it.
            fresh.update(self._devices)
            self._devices = fresh
        return self._devices

    def forget(self, devices: Set[str] | None) -> None:
        """Merge devices anew when they are asked for again; None: all of the pool."""
        self._layer = None
        if devices is None or not self._devices:
            self._devices = {}
        else:
            for name in devices:
                self._devices.pop(name, None)

    def _current(self) -> Layer:
        if self._layer is None:
            self._layer = self._merger.layer(self._pool)
        return self._layer

    def _fresh(self, layer: Layer) -> dict[str, EffectiveDevice]:
        merger, pool, stack, apart = self._merger, self._pool, layer.stack, layer.apart
        if stack is not None and not apart:
            # The same as below, in a third of the time.
            return {name: EffectiveDevice(each, stack) for name, each in pool.items()}
        return {
            name: merger.apart(each, pool) if name in apart else merger.plain(each, layer)
            for name, each in pool.items()
        }


def _key(rules: Sequence[Marking]) -> tuple[str, ...]:
    return tuple([each.rule.metadata.name for each in rules])
