"""All devices: slices, taint slices, patches and rules, merged and kept up to date.

The cost of an event is that of what it affects: for a slice its devices, for a rule or patch the
pools it names. A device is merged when it or its pool is read, and cached until it changes.
Listeners are notified which devices may have changed; the result does not depend on the order of
events.

Merging is in merging.py, one pool in pools/pool.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from sully.api.resource.annotations import pause_reason
from sully.api.resource.types import (
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.client.informers.cache import Cache
from sully.client.transport import Key
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.pools import DeviceId, PoolId, pool_of
from sully.domain.devices.rules import NO, Choice, choose, names_match, needs_content, sourced
from sully.domain.devices.selectors import Content
from sully.domain.devices.suppression import suppression_of
from sully.views.devices.changes import ChangedPools, Features, InventoryChange, RuleChange
from sully.views.devices.choices import Choices, Owner
from sully.views.devices.merging import MergedPool, Merger
from sully.views.devices.name_index import ANY, Names, names_in
from sully.views.devices.pools.nodes import PoolsByNode
from sully.views.devices.pools.pool import PoolSlices
from sully.views.devices.taint_times import TaintTimes

Listener = Callable[[InventoryChange], None]


class Inventory:
    """The devices of the cluster."""

    def __init__(
        self,
        *,
        slices: Cache[ResourceSlice],
        classes: Cache[DeviceClass],
        rules: Cache[DeviceTaintRule] | None = None,
        patches: Cache[ResourceSlicePatch] | None = None,
        features: Features | None = None,
        defer: bool = False,
    ) -> None:
        self.features = features or Features()
        """What changes devices."""
        self._pools: dict[PoolId, PoolSlices] = {}
        self._by_driver: dict[str, set[PoolId]] = {}
        self._node_pools = PoolsByNode()
        self.choices = Choices(self.class_, defer=defer)
        """What expressions select; with `defer`, some of them are evaluated later."""
        self._merger = Merger(self.features, self.choices)
        self._merged: dict[tuple[str, str], MergedPool] = {}
        """The same pools. A PoolId equals the tuple of its parts, which is faster to create."""
        self._content_rules: set[str] = set()
        self._listeners: list[Listener] = []
        self._classes = classes
        self._rule_cache = rules if self.features.taints and self.features.rules else None
        self._patch_cache = patches if self.features.patches else None
        self._slice_cache = slices
        self.taint_times = TaintTimes()
        """When the taints were added that evict pods."""
        classes.on_change(self._class_changed)
        if self._rule_cache is not None:
            self._rule_cache.on_change(self._rule_changed)
        if self._patch_cache is not None:
            self._patch_cache.on_change(self._patch_changed)
        slices.on_change(self._slice_changed)

    # Reading

    @property
    def sources(self) -> tuple[Cache[Any], ...]:
        """Return the caches that the inventory reads, to check their freshness."""
        caches = (self._slice_cache, self._classes, self._rule_cache, self._patch_cache)
        return tuple(cache for cache in caches if cache is not None)

    def device(self, device: DeviceId) -> EffectiveDevice | None:
        """Return a device, or None if no current slice has it."""
        merged = self._merged.get(device[:2])
        return merged.get(device.device) if merged is not None else None

    def devices(self, pool: PoolId) -> Mapping[str, EffectiveDevice]:
        """Return all devices of a pool by name, until the next change.

        Cheaper than reading each device.
        """
        merged = self._merged.get(pool)
        return merged.all() if merged is not None else {}

    def published(self, device: DeviceId) -> Published | None:
        """Return a device as its driver publishes it."""
        pool = self._pools.get(device.pool_id)
        return pool.get(device.device) if pool is not None else None

    def pool(self, pool: PoolId) -> PoolSlices | None:
        """Return a pool, or None."""
        return self._pools.get(pool)

    def pools(self) -> Iterable[PoolId]:
        """Return all pools, in no particular order."""
        return self._pools.keys()

    def ignored_slices(self) -> list[ResourceSlice]:
        """Return the slices in pools of other nodes, which are not used, by name."""
        slices = (slice_ for pool in self._pools.values() for slice_ in pool.ignored.values())
        return sorted(slices, key=lambda slice_: slice_.metadata.name)

    def pools_for(self, node: str) -> list[PoolId]:
        """Return the pools that a node may use, in order."""
        return self._node_pools.pools_for(node)

    def rule(self, name: str) -> DeviceTaintRule | None:
        """Return a rule, or None; None also if rules are disabled."""
        return self._rule_cache.get(Key("", name)) if self._rule_cache is not None else None

    def slice(self, name: str) -> ResourceSlice | None:
        """Return a slice, or None."""
        return self._slice_cache.get(Key("", name))

    def class_(self, name: str) -> DeviceClass | None:
        """Return a class, or None."""
        return self._classes.get(Key("", name))

    def choose(
        self, rule: DeviceTaintRule, device: DeviceId, content: Content | None = None
    ) -> Choice:
        """Decide whether a rule selects a device, with this content if it is not published."""
        selector = rule.spec.device_selector
        if needs_content(selector):
            if not self.features.rule_selectors:
                # Without its criteria the rule would select far too much.
                return NO
            effective = self.device(device) if self.published(device) else None
            content = effective.content if effective is not None else content
            if selector is not None and content is not None and names_match(selector, device):
                return self.choices.choose(_owner(rule), selector, content)
        return choose(selector, device, content, self.class_)

    def rules_for(self, device: DeviceId, content: Content | None = None) -> list[DeviceTaintRule]:
        """Return the rules that select a device, published or not, by name."""
        rules = [
            prepared.rule
            for prepared in self._merger.rules.for_device(device)
            if self.choose(prepared.rule, device, content).selected
        ]
        return sorted(rules, key=lambda rule: rule.metadata.name)

    def content_rules(self) -> list[DeviceTaintRule]:
        """Return the rules that select by more than names."""
        rules = (self.rule(name) for name in sorted(self._content_rules))
        return [rule for rule in rules if rule is not None]

    def selector_of(self, rule: DeviceTaintRule) -> DeviceTaintSelector | None:
        """Return the selector of a rule; None: it selects no device."""
        selector = rule.spec.device_selector
        if selector is None and self.features.absent_selects_all:
            return DeviceTaintSelector()
        return selector

    def named(self, selector: DeviceTaintSelector) -> Iterator[DeviceId]:
        """Yield the devices whose names match a selector, pool by pool."""
        for pool in sorted(self._pools_named(names_in(selector))):
            names = self._pools[pool].names() if selector.device is None else (selector.device,)
            for name in sorted(names):
                yield DeviceId(*pool, name)

    def count_named(self, selector: DeviceTaintSelector) -> int:
        """Count the devices whose names match a selector, without reading each."""
        pools = self._pools_named(names_in(selector))
        return sum(1 if selector.device is not None else len(self._pools[pool]) for pool in pools)

    def patches_for(self, changed: ChangedPools) -> Iterator[ResourceSlicePatch]:
        """Yield the patches whose names match any of these devices, some perhaps twice."""
        patches = self._merger.patches
        for id_, devices in changed.items() if patches else ():
            pool = self._pools.get(id_)
            names = pool.names() if devices is None and pool is not None else devices
            if names:
                for_all, named = patches.for_pool(id_, partial(frozenset, names))
                yield from for_all
                for name in named:
                    yield from patches.for_device(DeviceId(*id_, name))

    def patch_choices(self, patch: ResourceSlicePatch) -> Iterator[tuple[DeviceId, Choice]]:
        """Yield the devices whose names match a patch, and whether it selects them."""
        for id_ in self.named(patch.spec.devices.filter or DeviceTaintSelector()):
            published = self.published(id_)
            if published is not None:
                yield id_, self.patch_choice(patch, published)

    def patch_choice(self, patch: ResourceSlicePatch, published: Published) -> Choice:
        """Decide whether a patch selects a device, also where patches have no effect."""
        return self._merger.patch_choice(patch, published)

    # Notifying

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with all devices now, and with every change; return how to remove it."""
        self._listeners.append(listener)
        rules = tuple(RuleChange(None, rule) for rule in self._known_rules())
        if self._pools or rules:
            listener(InventoryChange(dict.fromkeys(self._pools), rules))
        return lambda: self._listeners.remove(listener)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[InventoryChange], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that a change affects to a queue."""

        def handle(change: InventoryChange) -> None:
            for key in dict.fromkeys(to_keys(change)):
                add(key)

        return self.on_change(handle)

    def _notify(self, pools: ChangedPools, rules: tuple[RuleChange, ...] = ()) -> None:
        for pool, devices in pools.items():
            merged = self._merged.get(pool)
            if merged is not None:
                merged.forget(devices)
        change = InventoryChange(pools, rules)
        for listener in list(self._listeners):
            listener(change)

    # Events

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        self.taint_times.change(old, new)
        self._node_pools.change(old, new)
        changed: dict[PoolId, frozenset[str] | None] = {}
        before = pool_of(old) if old is not None else None
        after = pool_of(new) if new is not None else None
        if old is not None and before is not None and before != after:
            changed[before] = self._pools[before].remove(old.metadata.name)
            self._drop_if_empty(before)
        if new is not None and after is not None:
            changed[after] = self._pool(after).put(new)
            if before == after:
                # Also unchanged devices, which would keep the old slice in memory.
                self._merged[after].forget({device.name for device in new.spec.devices})
        # A slice that was recreated is younger: the pool may have another owner.
        if old is None or new is None or old.spec != new.spec or any(changed.values()):
            self._notify(changed)

    def _pool(self, id_: PoolId) -> PoolSlices:
        pool = self._pools.get(id_)
        if pool is None:
            pool = self._pools[id_] = PoolSlices(
                id_,
                taint_slices=self.features.taint_slices,
                has_owner=self.features.pool_owners,
            )
            self._merged[id_] = MergedPool(self._merger, pool)
            self._by_driver.setdefault(id_.driver, set()).add(id_)
        return pool

    def _drop_if_empty(self, id_: PoolId) -> None:
        if not self._pools[id_].is_empty():
            return
        del self._pools[id_], self._merged[id_]
        self._by_driver[id_.driver].discard(id_)
        if not self._by_driver[id_.driver]:
            del self._by_driver[id_.driver]

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        self.taint_times.change(old, new)
        states = [state for state in (old, new) if state is not None]
        for rule in states:
            self._merger.remove_rule(rule.metadata.name)
            self.choices.forget(_owner(rule))
            self._content_rules.discard(rule.metadata.name)
        if new is not None and needs_content(new.spec.device_selector):
            self._content_rules.add(new.metadata.name)
        if new is not None:
            for names in self._names_of(new):
                self._merger.put_rule(new, names)
        if old is not None and new is not None and _same(old, new):
            return
        changed = self._pools_of(names for rule in states for names in self._names_of(rule))
        if self.features.suppression and any(map(suppression_of, states)):
            # Unlike other rules, they may also make devices available.
            self._notify(changed)
        self._notify(changed, (RuleChange(old, new),))

    def _patch_changed(
        self, old: ResourceSlicePatch | None, new: ResourceSlicePatch | None
    ) -> None:
        self.taint_times.change(old, new)
        for patch in (old, new):
            if patch is not None:
                self._merger.patches.remove(patch.metadata.name)
                self.choices.forget(_owner(patch))
        if new is not None:
            self._merger.patches.put(new.metadata.name, _filter_names(new), new)
        if old is not None and new is not None and old.spec == new.spec:
            return
        names = [_filter_names(patch) for patch in (old, new) if patch is not None]
        self._notify(self._pools_of(names))

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if old is not None and new is not None and old.spec.selectors == new.spec.selectors:
            return
        self._merger.forget()
        names = {state.metadata.name for state in (old, new) if state is not None}
        for rule in list(self._known_rules()):
            if _class_in(rule.spec.device_selector) in names:
                self.choices.forget(_owner(rule))
                self._notify(self._pools_of(self._names_of(rule)), (RuleChange(rule, rule),))
        for patch in list(self._patch_cache.values()) if self._patch_cache is not None else ():
            if _class_in(patch.spec.devices.filter) in names:
                self.choices.forget(_owner(patch))
                self._notify(self._pools_of((_filter_names(patch),)))

    def evaluated(self, owner: Owner) -> None:
        """Merge the devices again that a rule or patch may select, after it was evaluated."""
        self._merger.forget()
        if owner.kind == "DeviceTaintRule":
            rule = self.rule(owner.name)
            if rule is not None:
                self._notify(self._pools_of(self._names_of(rule)), (RuleChange(rule, rule),))
        elif self._patch_cache is not None:
            patch = self._patch_cache.get(Key("", owner.name))
            if patch is not None:
                self._notify(self._pools_of((_filter_names(patch),)))

    def _known_rules(self) -> Iterable[DeviceTaintRule]:
        return self._rule_cache.values() if self._rule_cache is not None else ()

    def _pools_of(self, selections: Iterable[Names]) -> ChangedPools:
        """Return the pools and devices that have these names."""
        changed: dict[PoolId, frozenset[str] | None] = {}
        for names in selections:
            pools = self._pools_named(names)
            if names.device is None:
                changed.update(dict.fromkeys(pools))
                continue
            for pool in pools:
                devices = changed.get(pool, frozenset())
                changed[pool] = None if devices is None else devices | {names.device}
        return changed

    def _names_of(self, rule: DeviceTaintRule) -> list[Names]:
        selector = self.selector_of(rule)
        return [names_in(selector)] if selector is not None else []

    def _pools_named(self, names: Names) -> list[PoolId]:
        """Return the pools that have devices with these names."""
        if names.driver is not None and names.pool is not None:
            id_ = PoolId(names.driver, names.pool)
            pools = [id_] if id_ in self._pools else []
        elif names.driver is not None:
            pools = list(self._by_driver.get(names.driver, ()))
        else:
            pools = list(filter(names.match_pool, self._pools))
        if names.device is not None:
            pools = [pool for pool in pools if names.device in self._pools[pool]]
        return pools


def _same(old: DeviceTaintRule, new: DeviceTaintRule) -> bool:
    """Report whether two states of a rule have the same effect on devices and pods."""
    paused = pause_reason(old.metadata.annotations), pause_reason(new.metadata.annotations)
    suppresses = suppression_of(old) == suppression_of(new)
    same = old.spec == new.spec and sourced(old) == sourced(new)
    return same and suppresses and paused[0] == paused[1]


def _owner(rule_or_patch: DeviceTaintRule | ResourceSlicePatch) -> Owner:
    rule = isinstance(rule_or_patch, DeviceTaintRule)
    kind = "DeviceTaintRule" if rule else "ResourceSlicePatch"
    return Owner(kind, rule_or_patch.metadata.name)


def _class_in(selector: DeviceTaintSelector | None) -> str | None:
    return selector.device_class_name if selector is not None else None


def _filter_names(patch: ResourceSlicePatch) -> Names:
    filter_ = patch.spec.devices.filter
    return names_in(filter_) if filter_ is not None else ANY
