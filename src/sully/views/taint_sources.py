"""What taints devices: rules, patches, and the drivers themselves, with the effect on pods.

For `sully rules` and `sully status`. Rules that were created together (they share a label) are one
source, and so are equal taints of one driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from sully.api.resource.annotations import DESCRIPTION, creator_of, expiry
from sully.api.resource.types import (
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import TOGETHER
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.judge import eviction_time
from sully.machinery.meta import ObjectMeta
from sully.views.devices.exposures import Exposures
from sully.views.devices.name_index import Names
from sully.views.devices.usage import AllocatedDevice
from sully.views.evictions import EvictionProgress, inactive_progress, progress_of
from sully.views.kinds import PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.snapshot import Snapshot

T = TypeVar("T")
SourceKind = Literal["rule", "patch", "driver", "taint slice"]
State = Literal["active", "paused", "no device", "no effect"]


class TaintSource(msgspec.Struct, frozen=True, kw_only=True):
    """One taint, and everything that sets it as one."""

    kind: SourceKind
    name: str
    """Of a rule or patch; of several rules their label; of slices the driver."""
    objects: tuple[str, ...]
    """The names of the rules, or of the slices, or of the patch."""
    taint: DeviceTaint
    devices: frozenset[DeviceId] = frozenset()
    """The published devices with this taint."""
    state: State = "active"
    reason: str = ""
    created_by: str = ""
    since: datetime | None = None
    expires: datetime | None = None
    pending: Mapping[Key, datetime] = msgspec.field(default_factory=dict)
    """The pods that have yet to be evicted, and from when on they do not tolerate the taint."""
    terminating: frozenset[Key] = frozenset()
    evicted: int | None = None
    """How many pods were evicted; None: unknown."""
    complete: bool = True
    """False: more pods may have been evicted."""
    would_evict: frozenset[Key] = frozenset()
    """The pods that it would evict with the effect NoExecute, or if it were not paused."""

    @property
    def group(self) -> str:
        """Return the label that several rules share."""
        return self.name if self.kind == "rule" and self.objects != (self.name,) else ""


def taint_sources(
    snapshot: Snapshot, progress: Sequence[EvictionProgress] | None = None
) -> list[TaintSource]:
    """Return what taints devices: rules by name, patches, drivers, taint slices."""
    known = eviction_progress(snapshot) if progress is None else progress
    by_name = {x.rule.metadata.name: x for x in known}
    return [*_rules(snapshot, by_name), *_PublishedTaints(snapshot).sources()]


def eviction_progress(snapshot: Snapshot) -> list[EvictionProgress]:
    """Return the progress of all rules that evict pods, or would where rules have an effect."""
    rules, records = snapshot.of(RULES).values(), snapshot.of(TAINT_RECORDS)
    remaining = snapshot.records_evictions
    if not snapshot.control_plane.honors_rules:
        return list(inactive_progress(rules, records, has_records=remaining))
    exposures, now = snapshot.exposures, snapshot.taken
    return list(progress_of(rules, exposures, records, now, has_records=remaining))


# -- rules -----------------------------------------------------------------------------------------


def _rules(snapshot: Snapshot, progress: Mapping[str, EvictionProgress]) -> Iterator[TaintSource]:
    groups: dict[tuple[str, str, str, str], list[TaintSource]] = {}
    for rule in sorted(snapshot.of(RULES).values(), key=_name):
        taint, label = rule.spec.taint, rule.metadata.labels.get(TOGETHER, "")
        # A label that a user copied does not make two taints one.
        key = (label, taint.key, taint.value, taint.effect) if label else ("", _name(rule), "", "")
        groups.setdefault(key, []).append(_rule(snapshot, rule, progress.get(_name(rule))))
    sources = [_joined(label, members) for (label, *_), members in groups.items()]
    yield from sorted(sources, key=lambda source: source.name)


def _rule(
    snapshot: Snapshot, rule: DeviceTaintRule, progress: EvictionProgress | None
) -> TaintSource:
    exposures, honored = snapshot.exposures, snapshot.control_plane.honors_rules
    devices = frozenset(_selected(exposures, rule))
    source = TaintSource(
        kind="rule",
        name=_name(rule),
        objects=(_name(rule),),
        taint=rule.spec.taint,
        devices=devices,
        state=_rule_state(exposures, rule, devices, honored=honored),
        since=rule.spec.taint.time_added or rule.metadata.creation_timestamp,
        **_metadata(rule.metadata, rule.spec.taint),
    )
    if progress is not None:
        paused = progress.paused is not None
        return replace(
            source,
            pending={} if paused else progress.pending,
            would_evict=frozenset(progress.pending) if paused else frozenset(),
            terminating=frozenset(progress.terminating),
            evicted=progress.evicted,
            complete=progress.complete,
        )
    evictions = exposures.preview(rule).evictions if honored else ()
    return replace(source, would_evict=frozenset(Key(x.namespace, x.name) for x in evictions))


def _selected(exposures: Exposures, rule: DeviceTaintRule) -> Iterator[DeviceId]:
    inventory = exposures.inventory
    selector = inventory.selector_of(rule)
    for device in inventory.named(selector) if selector is not None else ():
        if inventory.choose(rule, device).selected:
            yield device


def _rule_state(
    exposures: Exposures, rule: DeviceTaintRule, devices: frozenset[DeviceId], *, honored: bool
) -> State:
    if not honored:
        return "no effect"
    if not devices and not exposures.counts(rule, evicted=0).allocated:
        return "no device"
    return "paused" if exposures.pause_reason(rule) is not None else "active"


def _joined(label: str, members: Sequence[TaintSource]) -> TaintSource:
    """Return rules that were created together as one source."""
    if len(members) == 1:
        return members[0]
    first = members[0]
    states = {member.state for member in members}
    pending: dict[Key, datetime] = {}
    for member in members:
        for pod, time in member.pending.items():
            pending[pod] = min(time, pending.get(pod, time))
    return replace(
        first,
        name=label,
        objects=tuple(member.name for member in members),
        devices=_union(member.devices for member in members),
        # One rule at work is enough.
        state=next(x for x in ("active", "paused", "no device", "no effect") if x in states),
        reason=_common(member.reason for member in members),
        created_by=_common(member.created_by for member in members),
        since=min((x.since for x in members if x.since is not None), default=None),
        expires=min((x.expires for x in members if x.expires is not None), default=None),
        pending=pending,
        terminating=_union(member.terminating for member in members),
        evicted=_sum(member.evicted for member in members),
        complete=all(member.complete for member in members),
        would_evict=_union(member.would_evict for member in members),
    )


def _union(sets: Iterable[frozenset[T]]) -> frozenset[T]:
    return frozenset(item for items in sets for item in items)


def _common(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, texts)))


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _metadata(metadata: ObjectMeta, taint: DeviceTaint) -> dict[str, Any]:
    annotations = metadata.annotations
    return {
        "reason": taint.description or annotations.get(DESCRIPTION, ""),
        "created_by": creator_of(annotations),
        "expires": expiry(annotations),
    }


# -- patches and drivers ---------------------------------------------------------------------------

_Id = tuple[SourceKind, str, str, str, str]
"""The kind of a source and its name, and key, value and effect of a taint."""


class _SourceUsage(msgspec.Struct):
    """What is found about one source."""

    taint: DeviceTaint
    objects: set[str] = msgspec.field(default_factory=set)
    devices: set[DeviceId] = msgspec.field(default_factory=set)
    since: datetime | None = None
    pending: dict[Key, datetime] = msgspec.field(default_factory=dict)
    terminating: set[Key] = msgspec.field(default_factory=set)
    would_evict: set[Key] = msgspec.field(default_factory=set)

    def add(self, taint: DeviceTaint, obj: str) -> None:
        self.objects.add(obj)
        times = [time for time in (self.since, taint.time_added) if time is not None]
        self.since = min(times, default=None)


def _id(kind: SourceKind, name: str, taint: DeviceTaint) -> _Id:
    return kind, name, taint.key, taint.value, taint.effect


class _PublishedTaints:
    """The taints of patches and slices, with the devices and pods that have them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._usage: dict[_Id, _SourceUsage] = {}
        for patch in snapshot.of(PATCHES).values():
            for taint in patch.spec.devices.taints:
                self._note("patch", _name(patch), taint, _name(patch))
        for slice_ in snapshot.of(SLICES).values():
            for device in slice_.spec.devices:
                for taint in device.taints:
                    self._note("driver", slice_.spec.driver, taint, _name(slice_))
            for entry in slice_.spec.taints:
                self._note("taint slice", slice_.spec.driver, entry.taint, _name(slice_))
        self._read_devices()
        self._read_pods()

    def _note(self, kind: SourceKind, name: str, taint: DeviceTaint, obj: str) -> None:
        usage = self._usage.setdefault(_id(kind, name, taint), _SourceUsage(taint))
        usage.add(taint, obj)

    def _read_devices(self) -> None:
        inventory = self._snapshot.inventory
        for pool in inventory.pools() if self._usage else ():
            for device in inventory.devices(pool).values():
                for usage in self._of(device.taints):
                    usage.devices.add(device.id)

    def _read_pods(self) -> None:
        exposures = self._snapshot.exposures
        for allocated in exposures.usage.allocated(Names()) if self._usage else ():
            device = exposures.inventory.device(allocated.device)
            for usage in self._of(device.taints) if device is not None else ():
                self._read_claim(usage, allocated)

    def _read_claim(self, usage: _SourceUsage, allocated: AllocatedDevice) -> None:
        exposures, now = self._snapshot.exposures, self._snapshot.taken
        taint, tolerations = exposures.as_evicting(usage.taint), allocated.result.tolerations
        due = eviction_time(taint, tolerations, now=now, policy=exposures.policy)
        if due is None:
            return
        running = set(map(key_of, exposures.running(allocated.claim)))
        if taint is not usage.taint:
            usage.would_evict |= running
            return
        usage.pending |= {pod: min(due, usage.pending.get(pod, due)) for pod in running}
        usage.terminating |= {
            key_of(pod)
            for pod in exposures.usage.consumers(allocated.claim)
            if pod.is_terminating and due <= now
        }

    def _of(self, taints: Iterable[SourcedTaint]) -> Iterator[_SourceUsage]:
        for sourced in taints:
            if sourced.origin.kind != "DeviceTaintRule":
                usage = self._usage.get(self._id_of(sourced))
                if usage is not None:
                    yield usage

    def _id_of(self, sourced: SourcedTaint) -> _Id:
        name = sourced.origin.name
        if sourced.origin.kind == "ResourceSlicePatch":
            return _id("patch", name, sourced.taint)
        slice_ = self._snapshot.get(SLICES, Key("", name))
        if slice_ is None:
            return _id("driver", "", sourced.taint)
        kind: SourceKind = "taint slice" if slice_.spec.taints else "driver"
        return _id(kind, slice_.spec.driver, sourced.taint)

    def sources(self) -> Iterator[TaintSource]:
        """Yield them: patches, drivers, then taint slices, by name."""
        order = ("patch", "driver", "taint slice")
        for id_ in sorted(self._usage, key=lambda id_: (order.index(id_[0]), *id_[1:])):
            yield self._source(id_[0], id_[1], self._usage[id_])

    def _source(self, kind: SourceKind, name: str, usage: _SourceUsage) -> TaintSource:
        plane, taint = self._snapshot.control_plane, usage.taint
        patch = self._snapshot.get(PATCHES, Key("", name)) if kind == "patch" else None
        if kind == "patch":
            honored = plane.honors_patched_taint(taint.effect)
        elif kind == "taint slice":
            honored = plane.honors_taints and plane.honors_patches
        else:
            honored = plane.honors_taints
        about = _metadata(patch.metadata, taint) if patch is not None else {}
        return TaintSource(
            kind=kind,
            name=name,
            objects=tuple(sorted(usage.objects)),
            taint=taint,
            devices=frozenset(usage.devices),
            state="active" if usage.devices else "no device" if honored else "no effect",
            since=usage.since,
            pending=usage.pending,
            terminating=frozenset(usage.terminating),
            would_evict=frozenset(usage.would_evict),
            **(about or {"reason": taint.description, "created_by": name}),
        )


def _name(obj: DeviceTaintRule | ResourceSlicePatch | ResourceSlice) -> str:
    return obj.metadata.name
