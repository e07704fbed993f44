"""What a maintenance does now: which units are closed, how far each is, and which are given back.

`decide` is the whole state machine: it advances the units that are closed (steps.py), then closes
others as far as `maxUnavailable` and the window allow. Its input is what the status has, so nothing
is stored anywhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.sully.types import DeviceMaintenanceStatus
from sully.domain.devicepolicies.states import Notice
from sully.domain.maintenance.settings import MaintenanceSettings
from sully.domain.maintenance.steps import (
    CLOSED,
    DONE,
    DRAINING,
    FAILED,
    PENDING,
    PHASES,
    Stepper,
    Unit,
    UnitSeen,
)
from sully.domain.workloads.percentages import scaled
from sully.machinery.formats.timestamps import later

SCHEDULED: Final = "Scheduled"
RUNNING: Final = "Running"
PAUSED: Final = "Paused"
COMPLETED: Final = "Completed"
ENDED: Final = "Ended"
CANCELLED: Final = "Cancelled"
FINAL: Final = frozenset((COMPLETED, ENDED, CANCELLED))
MAX_ACTIVE: Final = 500
"""How many units are closed at the same time at most: all of them are in the status."""
NOT_SEEN: Final = UnitSeen(ready=False, not_ready="its devices are not published", idle=False)


class MaintenanceDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a maintenance, and when to decide again."""

    phase: str
    units: tuple[Unit, ...] = ()
    """Those that are closed, in order of their names."""
    finished: tuple[str, ...] = ()
    total: int = 0
    phases: Mapping[str, int]
    """How many units are in each phase."""
    paused_time: datetime | None = None
    end_time: datetime | None = None
    notices: tuple[tuple[str, Notice], ...] = ()
    """What happened, by unit; an empty name is the maintenance."""
    requeue_at: datetime | None = None
    """When something changes by itself."""


def decide(
    settings: MaintenanceSettings,
    status: DeviceMaintenanceStatus,
    seen: Mapping[str, UnitSeen],
    now: datetime,
) -> MaintenanceDecision:
    """Return the new state; `seen` has all selected units, and those that are closed.

    The result does not depend on the order of the mapping.
    """
    return _Pass(settings, status, seen, now).decide()


class _Pass:
    def __init__(
        self,
        settings: MaintenanceSettings,
        status: DeviceMaintenanceStatus,
        seen: Mapping[str, UnitSeen],
        now: datetime,
    ) -> None:
        self._settings = settings
        self._status = status
        self._seen = seen
        self._now = now
        self._units = {unit.name: unit for unit in status.units}
        self._finished = set(status.finished)
        self._notices: list[tuple[str, Notice]] = []

    def decide(self) -> MaintenanceDecision:
        self._give_back_what_is_over()
        frozen = self._settings.frozen
        if not frozen:
            self._shift_drains()
            self._advance()
            self._close()
        phase = self._phase(paused=frozen)
        is_final = phase in FINAL
        self._announce(phase)
        paused_time = (self._status.paused_time or self._now) if frozen else None
        return MaintenanceDecision(
            phase=phase,
            units=tuple(self._units[name] for name in sorted(self._units)),
            finished=tuple(sorted(self._finished)),
            total=len(self._finished | self._units.keys() | self._seen.keys()),
            phases=self._counts(),
            paused_time=paused_time,
            end_time=(self._status.end_time or self._now) if is_final else None,
            notices=tuple(self._notices),
            requeue_at=self._requeue_at(is_final=is_final),
        )

    # -- giving back ------------------------------------------------------------------------------

    def _give_back_what_is_over(self) -> None:
        """Give devices back: all when cancelled, those without work when the window has ended."""
        cancelled = self._settings.cancelled
        if not cancelled and not self._is_over():
            return
        text = "Returned to service: the maintenance was cancelled" if cancelled else _OUT_OF_TIME
        for name, unit in sorted(self._units.items()):
            if cancelled or unit.work_time is None:
                del self._units[name]
                self._notify(name, Notice("GivenBack", text, warning=not cancelled))

    def _is_over(self) -> bool:
        return self._settings.is_over(self._now) or self._status.phase in FINAL

    def _shift_drains(self) -> None:
        """Leave the time of a pause out of the time that drains may take."""
        since = self._status.paused_time
        if since is None:
            return
        pause = self._now - since
        for name, unit in self._units.items():
            if unit.phase == DRAINING and unit.drain_time is not None:
                self._units[name] = replace(unit, drain_time=later(unit.drain_time, pause))

    # -- steps ------------------------------------------------------------------------------------

    def _advance(self) -> None:
        for name in sorted(self._units):
            step = self._stepper(name).advance(self._units[name])
            if step.notice is not None:
                self._notify(name, step.notice)
            if step.unit is None:
                del self._units[name]
                self._finished.add(name)
            else:
                self._units[name] = step.unit

    def _stepper(self, name: str) -> Stepper:
        return Stepper(self._settings, self._seen.get(name, NOT_SEEN), self._now)

    def _close(self) -> None:
        """Close further units, as far as the limit allows."""
        if self._settings.cancelled or self._is_over() or self._now < self._settings.closes_at:
            return
        pending = sorted(self._seen.keys() - self._units.keys() - self._finished)
        total = len(self._finished | self._units.keys() | self._seen.keys())
        most = min(MAX_ACTIVE, scaled(self._settings.max_unavailable, total, up=True))
        for name in pending[: max(0, most - len(self._units))]:
            unit = Unit(
                name=name,
                devices=self._seen[name].devices,
                phase=CLOSED,
                since=self._now,
                closed_time=self._now,
            )
            # It waits at least until the scheduler has seen its rules.
            self._units[name] = self._stepper(name).advance(unit).unit or unit
            self._notify(name, Notice("Closed", "Closed: no new pod gets it"))

    # -- the whole --------------------------------------------------------------------------------

    def _phase(self, *, paused: bool) -> str:
        pending = self._seen.keys() - self._units.keys() - self._finished
        if self._status.phase in FINAL and not self._settings.cancelled:
            return self._status.phase
        if not self._units and self._finished and not pending:
            return COMPLETED
        if self._settings.cancelled:
            return CANCELLED
        if self._is_over() and all(unit.phase == FAILED for unit in self._units.values()):
            return ENDED
        if paused:
            return PAUSED
        return RUNNING if self._units or self._now >= self._settings.closes_at else SCHEDULED

    def _announce(self, phase: str) -> None:
        if phase == self._status.phase or phase not in _TEXTS:
            return
        text, warning = _TEXTS[phase]
        self._notify("", Notice(phase, text, warning=warning))

    def _notify(self, name: str, notice: Notice) -> None:
        self._notices.append((name, notice))

    def _counts(self) -> dict[str, int]:
        counts = Counter(unit.phase for unit in self._units.values())
        counts[DONE] = len(self._finished)
        counts[PENDING] = len(self._seen.keys() - self._units.keys() - self._finished)
        return {phase: counts[phase] for phase in PHASES if counts[phase]}

    def _requeue_at(self, *, is_final: bool) -> datetime | None:
        times = [] if is_final else [self._settings.end]
        if not self._settings.paused:
            times += [unit.next_action_time for unit in self._units.values()]
            times += [] if is_final else [self._settings.closes_at]
        return min((time for time in times if time is not None and time > self._now), default=None)


_OUT_OF_TIME: Final = "Returned to service without work on it: the maintenance has ended"
_TEXTS: Final = {
    RUNNING: ("Devices are closed and drained", False),
    PAUSED: ("No further step begins, and no pod is evicted", False),
    COMPLETED: ("All devices are done and returned to service", False),
    ENDED: ("The window has ended before all work was done", True),
    CANCELLED: ("All devices are returned to service", True),
}
