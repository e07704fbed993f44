"""A maintenance on a few devices, decided again and again from nothing but its stored status."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from manifests import body
from sully.api.sully.types import DeviceMaintenance, DeviceMaintenanceStatus
from sully.domain.devices.taints import NO_EXECUTE
from sully.domain.drain.messages import DrainOutcome
from sully.domain.maintenance.decisions import MaintenanceDecision, decide
from sully.domain.maintenance.rules import effect_of
from sully.domain.maintenance.settings import settings_of
from sully.domain.maintenance.status import status_fields
from sully.domain.maintenance.steps import DRAINING, DrainReport, UnitSeen

START = datetime(2026, 1, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPEC: dict[str, Any] = {
    "selector": {"driver": "d"},
    "start": "2026-01-03T02:00:00Z",
    "duration": "4h",
    "closeBefore": "2h",
}


def maintenance(**spec: Any) -> DeviceMaintenance:
    """Return a maintenance on all devices of a driver."""
    made = body("DeviceMaintenance", "firmware", {**SPEC, **spec}, generation=1)
    return msgspec.convert(made, DeviceMaintenance)


@dataclass
class History:
    """What happens to a maintenance; each decision knows only what was stored before."""

    body: DeviceMaintenance
    seen: dict[str, UnitSeen] = field(default_factory=dict)
    now: datetime = START - 3 * HOUR
    status: DeviceMaintenanceStatus = field(default_factory=DeviceMaintenanceStatus)
    reasons: list[str] = field(default_factory=list)

    def change(self, **spec: Any) -> None:
        """Change the spec, as people do."""
        changed = msgspec.structs.replace(self.body.spec, **spec)
        self.body = msgspec.structs.replace(self.body, spec=changed)

    def observe(self, name: str, **seen: Any) -> None:
        """Observe something of a unit."""
        known = self.seen.get(name, UnitSeen(devices=(f"d/p/{name}",)))
        self.seen[name] = replace(known, **seen)

    def approve(self, name: str) -> None:
        """Approve what a unit waits for."""
        self.observe(name, approvals=self.seen[name].approvals | {self.unit(name).approval})

    def unit(self, name: str) -> Any:
        return next(unit for unit in self.status.units if unit.name == name)

    @property
    def phases(self) -> dict[str, str]:
        return {unit.name: unit.phase for unit in self.status.units}

    def effects(self) -> dict[str, str]:
        """Return the effects of the taints that the maintenance sets now."""
        paused = settings_of(self.body).paused
        return {unit.name: effect_of(unit, paused=paused) for unit in self.status.units}

    def evicts(self) -> set[str]:
        """Return the units from which pods are evicted now: by the drain, or by the taint."""
        settings = settings_of(self.body)
        drained = {
            unit.name
            for unit in self.status.units
            if unit.phase == DRAINING and not settings.paused and not settings.cancelled
        }
        by_taint = {name for name, effect in self.effects().items() if effect == NO_EXECUTE}
        return drained | by_taint

    def decide(self, at: datetime | None = None) -> MaintenanceDecision:
        """Decide once, and store the result as a server does."""
        self.now = at or self.now
        decision = decide(settings_of(self.body), self.status, self.seen, self.now)
        fields = status_fields(self.body, decision, len(self.seen))
        stored = {name: value for name, value in fields.items() if value is not None}
        stored["phases"] = {name: count for name, count in fields["phases"].items() if count}
        self.status = msgspec.json.decode(json.dumps(stored), type=DeviceMaintenanceStatus)
        self.reasons += [f"{name}:{notice.reason}" for name, notice in decision.notices]
        return decision

    def run(self, until: datetime) -> None:
        """Decide whenever a decision asks for it."""
        for _ in range(1000):
            decision = self.decide()
            if decision.requeue_at is None or decision.requeue_at > until:
                self.now = until
                return
            self.now = max(self.now, decision.requeue_at)
        raise AssertionError("it never settles")

    def drained(self, *names: str) -> None:
        """Let drains end well."""
        for name in names:
            self.observe(name, idle=True, drain=DrainReport(outcome=DrainOutcome.DONE))


def history(*names: str, busy: bool = True, **spec: Any) -> History:
    """Return a history with devices that pods use."""
    made = History(maintenance(**spec))
    for name in names:
        made.observe(name, idle=not busy)
    return made
