"""Devices: why they are free, in use, tainted, or cannot be allocated at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from sully.api.sully.types import EvictionRecord
from sully.client.transport import Key
from sully.domain.allocation.rejections.availability import Availability, Obstacle
from sully.domain.allocation.usage.conflicts import DeviceConflict
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.devices.taints import BLOCKING_EFFECTS, EVICTING_EFFECTS, SourcedTaint
from sully.domain.tolerations import taint_text
from sully.explain.causes import DeviceFacts, Finding, Note, Source, note
from sully.explain.explanation import Table, tables
from sully.explain.facts.devices.allocations import (
    cause_sources,
    had_taints,
    record_table,
    unused_text,
)
from sully.explain.facts.devices.controllers import (
    controller_notes,
    removal_step,
    suppression_notes,
)
from sully.explain.facts.devices.inactive import inactive_notes
from sully.explain.reader import Reader
from sully.explain.sources import origins_of
from sully.explain.text import attribute_text, enumerate_names, toleration_text
from sully.views.devices.device_views import ALL_NODES, SOME_NODES, conflict_between, node_of
from sully.views.devices.name_index import Names
from sully.views.kinds import RULES

T = TypeVar("T", DeviceId, str)
_IN_USE = (
    "AllocatedTwice",
    "CapacityExceeded",
    "InUse",
    "PodsNotEvicted",
    "PodsTerminating",
    "PodsToBeEvicted",
)


class AmbiguousNameError(ValueError):
    """Several devices have this name."""


def find_device(reader: Reader, key: Key) -> Finding | None:
    """Find out about a device, by its name or the end of it; None if it is unknown."""
    device = match_name(known_devices(reader), key.name)
    if device is not None:
        return _Device(reader, device).find()
    name, records = evictions_from(reader, key.name)
    if records:
        return _gone(reader, name, records)
    device = match_name(_named_by_taints(reader), key.name)
    return _Device(reader, device).find() if device is not None else None


def match_name(devices: Iterable[T], text: str) -> T | None:
    """Return the one device that has a name, or whose name ends so."""
    matches = {str(device): device for device in devices if f"/{device}".endswith(f"/{text}")}
    if len(matches) > 1 and text not in matches:
        names = enumerate_names(sorted(matches))
        raise AmbiguousNameError(f'"{text}" matches {len(matches)} devices: {names}')
    return matches.get(text, next(iter(matches.values()), None))


def known_devices(reader: Reader) -> set[DeviceId]:
    """Return the devices that are published or allocated."""
    inventory, usage = reader.snapshot.inventory, reader.snapshot.usage
    published = {
        DeviceId(*pool, name) for pool in inventory.pools() for name in inventory.devices(pool)
    }
    return published | {allocation.device for allocation in usage.allocated(Names())}


def _named_by_taints(reader: Reader) -> Iterator[DeviceId]:
    """Yield the devices that taint slices and rules name; they may not be published."""
    inventory = reader.snapshot.inventory
    for id_ in inventory.pools():
        for name in _unpublished_taints(reader, id_):
            yield DeviceId(*id_, name)
    for rule in reader.snapshot.of(RULES).values():
        selector = rule.spec.device_selector
        if selector is not None and selector.driver and selector.pool and selector.device:
            yield DeviceId(selector.driver, selector.pool, selector.device)


def _unpublished_taints(reader: Reader, id_: PoolId) -> dict[str, tuple[SourcedTaint, ...]]:
    pool = reader.snapshot.inventory.pool(id_)
    return pool.unpublished_taints() if pool is not None else {}


def evictions_from(reader: Reader, text: str) -> tuple[str, tuple[EvictionRecord, ...]]:
    """Return a device that pods were evicted from, by the end of its name, and the evictions."""
    records = reader.evictions(lambda _: True)
    name = match_name((cause.device for x in records for cause in x.spec.causes), text)
    if name is None:
        return "", ()
    return name, tuple(x for x in records if any(c.device == name for c in x.spec.causes))


def _gone(reader: Reader, device: str, records: Sequence[EvictionRecord]) -> Finding:
    last = records[-1].spec
    causes = [cause for cause in last.causes if cause.device == device]
    return Finding(
        kind="Device",
        name=device,
        cause="NotPublished",
        facts=DeviceFacts(
            pod=f"{last.pod.namespace}/{last.pod.name}",
            at=last.evicted_time,
            sources=cause_sources(causes, reader.sources),
            taints=had_taints(causes, reader.sources),
        ),
        because=tuple(f"{cause.kind}/{cause.name}" for cause in causes),
        details=tables(record_table(records)),
    )


class _Device:
    def __init__(self, reader: Reader, id_: DeviceId) -> None:
        self.reader = reader
        self.id = id_
        inventory = reader.snapshot.inventory
        allocations = list(reader.snapshot.usage.allocated(Names(*id_)))
        published = inventory.published(id_)
        node = node_of(published) if published is not None else ""
        self.device: EffectiveDevice | None = inventory.device(id_)
        self.obstacle = _obstacle(reader, published)
        self.taints = reader.taints(id_, [allocation.claim for allocation in allocations])
        self.allocated = tuple(reader.allocation(x.claim, x.result) for x in allocations)
        self.conflict = conflict_between(allocations, self.device)
        self.facts = DeviceFacts(
            node=node if node not in (ALL_NODES, SOME_NODES) else "",
            all_nodes=node == ALL_NODES,
            some_nodes=node == SOME_NODES,
            claims=tuple(allocated.claim for allocated in self.allocated),
            users=tuple(self._users()),
            taints=tuple(self._taint_notes()),
        )

    def find(self) -> Finding:
        finding = self._find_cause()
        details = tables(self._taint_table(), self._user_table(), _attributes(self.device))
        also = tuple(self._further_notes(in_use=finding.cause in _IN_USE))
        return replace(finding, also=also, details=details)

    def _finding(
        self, cause: str, because: Iterable[str], reason: str = "", **more: Any
    ) -> Finding:
        remedies = more.pop("remedies", ())
        return Finding(
            kind="Device",
            name=str(self.id),
            cause=cause,
            reason=reason,
            facts=replace(self.facts, **more),
            because=tuple(because),
            remedies=remedies,
        )

    def _find_cause(self) -> Finding:
        origins, sources = origins_of(self.taints), self.reader.sources
        claims = tuple(f"ResourceClaim/{claim}" for claim in self.facts.claims)
        if self.conflict is not None:
            return self._in_conflict(self.conflict)
        if self.device is None:
            cause = "StillAllocated" if claims else "UnknownDevice"
            return self._finding(cause, claims or origins)
        due = [due for allocated in self.allocated for due in allocated.evicting(self.reader)]
        if due:
            return self._evicting(due)
        if self.facts.users:
            if not self.taints:
                return self._finding("InUse", claims, "NotTainted")
            return self._not_evicting(origins)
        if self.obstacle is not None:
            reason = self.obstacle.cause
            cause = reason if reason == "CountersUsed" else "Unusable"
            return self._finding(cause, (), reason, text=self.obstacle.text)
        blocking = [taint for taint in self.taints if self.reader.prevents_scheduling(taint)]
        if not blocking:
            return self._finding(
                "Free", origins, "TaintWithoutEffect" if self.taints else "NotTainted"
            )
        origins = origins_of(blocking)
        remedies, taint_sources = (self._removal_remedy(blocking),), sources.of_all(origins)
        return self._finding(
            "PreventsScheduling", origins, sources=taint_sources, remedies=remedies
        )

    def _not_evicting(self, origins: tuple[str, ...]) -> Finding:
        effects = {taint.taint.effect for taint in self.taints}
        stays = effects <= BLOCKING_EFFECTS and effects.isdisjoint(EVICTING_EFFECTS)
        return self._finding(
            "PodsNotEvicted",
            origins,
            sources=self.reader.sources.of_all(origins),
            stays=stays,
            remedies=(self._removal_remedy(self.taints),) if stays else (),
        )

    def _in_conflict(self, conflict: DeviceConflict) -> Finding:
        because = tuple(f"ResourceClaim/{claim}" for claim in conflict.claims)
        held = tuple(x.claim for x in self.allocated if x.claim in conflict.claims)
        return self._finding(
            conflict.cause,
            because,
            claims=tuple(dict.fromkeys(held)),
            text=" and ".join(conflict.exceeded),
        )

    def _evicting(self, due: Sequence[tuple[datetime, SourcedTaint]]) -> Finding:
        origins = origins_of(self.taints)
        sources = self.reader.sources.of_all(origins_of(taint for _, taint in due))
        evicted = [x for x in self.allocated if any(x.evicting(self.reader))]
        if all(set(x.pods) == set(x.terminating) for x in evicted):
            return self._finding("PodsTerminating", origins, sources=sources)
        first = min(at for at, _ in due)
        at, remedies = (
            first if first > self.reader.now else None,
            (self._removal_remedy(self.taints),),
        )
        return self._finding("PodsToBeEvicted", origins, sources=sources, at=at, remedies=remedies)

    def _users(self) -> Iterator[Note]:
        for x in self.allocated:
            if not x.admin_access:
                yield note("PodUser", pods=x.pods) if x.pods else note("ClaimUser", claim=x.claim)

    def _removal_remedy(self, taints: Iterable[SourcedTaint]) -> Note:
        sources = self.reader.sources.of_all(origins_of(taints))
        rules = [x for x in sources if x.origin.startswith(f"{RULES.kind}/")]
        steps = [removal_step(self.reader, x, str(self.id)) for x in rules]
        steps += [note("ClearTaint", source=_author(x)) for x in sources if x not in rules]
        different = [step for at, step in enumerate(steps) if step not in steps[:at]]
        return note("RemoveTaints", steps=different)

    # -- further notes ----------------------------------------------------------------------------

    def _taint_notes(self) -> Iterator[Note]:
        for taint in self.taints:
            evicts = taint.taint.effect in self.reader.policy.effects
            fact = self.reader.sources.sourced(taint)
            paused = evicts and fact.source.paused is not None
            yield note("ItHasTaint", taint=fact, paused=paused)

    def _further_notes(self, *, in_use: bool) -> Iterator[Note]:
        if self.obstacle is not None and in_use:
            yield note("NotAllocatable", text=self.obstacle.text)
        if claims := [x.claim for x in self.allocated if x.admin_access]:
            yield note("AdminAccess", claims=claims)
        yield from suppression_notes(self.taints)
        yield from controller_notes(self.reader, str(self.id))
        yield from self._pool_notes()
        yield from self._patch_notes()
        yield from inactive_notes(self.reader, (self.id,), named=False)

    def _pool_notes(self) -> Iterator[Note]:
        """Yield the taints of the pool for devices that are not published, which may be this."""
        for device, taints in _unpublished_taints(self.reader, self.id.pool_id).items():
            for taint in map(self.reader.sources.sourced, taints):
                if device == self.id.device:
                    yield note("UnpublishedTaint", taint=taint)
                else:
                    yield note("PoolTaint", taint=taint, device=device)

    def _patch_notes(self) -> Iterator[Note]:
        device = self.device
        changed: dict[tuple[str, str], list[str]] = {}
        for origins in (device.attribute_origins, device.capacity_origins) if device else ():
            for name, origin in origins.items():
                removed = device is not None and name in _removed(device)
                key = str(origin), "RemovedByPatch" if removed else "Patched"
                changed.setdefault(key, []).append(name)
        for (patch, kind), names in sorted(changed.items()):
            yield note(kind, names=sorted(names), patch=self.reader.sources.of(patch))

    # -- details ----------------------------------------------------------------------------------

    def _taint_table(self) -> Table:
        rows = []
        for taint in self.taints:
            columns = taint_text(taint.taint), str(taint.origin)
            users = [(x.claim, x.effect_text(taint, self.reader)) for x in self.allocated]
            rows += [(*columns, *user) for user in users or [("", unused_text(taint, self.reader))]]
        return Table("Taints", ("taint", "origin", "claim", "effect"), tuple(rows))

    def _user_table(self) -> Table:
        rows = tuple(
            (x.claim, ", ".join(x.pods), ", ".join(map(toleration_text, x.tolerations)))
            for x in self.allocated
        )
        return Table("Users", ("claim", "pods", "tolerations"), rows)


def _author(source: Source) -> str:
    return f"driver {source.driver}" if source.driver else source.by or source.label


def _obstacle(reader: Reader, published: Published | None) -> Obstacle | None:
    """Return what prevents allocation of a device, other than its taints and claims."""
    pool = reader.snapshot.inventory.pool(published.id.pool_id) if published is not None else None
    if published is None or pool is None:
        return None
    allocations = reader.snapshot.usage.allocated(Names(published.id.driver, published.id.pool))
    used = {x.device.device for x in allocations if not x.admin}
    availability = Availability(tuple(pool.slices.values()), used)
    return availability.obstacle(published.slice, published.device)


def _attributes(device: EffectiveDevice | None) -> Table:
    rows: list[tuple[str, str, str]] = []
    if device is not None:
        rows += [
            (name, attribute_text(value), str(device.attribute_origin(name)))
            for name, value in sorted(device.attributes.items())
        ]
        rows += [
            (name, amount.value, str(device.capacity_origin(name)))
            for name, amount in sorted(device.capacity.items())
        ]
        rows += [
            (name, "removed by patch", str(device.attribute_origins[name]))
            for name in sorted(_removed(device))
        ]
    return Table("Attributes", ("name", "value", "origin"), tuple(rows))


def _removed(device: EffectiveDevice) -> set[str]:
    """Return the attributes that patches remove."""
    return device.attribute_origins.keys() - device.attributes.keys()
