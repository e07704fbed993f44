"""Runs the drains of a maintenance: one drain core for each unit, and one rate for all.

A drain is restored from the status of its unit, so one that is lost with the controller continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from sully.domain.drain.core import Drain
from sully.domain.drain.messages import (
    DrainPod,
    DrainState,
    Event,
    EvictDrainPod,
    EvictionsPostponed,
    PodsChanged,
    StateChanged,
    Stop,
    UseNoExecute,
    WaitUntil,
)
from sully.domain.drain.texts import outcome_text, progress_text
from sully.domain.maintenance.settings import MaintenanceSettings
from sully.domain.maintenance.steps import DrainReport, Unit
from sully.views.maintenance.pods import UnitPods


class _Running(msgspec.Struct):
    core: Drain
    attempt: int
    report: DrainReport = msgspec.field(default_factory=DrainReport)


class DrainStep(msgspec.Struct):
    """What the drains of a maintenance want now."""

    evictions: list[tuple[str, DrainPod]] = msgspec.field(default_factory=list)
    """Pods to evict, with their units."""
    requeue_at: datetime | None = None
    reported: bool = False
    """Whether a drain reports something new, so that there is something to decide."""


class Drains:
    """The drains of one maintenance."""

    def __init__(self, pods: UnitPods) -> None:
        self._pods = pods
        self._running: dict[str, _Running] = {}

    def stop(self) -> None:
        """Forget all drains: what is to be continued is in the status."""
        self._running.clear()

    def report(self, unit: str) -> DrainReport:
        """Return what the drain of a unit reports."""
        running = self._running.get(unit)
        return running.report if running is not None else DrainReport()

    def step(
        self, units: Iterable[Unit], settings: MaintenanceSettings, now: datetime
    ) -> DrainStep:
        """Return what the drains of these units want; no others run any more."""
        draining = {unit.name: unit for unit in units}
        for name in self._running.keys() - draining.keys():
            del self._running[name]
        step = DrainStep()
        for name, unit in sorted(draining.items()):
            running = self._start(unit, settings)
            core = running.core
            core.handle(StateChanged(DrainState(full_at=self._full_at(now))), now)
            pods = self._pods.observe(unit.devices, settings, core.workloads())
            core.handle(PodsChanged(pods), now)
            self._decide(running, name, step, settings, now)
        return step

    def _start(self, unit: Unit, settings: MaintenanceSettings) -> _Running:
        running = self._running.get(unit.name)
        if running is None or running.attempt != unit.attempt:
            state = DrainState(unit.rate_time, unit.evicted, unit.workloads)
            assert unit.drain_time is not None
            running = _Running(Drain(settings.drain, unit.drain_time, state), unit.attempt)
            self._running[unit.name] = running
        return running

    def _full_at(self, now: datetime) -> datetime | None:
        """Return when the bucket of all drains together is full: they share the rate."""
        times = (running.core.state(now).full_at for running in self._running.values())
        return max((time for time in times if time is not None), default=None)

    def _decide(
        self,
        running: _Running,
        name: str,
        step: DrainStep,
        settings: MaintenanceSettings,
        now: datetime,
    ) -> None:
        before = running.report
        evicts = settings.drain.evicts
        report = DrainReport(no_execute=before.no_execute)
        for effect in running.core.decide(now):
            match effect:
                case EvictDrainPod(pod):
                    step.evictions.append((name, pod))
                case UseNoExecute():
                    report = DrainReport(no_execute=True)
                case Stop(outcome):
                    report = DrainReport(outcome=outcome, message=outcome_text(effect))
                case WaitUntil(time) if time is not None:
                    step.requeue_at = min(time, step.requeue_at or time)
                case WaitUntil():
                    pass
        if report.outcome is None:
            text = progress_text(running.core.progress(), evicts=evicts)
            report = DrainReport(no_execute=report.no_execute, message=text)
        running.report = report
        step.reported = step.reported or report != before

    def saved(self, units: Sequence[Unit], now: datetime) -> tuple[Unit, ...]:
        """Return the units with what another run of their drains has to know."""
        return tuple(self._with_state(unit, now) for unit in units)

    def _with_state(self, unit: Unit, now: datetime) -> Unit:
        running = self._running.get(unit.name)
        if running is None:
            return unit
        state = running.core.state(now)
        return replace(
            unit, rate_time=state.full_at, evicted=state.evicted, workloads=state.workloads
        )

    def postponed(self, evictions: Iterable[tuple[str, DrainPod]], now: datetime) -> None:
        """Note that pods were not evicted."""
        for name, pod in evictions:
            self._handle(name, EvictionsPostponed((pod.uid,)), now)

    def _handle(self, name: str, event: Event, now: datetime) -> None:
        running = self._running.get(name)
        if running is not None:
            running.core.handle(event, now)

    def answered(self, name: str, event: Event, now: datetime) -> None:
        """Note what the server answered to an eviction."""
        self._handle(name, event, now)
