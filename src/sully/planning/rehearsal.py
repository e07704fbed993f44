"""Runs a change on a copy: pods are evicted, replaced and scheduled, until nothing more happens.

First the cluster settles as it is, so that what would happen anyway is not attributed to the
change. At every moment pods are evicted first, then replaced, then scheduled. telling.py turns what
happened into a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.availability import Availability, used_up
from sully.domain.allocation.capacity import left_of
from sully.domain.allocation.ledger import PoolUse
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId
from sully.domain.eviction.judge import Evict, Reason, Wait
from sully.domain.planning.differences import Merged, differences
from sully.domain.planning.objects import PlannedPod
from sully.domain.planning.replacing import (
    Replacement,
    in_batches,
    is_replaced,
    replacement,
    waits_for_the_end,
)
from sully.domain.planning.report import DeviceTold
from sully.domain.planning.supply import Counted, Counter, Supply
from sully.planning.changes import Change, apply, copies, let_expire, told
from sully.planning.evicting import Evictions
from sully.planning.scheduler import Pending, PlannedScheduler
from sully.planning.settings import Settings
from sully.planning.world import World
from sully.views.devices.changes import Change as Touch
from sully.views.devices.changes import RuleChange
from sully.views.devices.name_index import Names
from sully.views.snapshot.snapshot import Snapshot

_MOST_MOMENTS = 200_000
"""An end for plans that have none."""


@dataclass(slots=True)
class Eviction:
    """One evicted pod, and what becomes of its work."""

    pod: PlannedPod
    at: datetime
    reasons: tuple[Reason, ...]
    anyway: bool
    """It would be evicted as early without the change."""
    replacement: str = ""
    """The uid of the pod that replaces it; empty if none does."""
    missing: str = ""
    """The template that the claim of the replacement should be made from, and that is gone."""
    evicted_again: datetime | None = None
    """When the replacement was due for eviction itself."""
    claims: dict[DeviceId, tuple[str, ...]] = field(default_factory=dict)
    """The claims on those of its devices that no slice has any more."""


class Rehearsal:
    """A copy of the cluster, moved forward in time."""

    def __init__(
        self, snapshot: Snapshot, settings: Settings | None = None, *, start: datetime | None = None
    ) -> None:
        self.world = World(snapshot, settings or Settings(), start or snapshot.taken)
        self.evicted: list[Eviction] = []
        self.changes: list[str] = []
        self.evictions = Evictions(self.world, self._evicted)
        self.evictions.on_skipped = self._due_again
        self.scheduler = PlannedScheduler(self.world, self._bound)
        self._replaced: dict[str, Eviction] = {}
        """Evictions by the uid of the replacement."""
        self._anyway: dict[str, datetime] = {}
        """When pods are evicted without the change, by uid."""
        self._to_replace: list[Eviction] = []
        self._counter = self._counting()
        self.before: Merged = {}
        self.after: Merged = {}
        """All devices before and right after the change."""
        self.supply: dict[str, Supply] = {}
        self.bound_before: frozenset[str] = frozenset()
        self.differences: tuple[DeviceTold, ...] = ()
        self.restless: set[str] = set()
        """Pods, by uid, that were Pending before, got a node, and are due for eviction there."""
        self.supply_after: dict[str, Supply] | None = None
        """What is left of each class, when it is most interesting: before the change ends."""

    # -- running ----------------------------------------------------------------------------------

    def run(self, changes: Sequence[Change]) -> None:
        """Let the cluster come to rest, apply the changes, and see what happens."""
        world = self.world
        self.scheduler.settle()
        self.bound_before = frozenset(self.scheduler.bindings)
        self.evictions.clear_exemptions()
        let_expire(world)
        self.before = self.merged()
        waiting = self._foresee()
        self.supply = self.count(self.before)
        self._end_terminating()
        world.inventory.on_change(self._devices_changed)
        world.usage.on_change(self._uses_changed)
        # The first has just reported everything; the order of evictions must not depend on that.
        self.evictions.start_with(waiting)
        self.changes = [
            told(each, copies(world)[each.kind.plural].get(each.key)) for each in changes
        ]
        for each in changes:
            apply(world, each, self._ends)
        self._counter = self._counting()
        self.after = self.merged()
        self.differences = tuple(differences(self.before, self.after, self._holders))
        self._settle()
        until = world.timeline.start + world.settings.horizon
        for _ in range(_MOST_MOMENTS):
            if not world.timeline.leap(until):
                break
            self._settle()
        self.scheduler.diagnose()
        self._ends()

    def _ends(self) -> None:
        """Count what is left while the change still holds, and once more never."""
        if self.supply_after is None:
            # Devices as the change left them: that other rules end meanwhile is not its doing.
            self.supply_after = self.count(self.after)

    def _settle(self) -> None:
        """Let everyone work at this moment until nobody has anything to do."""
        while True:
            self.evictions.settle()
            self._replace()
            self.scheduler.settle()
            if not self.evictions.settle() and not self._to_replace:
                return

    def _foresee(self) -> list[Key]:
        """Note which pods are evicted without the change, and when; return them in that order."""
        found: list[tuple[datetime, Key]] = []
        for key in self._on_tainted_devices():
            pod = self.world.pods.get(key)
            if pod is None:
                continue
            match self.evictions.verdict(pod):
                case Wait(until):
                    found.append((until, key))
                    self._anyway[pod.metadata.uid] = until
                case Evict(since):
                    found.append((since, key))
                    self._anyway[pod.metadata.uid] = self.world.timeline.start
                case _:
                    continue
        return [key for _, key in sorted(found)]

    def _on_tainted_devices(self) -> set[Key]:
        """Return the pods that may be evicted as things are, without looking at others."""
        world = self.world
        rules = tuple(RuleChange(None, rule) for rule in world.rules.values())
        # Rules also hit devices that no slice has any more.
        found = set(world.exposures.touched_by(Touch({}, rules))) if rules else set()
        for pool, devices in self.before.items():
            names = [name for name, each in devices.items() if each.taints]
            found.update(world.usage.pods_on(pool, names))
        return found

    def _end_terminating(self) -> None:
        """Let pods end that were deleted before the plan starts."""
        quick = self.world.settings.stop_seconds
        for pod in self.world.pods.values():
            end = pod.metadata.deletion_timestamp
            if end is None:
                continue
            if quick is not None:
                # What it is given is reckoned from when it was deleted.
                end -= timedelta(seconds=max(0.0, pod.grace - quick))
            self._end_at(end, pod)

    def _end_at(self, at: datetime, pod: PlannedPod, eviction: Eviction | None = None) -> None:
        self.world.timeline.at(at, lambda: self._gone(pod, eviction))

    # -- what happens -----------------------------------------------------------------------------

    def _devices_changed(self, change: Touch) -> None:
        for key in self.world.exposures.touched_by(change):
            self.evictions.wake(key)

    def _uses_changed(self, pods: Iterable[Key]) -> None:
        for key in sorted(pods):
            self.evictions.wake(key)

    def _evicted(self, pod: PlannedPod, reasons: tuple[Reason, ...]) -> None:
        known, now = self._anyway.get(pod.metadata.uid), self.world.timeline.now()
        eviction = Eviction(pod, now, reasons, anyway=known is not None and known <= now)
        self.evicted.append(eviction)
        eviction.claims = {
            reason.device: self._holders(reason.device)
            for reason in reasons
            if self.world.inventory.published(reason.device) is None
        }
        if is_replaced(pod) and not waits_for_the_end(pod):
            self._to_replace.append(eviction)
        end = pod.metadata.deletion_timestamp
        if end is None or end <= now:
            # Without a grace period it is gone before it is replaced.
            self._gone(pod, eviction)
        else:
            self._end_at(end, pod, eviction)

    def _gone(self, pod: PlannedPod, eviction: Eviction | None) -> None:
        known = self.world.pods.get(key_of(pod))
        if known is not None and known.metadata.uid == pod.metadata.uid:
            self.world.remove_pod(known)
        if eviction is not None and is_replaced(pod) and waits_for_the_end(pod):
            self._to_replace.append(eviction)

    def _replace(self) -> None:
        if not self._to_replace:
            return
        evictions, self._to_replace = self._to_replace, []
        replacements: list[Replacement] = []
        # At a rate they are evicted one by one.
        for eviction in in_batches(evictions, _owner) if len(evictions) > 1 else evictions:
            pod = eviction.pod
            spec_of = partial(self.world.spec_of, pod)
            made = replacement(pod, self.world.timeline.now(), spec_of=spec_of)
            eviction.replacement, eviction.missing = made.pod.metadata.uid, made.missing
            self._replaced[eviction.replacement] = eviction
            replacements.append(made)
        self.scheduler.create(replacements)

    def _bound(self, pod: PlannedPod) -> None:
        # A pod that is due for eviction where it has just been scheduled would be so every time.
        self.evictions.exempt(pod)
        self.evictions.scheduled(pod)

    def _due_again(self, pod: PlannedPod) -> None:
        eviction = self._replaced.get(pod.metadata.uid)
        if eviction is None:
            self.restless.add(pod.metadata.uid)
        elif eviction.evicted_again is None:
            eviction.evicted_again = self.world.timeline.now()

    def _holders(self, device: DeviceId) -> tuple[str, ...]:
        held = self.world.usage.held(Names(*device))
        return tuple(dict.fromkeys(str(key_of(each.claim)) for each in held))

    # -- looking ----------------------------------------------------------------------------------

    def merged(self) -> Merged:
        """Return all devices as they count now."""
        inventory = self.world.inventory
        return {pool: dict(inventory.devices(pool)) for pool in inventory.pools()}

    def count(self, devices: Merged) -> dict[str, Supply]:
        """Count devices by class, with who uses them now."""
        return self._counter.count(self._with_use(devices))

    def _counting(self) -> Counter:
        return Counter({each.metadata.name: each for each in self.world.classes.values()})

    def _with_use(self, merged: Merged) -> Iterator[Counted]:
        inventory, ledger = self.world.inventory, self.scheduler.core.devices.ledger
        for id_, devices in merged.items():
            pool, use = inventory.pool(id_), ledger.get(id_) or PoolUse()
            availability = Availability(
                tuple(pool.slices.values()) if pool is not None else (),
                use.devices.keys() | use.shares.keys(),
            )
            if availability.are_plain and not use.shares:
                # Most pools: then nothing but their users closes devices.
                yield from (Counted(each, name in use.devices) for name, each in devices.items())
                continue
            for name, device in devices.items():
                used = name in use.devices or (name in use.shares and not device.shareable)
                yield Counted(device, used, _is_closed(device, use, availability))

    def pending(self, uid: str) -> Pending | None:
        """Return why a pod stays Pending."""
        return self.scheduler.pending.get(uid)


def _owner(eviction: Eviction) -> tuple[str, str]:
    return eviction.pod.metadata.namespace, eviction.pod.owner_text


def _is_closed(device: EffectiveDevice, use: PoolUse, availability: Availability) -> bool:
    """Report whether nobody could get a device, or a share of it, whoever has it."""
    published = device.published
    if availability.obstacle(published.slice, published.device) is not None:
        return True
    taken = use.amounts.get(published.device.name) if device.shareable else None
    if not taken:
        return False
    return used_up(device.content, left_of(device.content, taken)) is not None
