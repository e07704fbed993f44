"""What a DeviceMaintenance would do to the devices of a snapshot, unit after unit.

Units are closed in the order of `domain/maintenance`. What the drain of a batch would do is decided
by the drain core on a copy of the cluster, as for `sully drain`. Each batch starts from the
snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sully.api.sully.types import DeviceMaintenance
from sully.domain.devices.device_rules import as_stored
from sully.domain.devices.pools import device_id
from sully.domain.drain.messages import DrainState
from sully.domain.maintenance.decisions import MAX_ACTIVE
from sully.domain.maintenance.rules import TAINT, desired_rules
from sully.domain.maintenance.settings import settings_of
from sully.domain.maintenance.steps import CLOSED, Unit
from sully.domain.workloads.percentages import scaled
from sully.planning.dryrun.changes import Change, Put
from sully.planning.simulation.drain import DrainRequest
from sully.views.devices.drained import DrainedDevices
from sully.views.kinds import POLICY_NODES, RULES
from sully.views.maintenance.devices import MaintenanceDevices
from sully.views.maintenance.pods import obstacle
from sully.views.snapshot.kinds import PODS
from sully.views.snapshot.snapshot import Snapshot

MAX_BATCHES: Final = 10
"""How many batches a plan simulates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedUnit:
    """A device or a node that would be worked on."""

    name: str
    devices: tuple[str, ...]
    pods: tuple[str, ...] = ()
    """Those that use it now."""
    obstacle: str = ""
    """Which of them would not be evicted."""
    losing_data: tuple[str, ...] = ()
    """Those that would be evicted and have emptyDir volumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceForecast:
    """What a maintenance would do."""

    maintenance: DeviceMaintenance
    batches: tuple[tuple[PlannedUnit, ...], ...]
    """Units that would be closed together, in order."""
    closes_at: datetime
    ends_at: datetime | None
    problems: dict[str, str]

    @property
    def units(self) -> tuple[PlannedUnit, ...]:
        """Return all units in order."""
        return tuple(unit for batch in self.batches for unit in batch)

    @property
    def devices(self) -> tuple[str, ...]:
        """Return all devices."""
        return tuple(device for unit in self.units for device in unit.devices)


def forecast(maintenance: DeviceMaintenance, snapshot: Snapshot) -> MaintenanceForecast:
    """Return what a maintenance would do with the devices as they are."""
    settings = settings_of(maintenance)
    devices = MaintenanceDevices(maintenance, snapshot.inventory, snapshot.of(POLICY_NODES))
    finished = frozenset(maintenance.status.finished)
    selected = devices.units()
    units = [
        _unit(maintenance, name, selected[name], snapshot)
        for name in sorted(selected)
        if name not in finished
    ]
    most = scaled(settings.max_unavailable, len(selected), up=True)
    size = max(1, min(MAX_ACTIVE, most))
    return MaintenanceForecast(
        maintenance=maintenance,
        batches=tuple(tuple(units[at : at + size]) for at in range(0, len(units), size)),
        closes_at=settings.closes_at,
        ends_at=settings.end,
        problems=dict(devices.problems),
    )


def _unit(
    maintenance: DeviceMaintenance, name: str, devices: tuple[str, ...], snapshot: Snapshot
) -> PlannedUnit:
    settings = settings_of(maintenance)
    drained = _drained(maintenance, devices)
    users = list(drained.users(snapshot.usage, snapshot.of(PODS).values()))
    blocked = obstacle(users, settings)
    evicted = users if settings.drain.evicts and not blocked else ()
    return PlannedUnit(
        name=name,
        devices=devices,
        pods=tuple(pod.label for pod in users),
        obstacle=blocked,
        losing_data=tuple(pod.label for pod in evicted if pod.has_empty_dir),
    )


def _drained(maintenance: DeviceMaintenance, devices: tuple[str, ...]) -> DrainedDevices:
    ignore = settings_of(maintenance).ignore_daemon_sets
    return DrainedDevices(frozenset(map(device_id, devices)), TAINT, ignore_daemon_sets=ignore)


def batch_changes(
    maintenance: DeviceMaintenance, batch: tuple[PlannedUnit, ...], now: datetime
) -> list[Change]:
    """Return the rules that close a batch."""
    units = [Unit(name=unit.name, devices=unit.devices, phase=CLOSED) for unit in batch]
    rules = desired_rules(maintenance, units, paused=False).values()
    return [Put(RULES, as_stored(body, now)) for body in rules]


def drain_request(maintenance: DeviceMaintenance, batch: tuple[PlannedUnit, ...]) -> DrainRequest:
    """Return the drain of a batch; units with pods that are not evicted are left out."""
    devices = tuple(device for unit in batch if not unit.obstacle for device in unit.devices)
    return DrainRequest(
        _drained(maintenance, devices), settings_of(maintenance).drain, DrainState()
    )
