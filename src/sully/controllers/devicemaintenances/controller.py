"""Executes DeviceMaintenances: closes devices with rules, drains them, and gives them back.

Reads maintenances, devices, nodes, pods and claims; writes DeviceTaintRules, evictions, the status
of maintenances, and events. The decisions are `domain/maintenance` and `domain/drain`. All state is
in the status, which is written before anything is done: a write that conflicts, because a user
paused or cancelled the maintenance, prevents what would have followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DeviceMaintenance
from sully.client.events import reference
from sully.client.evictions import evict_for_drain
from sully.client.informers.cache import Cache
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.controllers.devicemaintenances.checks import MaintenanceChecks
from sully.controllers.devicemaintenances.drains import Drains
from sully.controllers.devicemaintenances.jobs import RETRY, MaintenanceJobs
from sully.controllers.devicerules import DeviceRuleWriter
from sully.controllers.framework.conditions import encode_condition, preconditions
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.controllers.proofjobs import ProofJobs, owner_key
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.devices.pools import PoolId
from sully.domain.drain.messages import DrainPod, PodEvicted
from sully.domain.maintenance.decisions import MaintenanceDecision, decide
from sully.domain.maintenance.rules import approvals, desired_rules, maintenance_name
from sully.domain.maintenance.settings import MaintenanceSettings, settings_of
from sully.domain.maintenance.status import findings, is_same, status_fields
from sully.domain.maintenance.steps import (
    CLOSED,
    DRAINING,
    PROVING,
    WORKING,
    Unit,
    UnitSeen,
)
from sully.domain.placement.results.conditions import merge_conditions
from sully.machinery.errors import ApiError, NotFound
from sully.views.devices.changes import InventoryChange
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import MAINTENANCES
from sully.views.maintenance.devices import MaintenanceDevices
from sully.views.maintenance.pods import UnitPods, obstacle

NAME: Final = "device-maintenance-controller"
BY_MAINTENANCE: Final = "maintenance"
SHARE: Final = 10
"""One maintenance is decided in at most one of so many parts of the time."""


class _Tracked(msgspec.Struct):
    """A maintenance since the controller started; nothing here must survive a restart."""

    maintenance: DeviceMaintenance
    devices: MaintenanceDevices
    drains: Drains
    decide_due: datetime | None = None
    job_problems: dict[str, str] = msgspec.field(default_factory=dict)
    """Why Jobs cannot be created, by device."""


class DeviceMaintenanceController:
    """Executes DeviceMaintenances."""

    name = NAME

    def __init__(  # noqa: PLR0913 - what it reads, and how it writes
        self,
        *,
        maintenances: Informer[DeviceMaintenance],
        rules: Informer[DeviceTaintRule],
        inventory: Inventory,
        nodes: Cache[PolicyNode],
        pods: UnitPods,
        usage: Usage,
        env: ControllerEnv,
        jobs: ProofJobs | None = None,
        caches: Sequence[Informer[Any]] = (),
        max_staleness: float | None = None,
    ) -> None:
        self._maintenances = maintenances
        self._rules = rules
        self._rules.add_index(BY_MAINTENANCE, lambda rule: (maintenance_name(rule),))
        self._inventory = inventory
        self._nodes = nodes
        self._pods = pods
        self._transport, self._recorder, self._clock = env
        self._writer = DeviceRuleWriter(env.transport, NAME)
        self._proof_jobs = jobs
        self._jobs = MaintenanceJobs(jobs)
        self._tracked: dict[Key, _Tracked] = {}
        self._affected: Channel[Key] = Channel()
        self._checks = MaintenanceChecks(maintenances, caches, max_staleness, self._affected.send)
        inventory.on_change(self._inventory_changed)
        nodes.on_change(self._node_changed)
        usage.on_change(self._usage_changed)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for maintenances and their rules, and for devices, nodes and pods."""
        yield Watch(self._maintenances, own_key)
        yield Watch(self._rules, _maintenance_key)
        yield Watch(self._affected, same_key)
        if self._proof_jobs is not None:
            yield Watch(self._proof_jobs.jobs, partial(owner_key, MAINTENANCES))

    # -- events -----------------------------------------------------------------------------------

    def _inventory_changed(self, change: InventoryChange) -> None:
        # Rules add taints, which change no selection.
        if not change.rules:
            self._send(lambda tracked: tracked.devices.changed(change.pools))

    def _node_changed(self, old: PolicyNode | None, new: PolicyNode | None) -> None:
        names = {node.metadata.name for node in (old, new) if node is not None}
        pools: list[PoolId] = [pool for name in names for pool in self._inventory.pools_for(name)]
        self._send(lambda tracked: tracked.devices.changed(pools))

    def _usage_changed(self, _: frozenset[Key]) -> None:
        self._send(lambda tracked: bool(tracked.maintenance.status.units))

    def _send(self, is_affected: Callable[[_Tracked], bool]) -> None:
        for key, tracked in self._tracked.items():
            if is_affected(tracked):
                self._affected.send(key)

    # -- reconciling ------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result:
        """Decide about all devices of a maintenance, and execute that."""
        maintenance = await self._newest(key)
        if maintenance is None or maintenance.metadata.deletion_timestamp is not None:
            # Its rules are deleted by garbage collection.
            self._tracked.pop(key, None)
            self._checks.forget(key)
            return DONE
        now, tracked = self._clock.now(), self._track(key, maintenance)
        if tracked.decide_due is not None and now < tracked.decide_due:
            return Result(requeue_after=tracked.decide_due - now)
        started = self._clock.monotonic()
        settings = settings_of(maintenance)
        if settings.paused or settings.cancelled:
            tracked.drains.stop()
        seen = await self._seen(tracked, settings)
        decision = decide(settings, maintenance.status, seen, now)
        elapsed = timedelta(seconds=self._clock.monotonic() - started)
        tracked.decide_due = now + elapsed * SHARE
        await self._store(tracked, decision, now)
        self._announce(maintenance, decision)
        rules = self._rules.by_index(BY_MAINTENANCE, key.name)
        desired = desired_rules(maintenance, decision.units, paused=settings.paused)
        if settings.frozen:
            await self._writer.write(desired, rules)
            return _later(now, decision.requeue_at)
        # Jobs work only on closed devices: they are deleted before the rules, and created after.
        jobs = self._jobs.plan(maintenance, settings, decision.units, tracked.devices, now)
        await self._jobs.delete_others(jobs)
        await self._writer.write(desired, rules)
        tracked.job_problems = await self._jobs.start(jobs)
        works = any(unit.phase in (WORKING, PROVING) for unit in decision.units)
        retry = now + RETRY if works else None
        return _later(
            now, decision.requeue_at, retry, await self._drain(tracked, decision, settings)
        )

    async def _newest(self, key: Key) -> DeviceMaintenance | None:
        """Return a maintenance as the server has it: a cache may not have the last write yet."""
        if self._maintenances.get(key) is None:
            return None
        try:
            return await self._transport.get(MAINTENANCES, key)
        except NotFound:
            return None

    def _track(self, key: Key, maintenance: DeviceMaintenance) -> _Tracked:
        tracked = self._tracked.get(key)
        known = tracked.maintenance if tracked is not None else None
        if tracked is None or known is None or known.metadata.uid != maintenance.metadata.uid:
            tracked = _Tracked(maintenance, self._devices(maintenance), Drains(self._pods))
            self._tracked[key] = tracked
        elif known.spec != maintenance.spec:
            tracked.devices = self._devices(maintenance)
            # With the settings of before.
            tracked.drains.stop()
        tracked.maintenance = maintenance
        return tracked

    def _devices(self, maintenance: DeviceMaintenance) -> MaintenanceDevices:
        return MaintenanceDevices(maintenance, self._inventory, self._nodes)

    async def _seen(self, tracked: _Tracked, settings: MaintenanceSettings) -> dict[str, UnitSeen]:
        """Return what is observed of all selected units, and of those that are closed."""
        units = tracked.devices.units()
        seen = {name: UnitSeen(devices=devices) for name, devices in units.items()}
        key = key_of(tracked.maintenance)
        rules = self._rules.by_index(BY_MAINTENANCE, tracked.maintenance.metadata.name)
        for unit in tracked.maintenance.status.units:
            users = self._pods.users(unit.devices, settings)
            # Work begins on a closed device without a drain, if it is idle.
            knows_users = unit.phase != CLOSED or self._checks.is_fresh(key)
            not_ready = tracked.devices.not_ready(unit.devices)
            seen[unit.name] = UnitSeen(
                devices=units.get(unit.name, unit.devices),
                ready=not not_ready,
                not_ready=not_ready,
                idle=knows_users and not users,
                obstacle=obstacle(users, settings),
                drain=tracked.drains.report(unit.name),
                approvals=approvals(rules, unit),
                jobs=await self._jobs.report(
                    tracked.maintenance, settings, unit, tracked.job_problems, tracked.devices
                ),
            )
        return seen

    async def _store(self, tracked: _Tracked, decision: MaintenanceDecision, now: datetime) -> None:
        """Write the status, unless it is the same or a user changed the maintenance."""
        maintenance, devices = tracked.maintenance, tracked.devices
        selected = sum(map(len, devices.units().values()))
        fields = status_fields(maintenance, decision, selected)
        reported = findings(decision, selected, devices.problems)
        conditions = merge_conditions(maintenance.status.conditions, reported, now)
        if conditions == maintenance.status.conditions and is_same(maintenance.status, fields):
            return
        status = {**fields, "conditions": list(map(encode_condition, conditions))}
        tracked.maintenance = await self._transport.patch(
            MAINTENANCES,
            key_of(maintenance),
            preconditions(maintenance.metadata) | {"status": status},
            subresource="status",
            options=WriteOptions(field_manager=NAME),
        )

    def _announce(self, maintenance: DeviceMaintenance, decision: MaintenanceDecision) -> None:
        about = reference(MAINTENANCES, maintenance)
        for name, notice in decision.notices:
            text = f"{name}: {notice.message}" if name else notice.message
            self._recorder.event(
                about, "Warning" if notice.warning else "Normal", notice.reason, text
            )

    # -- draining ---------------------------------------------------------------------------------

    async def _drain(
        self, tracked: _Tracked, decision: MaintenanceDecision, settings: MaintenanceSettings
    ) -> datetime | None:
        """Evict the pods that are due; return when to look again."""
        now = self._clock.now()
        units: list[Unit] = [unit for unit in decision.units if unit.phase == DRAINING]
        if units and not self._checks.is_fresh(key_of(tracked.maintenance)):
            return now + RETRY
        step = tracked.drains.step(units, settings, now)
        if step.evictions:
            await self._evict(tracked, decision, step.evictions)
        return now if step.reported or step.evictions else step.requeue_at

    async def _evict(
        self,
        tracked: _Tracked,
        decision: MaintenanceDecision,
        evictions: list[tuple[str, DrainPod]],
    ) -> None:
        now = self._clock.now()
        # First: a controller that is killed must not be followed by one that is too fast, and
        # no pod is evicted any more if a user paused or cancelled the maintenance.
        try:
            saved = replace(decision, units=tracked.drains.saved(decision.units, now))
            await self._store(tracked, saved, now)
        except (ApiError, OSError):
            tracked.drains.postponed(evictions, now)
            raise
        for number, (unit, pod) in enumerate(evictions):
            if not self._checks.allows(tracked.maintenance):
                tracked.drains.postponed(evictions[number:], self._clock.now())
                return
            answer = await evict_for_drain(self._transport, pod)
            tracked.drains.answered(unit, answer, self._clock.now())
            if isinstance(answer, PodEvicted):
                about = reference(MAINTENANCES, tracked.maintenance)
                self._recorder.event(about, "Normal", "Evicted", f"{unit}: evicted pod {pod}")


def _later(now: datetime, *times: datetime | None) -> Result:
    """Return when to look again, if there is such a time."""
    due = [time for time in times if time is not None]
    return Result(requeue_after=max(timedelta(0), min(due) - now)) if due else DONE


def _maintenance_key(rule: DeviceTaintRule) -> Iterable[Key]:
    name = maintenance_name(rule)
    if name:
        yield Key("", name)
