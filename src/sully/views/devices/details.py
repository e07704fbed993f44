"""Devices as people ask about them: one device with everything that is known of it.

Joins the inventory with its use, device by device: where it is, the taints on it with their origin
and end, which claims and pods hold it, and what they tolerate; and whether anybody else could get
it. A device that is held but not published any more is there too: it still keeps its pods, and
rules still hit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sully.api.resource.annotations import expiry, pause_reason
from sully.api.resource.types import DeviceTaintSelector, DeviceToleration, ResourceSlicePatch
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.availability import Availability, Obstacle, used_up
from sully.domain.allocation.capacity import left_of, taken_of
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.devices.rules import choose_by_content, recorded, sourced
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.judge import EvictionPolicy, eviction_time
from sully.domain.tolerations import tolerates
from sully.machinery.quantity import Quantity
from sully.views.devices.inventory import Inventory
from sully.views.devices.name_index import Names
from sully.views.devices.usage import Held, Usage
from sully.views.snapshot.snapshot import ALL_EFFECTS

ALL_NODES = "*"
"""Where a device is that every node can reach."""
SOME_NODES = "(selector)"
"""Where a device is that is for the nodes with certain labels."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A taint on a device, with what its origin says about it."""

    sourced: SourcedTaint
    ends: datetime | None = None
    """When its rule or patch is to be removed, if that was said."""
    paused: str | None = None
    """Why it evicts nobody for now, if it does not."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that has the device, and the pods that use the claim."""

    claim: Key
    pods: tuple[Key, ...]
    tolerations: tuple[DeviceToleration, ...] = ()
    """Those that let it keep the device despite its taints."""
    admin: bool = False
    """Whether it only looks at the device, beside those who use it."""
    leaves: datetime | None = None
    """When its pods must leave because of the taints, if they must."""
    request: str = ""
    """For which of its requests; behind a slash, which of the alternatives it got."""
    share: str | None = None
    """Which of the shares of the device it has; None: all of it."""
    consumed: Mapping[str, str] = field(default_factory=dict)
    """How much its share takes."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One device, as it is now."""

    id: DeviceId
    device: EffectiveDevice | None
    """None: no slice has it any more, but a claim still does."""
    node: str
    marks: tuple[Mark, ...] = ()
    holders: tuple[Holder, ...] = ()
    obstacle: Obstacle | None = None
    """What keeps everybody from it, other than its taints and whoever has it."""
    left: Mapping[str, Quantity] = field(default_factory=dict)
    """Of one that can be shared: how much of each capacity is left."""
    users_known: bool = True
    """False: whoever asks may not see claims, so nobody can say who has it."""

    @property
    def shareable(self) -> bool:
        """Report whether several can have a part of it."""
        return self.device is not None and self.device.shareable

    @property
    def free(self) -> bool:
        """Report whether a claim that tolerates its taints could get it, or a share of it."""
        if self.device is None or self.obstacle is not None:
            return False
        shared = self.shareable
        return all(each.admin or (shared and each.share is not None) for each in self.holders)


class Sights:
    """All devices of a cluster, to look at."""

    def __init__(
        self,
        inventory: Inventory,
        usage: Usage,
        patches: Cache[ResourceSlicePatch],
        *,
        policy: EvictionPolicy = ALL_EFFECTS,
        users_known: bool = True,
    ) -> None:
        self._users_known = users_known
        self._inventory = inventory
        self._usage = usage
        self._patches = patches
        self._policy = policy
        self._ends: dict[tuple[str, str], tuple[datetime | None, str | None]] = {}

    def all(self, now: datetime) -> Iterator[Sight]:
        """Yield every device, by driver, pool and name."""
        for pool in self.pools():
            yield from self.pool(pool, now)

    def pools(self) -> list[PoolId]:
        """Return all pools with a device, published or held, in order."""
        known = {*self._inventory.pools(), *self._usage.pools()}
        return sorted(known, key=lambda each: (each.driver, natural(each.pool), each.pool))

    def pool(self, pool: PoolId, now: datetime) -> Iterator[Sight]:
        """Yield the devices of one pool, by name."""
        self._ends.clear()  # rules may have changed since the last look
        published = self._inventory.devices(pool)
        held: dict[str, list[Held]] = {}
        for each in self._usage.held(Names(pool.driver, pool.pool, None)):
            held.setdefault(each.result.device, []).append(each)
        availability = self._availability(pool, held)
        # Behind the key the name itself: gpu-1 and gpu-01 have the same one.
        for name in sorted({*published, *held}, key=lambda each: (natural(each), each)):
            id_ = DeviceId(pool.driver, pool.pool, name)
            device, known = published.get(name), held.get(name, ())
            if device is None:
                yield self._sight(id_, None, known, self._taints_of_gone(id_, known), now)
                continue
            sight = self._sight(id_, device, known, device.taints, now)
            yield _with_room(sight, device, known, availability)

    def _availability(self, pool: PoolId, held: Mapping[str, Iterable[Held]]) -> Availability:
        known = self._inventory.pool(pool)
        slices = tuple(known.slices.values()) if known is not None else ()
        used = {name for name, each in held.items() if any(not one.admin for one in each)}
        return Availability(slices, used)

    def _sight(
        self,
        id_: DeviceId,
        device: EffectiveDevice | None,
        held: Sequence[Held],
        taints: tuple[SourcedTaint, ...],
        now: datetime,
    ) -> Sight:
        node = node_of(device.published) if device is not None else ""
        marks = tuple(self._mark(each) for each in taints) if taints else ()
        holders = tuple(self._holder(each, taints, marks, now) for each in held)
        return Sight(id_, device, node, marks, holders, users_known=self._users_known)

    def _taints_of_gone(self, id_: DeviceId, held: Iterable[Held]) -> tuple[SourcedTaint, ...]:
        content = next(
            (
                found
                for each in held
                if (found := recorded(each.claim.metadata.annotations).get(str(id_))) is not None
            ),
            None,
        )
        return tuple(sourced(rule) for rule in self._inventory.rules_for(id_, content))

    def _mark(self, taint: SourcedTaint) -> Mark:
        origin = taint.origin
        key = origin.kind, origin.name
        if key not in self._ends:
            self._ends[key] = self._end(*key)
        return Mark(taint, *self._ends[key])

    def _end(self, kind: str, name: str) -> tuple[datetime | None, str | None]:
        """Return when an origin is to end, and why it is paused."""
        if kind == "DeviceTaintRule":
            rule = self._inventory.rule(name)
            if rule is not None:
                annotations = rule.metadata.annotations
                return expiry(annotations), pause_reason(annotations)
        if kind == "ResourceSlicePatch":
            patch = self._patches.get(Key("", name))
            if patch is not None:
                return expiry(patch.metadata.annotations), None
        return None, None

    def _holder(
        self, held: Held, taints: tuple[SourcedTaint, ...], marks: tuple[Mark, ...], now: datetime
    ) -> Holder:
        users = list(self._usage.holders(held.claim))
        pods = tuple(key_of(pod) for pod in users)
        result = held.result
        holder = Holder(
            key_of(held.claim),
            pods,
            admin=held.admin,
            request=result.request,
            share=result.share_id,
            consumed=result.consumed_capacity,
        )
        if not taints:
            return holder
        tolerations = tuple(
            each
            for each in result.tolerations
            if any(tolerates(each, taint.taint) for taint in taints)
        )
        due = [
            eviction_time(mark.sourced.taint, result.tolerations, now=now, policy=self._policy)
            for mark in marks
            if mark.paused is None
        ]
        leaves = min((each for each in due if each is not None), default=None)
        if not any(pod.spec.node_name and not pod.finished for pod in users):
            leaves = None
        return replace(holder, tolerations=tolerations, leaves=leaves)

    def in_class(self, sight: Sight, class_: str) -> bool:
        """Report whether a device is one that a claim for a class could get."""
        if sight.device is None:
            return False
        selector = DeviceTaintSelector(device_class_name=class_)
        content = sight.device.content
        return choose_by_content(selector, content, self._inventory.class_).selected


def _with_room(
    sight: Sight, device: EffectiveDevice, held: Iterable[Held], availability: Availability
) -> Sight:
    """Add what is in the way of whoever wants a device, and how much is left of it."""
    published = device.published
    obstacle = availability.obstacle(published.slice, published.device)
    if not device.shareable:
        return sight if obstacle is None else replace(sight, obstacle=obstacle)
    shares = (each.result.consumed_capacity for each in held if not each.admin)
    left = left_of(device.content, taken_of(shares, sight.id.driver))
    return replace(sight, obstacle=obstacle or used_up(device.content, left), left=left)


def node_of(published: Published) -> str:
    """Say where a device is: a node, all nodes, or those that a selector finds."""
    spec = published.slice.spec
    where = published.device if spec.per_device_node_selection else spec
    if where.node_name:
        return where.node_name
    return ALL_NODES if where.all_nodes else SOME_NODES if where.node_selector else ""


def natural(name: str) -> list[tuple[int, str]]:
    """Sort by this to have gpu-2 before gpu-10."""
    # Texts and numbers take turns, so like is always compared with like.
    return [(int(part or 0), "") if at % 2 else (0, part) for at, part in enumerate(_split(name))]


_split = re.compile(r"([0-9]+)").split
