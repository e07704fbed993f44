"""The history of rules and evictions, in order of time, from TaintRecords and EvictionRecords, and
of the taints of clusters, from an annotation of these (`api/cluster/taints/history.py`).

Records outlive events and objects (`api/sully`). For `sully history` and explanations. Which
devices a rule selected by class or expression is not recorded, except for those that pods were
evicted from; `entries_about` evaluates it on the current devices, and marks what is uncertain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from typing import Literal, Protocol

from sully.api.cluster.taints.history import read_history
from sully.api.cluster.types import ManagedCluster
from sully.api.cluster.types import Taint as ClusterTaint
from sully.api.resource.types import DeviceTaint, DeviceTaintSelector
from sully.api.sully.types import EvictionCause, EvictionRecord, TaintRecord, rules_of
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId, device_id
from sully.domain.devices.rules import choose, names_match, needs_content
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.views.devices.inventory import Inventory

What = Literal["tainted", "changed", "evicted", "deleted"]
_ORDER: tuple[What, ...] = ("tainted", "changed", "evicted", "deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a rule, or one eviction."""

    time: datetime
    what: What
    rule: str = ""
    """The name of the rule; an eviction has causes instead."""
    uid: str = ""
    """The uid of the rule: several may have had this name."""
    cluster: str = ""
    """The cluster that was tainted; then there is no rule."""
    taint: DeviceTaint | ClusterTaint | None = None
    selector: DeviceTaintSelector | None = None
    """Which devices the rule selected."""
    change: str = ""
    """What was changed."""
    by: str = ""
    """The user, where that is recorded."""
    why: str = ""
    until: str = ""
    """When the taint of a cluster expires."""
    evicted: int = 0
    """How many pods a deleted rule had evicted."""
    complete: bool = True
    """False: there may have been more; if there is no pod, nothing is known about how many."""
    eviction: EvictionRecord | None = None
    uncertain: bool = False
    """Whether it is not known any more if the rule selected the requested devices."""

    def causes(self) -> tuple[EvictionCause, ...]:
        """Return the taints that caused an eviction."""
        return self.eviction.spec.causes if self.eviction is not None else ()


def history_entries(
    rules: Iterable[TaintRecord],
    evictions: Iterable[EvictionRecord],
    clusters: Iterable[ManagedCluster] = (),
    *,
    complete: bool = True,
) -> list[HistoryEntry]:
    """Return all entries, the oldest first.

    The count of a deleted rule is written a moment after the record of its last eviction, so it
    is at least the number of these records. Only where the evictor writes records, or the rule
    evicts no pod, it is `complete`: Kubernetes reports up to ten seconds late, when the rule may be
    deleted.
    """
    evictions = tuple(evictions)
    recorded = Counter(uid for eviction in evictions for uid in rules_of(eviction))
    entries = [
        replace(entry, complete=complete or _never_evicts(record))
        for record in rules
        for entry in _rule_entries(record, recorded)
    ]
    entries += [_eviction_entry(record) for record in evictions]
    entries += [entry for cluster in clusters for entry in _cluster_entries(cluster)]
    return sorted(entries, key=_order)


def _never_evicts(record: TaintRecord) -> bool:
    changed = bool(record.status.changes)
    return not changed and record.spec.taint.effect not in EVICTING_EFFECTS


def _order(entry: HistoryEntry) -> tuple[datetime, int, str, str]:
    pod = entry.eviction.spec.pod if entry.eviction is not None else None
    name = f"{pod.namespace}/{pod.name}" if pod is not None else ""
    # What happened to a cluster is recorded in order: a taint that is changed is removed first.
    rank = 0 if entry.cluster else _ORDER.index(entry.what)
    return entry.time, rank, entry.rule or entry.cluster, name


def _rule_entries(record: TaintRecord, recorded: Mapping[str, int]) -> Iterator[HistoryEntry]:
    spec, status, name = record.spec, record.status, record.spec.rule.name
    uid = spec.rule.uid
    yield HistoryEntry(
        time=spec.added_time,
        what="tainted",
        rule=name,
        uid=uid,
        taint=spec.taint,
        selector=spec.device_selector,
        by=spec.created_by,
        why=spec.taint.description or spec.description,
    )
    selector = status.device_selector or spec.device_selector
    for change in status.changes:
        yield HistoryEntry(
            time=change.time,
            what="changed",
            rule=name,
            uid=uid,
            selector=selector,
            change=change.what,
            by=change.by,
        )
    if status.deleted_time is not None:
        yield HistoryEntry(
            time=status.deleted_time,
            what="deleted",
            rule=name,
            uid=uid,
            taint=status.taint or spec.taint,
            selector=selector,
            by=status.deleted_by,
            evicted=max(status.evicted, recorded.get(uid, 0)),
        )


def _cluster_entries(cluster: ManagedCluster) -> Iterator[HistoryEntry]:
    for entry in read_history(cluster.metadata.annotations):
        yield HistoryEntry(
            time=entry.time,
            what="tainted" if entry.event == "tainted" else "deleted",
            cluster=cluster.metadata.name,
            taint=ClusterTaint(key=entry.key, value=entry.value, effect=entry.effect),
            by=entry.by,
            why=entry.reason,
            until=entry.expires_at,
        )


def _eviction_entry(record: EvictionRecord) -> HistoryEntry:
    spec = record.spec
    why = next((cause.description for cause in spec.causes if cause.description), "")
    return HistoryEntry(time=spec.evicted_time, what="evicted", why=why, eviction=record)


# -- about devices --------------------------------------------------------------------------------


class DeviceFilter(Protocol):
    """Which devices are requested, by patterns of their names."""

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """Report whether a device matches."""

    def matches_pool(self, driver: str, pool: str) -> bool:
        """Report whether any device of a pool can match."""

    def overlaps(self, driver: str | None, pool: str | None, device: str | None) -> bool:
        """Report whether a selector with these names can select a matching device."""


class _Selected(IntEnum):
    NO = 0
    MAYBE = 1
    YES = 2


def needs_inventory(entries: Iterable[HistoryEntry], devices: DeviceFilter) -> bool:
    """Report whether more than names is needed to find the entries about devices."""
    return any(
        needs_content(entry.selector) and _overlap(entry.selector, devices) for entry in entries
    )


def entries_about(
    entries: Sequence[HistoryEntry], devices: DeviceFilter, inventory: Inventory
) -> Iterator[HistoryEntry]:
    """Yield the entries about devices: evictions from them, and all entries of their rules."""
    selected = _selected_by_rule(entries, devices, inventory)
    for entry in entries:
        if entry.eviction is not None:
            if any(devices.matches(*device_id(name)) for name in entry.eviction.spec.devices):
                yield entry
        elif selected[entry.uid] is not _Selected.NO:
            yield replace(entry, uncertain=selected[entry.uid] is _Selected.MAYBE)


def entries_about_node(
    entries: Sequence[HistoryEntry], node: str, devices: DeviceFilter, inventory: Inventory
) -> list[HistoryEntry]:
    """Return the entries about the devices of a node, and about pods that ran there."""
    about = list(entries_about(entries, devices, inventory))
    evictions = {id(entry.eviction) for entry in about if entry.eviction is not None}
    about += [
        entry
        for entry in entries
        if entry.eviction is not None
        and entry.eviction.spec.pod.node == node
        and id(entry.eviction) not in evictions
    ]
    return sorted(about, key=_order)


def _selected_by_rule(
    entries: Iterable[HistoryEntry], devices: DeviceFilter, inventory: Inventory
) -> dict[str, _Selected]:
    """Return whether each rule, by uid, ever selected one of the devices."""
    # An eviction from one of them proves it.
    selected = {
        cause.uid: _Selected.YES
        for entry in entries
        for cause in entry.causes()
        if devices.matches(*device_id(cause.device))
    }
    evaluated: dict[tuple[str, str], _Selected] = {}
    for entry in entries:
        # Most rules have one selector and many entries.
        key = entry.uid, repr(entry.selector)
        if key not in evaluated and selected.get(entry.uid) is not _Selected.YES:
            evaluated[key] = _evaluate(entry.selector, devices, inventory)
            selected[entry.uid] = max(selected.get(entry.uid, _Selected.NO), evaluated[key])
    return selected


def _evaluate(
    selector: DeviceTaintSelector | None, devices: DeviceFilter, inventory: Inventory
) -> _Selected:
    if selector is None or not _overlap(selector, devices):
        return _Selected.NO
    if not needs_content(selector):
        return _Selected.YES
    choices = [
        choose(selector, id_, device.content, inventory.class_)
        for id_, device in _candidates(selector, devices, inventory)
    ]
    if any(choice.selected for choice in choices):
        return _Selected.YES
    # The content of a device that is no longer published is not known.
    unknown = not choices or any(choice.problem for choice in choices)
    return _Selected.MAYBE if unknown else _Selected.NO


def _candidates(
    selector: DeviceTaintSelector, devices: DeviceFilter, inventory: Inventory
) -> Iterator[tuple[DeviceId, EffectiveDevice]]:
    for pool in sorted(inventory.pools()):
        if not devices.matches_pool(*pool):
            continue
        for name, device in inventory.devices(pool).items():
            id_ = DeviceId(*pool, name)
            if devices.matches(*id_) and names_match(selector, id_):
                yield id_, device


def _overlap(selector: DeviceTaintSelector | None, devices: DeviceFilter) -> bool:
    return selector is not None and devices.overlaps(
        selector.driver, selector.pool, selector.device
    )
