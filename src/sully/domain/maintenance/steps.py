"""What happens to one unit, a device or a node, from when it is closed until it is given back.

`Stepper.advance` takes the unit as it is stored, and what is observed of it; it returns the unit as
it is to be stored, or None if it is given back. What a step needs is in the unit, so that a
controller that restarts continues where it was.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.sully.types import DeviceMaintenanceUnit
from sully.domain.devicepolicies.states import Notice
from sully.domain.drain.messages import DrainOutcome
from sully.domain.maintenance.settings import APPROVAL, JOB, MANUAL, MaintenanceSettings
from sully.domain.proofs.requests import ProofSettings
from sully.machinery.formats.timestamps import later

Unit = DeviceMaintenanceUnit

CLOSED: Final = "Closed"
DRAINING: Final = "Draining"
AWAITING_APPROVAL: Final = "AwaitingApproval"
WORKING: Final = "Working"
AWAITING_READY: Final = "AwaitingReady"
AWAITING_PROOF: Final = "AwaitingProof"
PROVING: Final = "Proving"
FAILED: Final = "Failed"
PENDING: Final = "Pending"
DONE: Final = "Done"
PHASES: Final = (
    PENDING,
    CLOSED,
    DRAINING,
    AWAITING_APPROVAL,
    WORKING,
    AWAITING_READY,
    AWAITING_PROOF,
    PROVING,
    FAILED,
    DONE,
)
SETTLE: Final = timedelta(seconds=1)
"""How long the scheduler gets to see a new rule before the first pod is evicted."""


class DrainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the drain of a unit reports."""

    outcome: DrainOutcome | None = None
    """How it ended; None while it runs."""
    message: str = ""
    no_execute: bool = False
    """Whether it took too long, so that the taint has to evict the pods that remain."""


class JobsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the Jobs of a unit have shown: one for each of its devices."""

    succeeded: bool = False
    """Whether all have."""
    failed: bool = False
    """Whether one has."""
    message: str = ""


class UnitSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What is observed of a unit."""

    devices: tuple[str, ...] = ()
    """Its devices that are selected now."""
    ready: bool = True
    """Whether all its devices are published, and its node is Ready."""
    not_ready: str = ""
    """What is not ready."""
    idle: bool = True
    """Whether no pod uses its devices."""
    obstacle: str = ""
    """Pods on its devices that must not be evicted."""
    drain: DrainReport = DrainReport()
    approvals: frozenset[str] = frozenset()
    """What people approved."""
    jobs: JobsReport = msgspec.field(default_factory=JobsReport)


class Step(msgspec.Struct, frozen=True):
    """A unit after a step, None if it is given back, and what to report."""

    unit: Unit | None
    notice: Notice | None = None


class Stepper(msgspec.Struct, frozen=True):
    """Advances one unit by one step."""

    settings: MaintenanceSettings
    seen: UnitSeen
    now: datetime

    def advance(self, unit: Unit) -> Step:
        """Return the unit after the next step; the same unit if it has to wait."""
        match unit.phase:
            case "Closed":
                return self._closed(unit)
            case "Draining":
                return self._draining(unit)
            case "AwaitingApproval":
                return self._awaiting_approval(unit)
            case "Working" | "Proving":
                return self._running_jobs(unit)
            case "AwaitingReady":
                return self._awaiting_ready(unit)
            case "AwaitingProof":
                return self._proving(unit)
            case "Failed":
                return self._failed(unit)
            case _:
                # Of a newer version: it is kept closed.
                return Step(unit)

    # -- closed, and drained ----------------------------------------------------------------------

    def _closed(self, unit: Unit) -> Step:
        closed = unit.closed_time or self.now
        settled = max(self.settings.start, later(closed, SETTLE))
        if self.now < settled:
            return Step(_waiting(unit, "no new pod gets it; the work has not started", settled))
        if self.seen.idle:
            return self._begin_work(unit)
        evicts_at = max(settled, later(closed, self.settings.close_before))
        if self.now < evicts_at:
            return Step(_waiting(unit, "no new pod gets it; its pods may finish", evicts_at))
        if self.seen.obstacle:
            return Step(_waiting(unit, self.seen.obstacle))
        return self._begin_drain(unit)

    def _begin_drain(self, unit: Unit) -> Step:
        evicts = self.settings.drain.evicts
        text = "pods are evicted" if evicts else "waits until its pods have finished"
        unit = self._enter(unit, DRAINING, text)
        return Step(replace(unit, drain_time=self.now), Notice("Draining", text))

    def _draining(self, unit: Unit) -> Step:
        drain = self.seen.drain
        if drain.outcome is DrainOutcome.DONE:
            return self._begin_work(unit)
        if drain.outcome is not None:
            return self._fail(unit, DRAINING, f"the drain stopped: {drain.message}")
        if drain.no_execute and not unit.no_execute:
            text = "the drain takes too long: NoExecute evicts the pods that remain"
            unit = replace(unit, no_execute=True, message=text)
            return Step(unit, Notice("DrainTimedOut", text, warning=True))
        return Step(_waiting(unit, drain.message or unit.message))

    # -- the work ---------------------------------------------------------------------------------

    def _begin_work(self, unit: Unit) -> Step:
        unit = replace(unit, work_time=self.now, no_execute=False, workloads=())
        if self.settings.hook == JOB:
            return self._begin_jobs(unit, WORKING, "hook")
        if self.settings.hook != APPROVAL:
            return self._begin_ready(unit)
        text = "drained: work on it may begin; run 'sully maintenance approve' when it is done"
        timeout = self.settings.hook_timeout
        unit = self._enter(unit, AWAITING_APPROVAL, text, approval=f"hook-{unit.attempt}")
        unit = replace(unit, next_action_time=self.now + timeout if timeout is not None else None)
        return Step(unit, Notice("Drained", text))

    def _awaiting_approval(self, unit: Unit) -> Step:
        if unit.approval in self.seen.approvals:
            return self._begin_ready(unit)
        timeout = self.settings.hook_timeout
        if timeout is None:
            return Step(replace(unit, next_action_time=None))
        fails_at = later(unit.since or self.now, timeout)
        if self.now >= fails_at:
            return self._fail(unit, AWAITING_APPROVAL, "nobody approved in time that it is done")
        return Step(replace(unit, next_action_time=fails_at))

    def _begin_ready(self, unit: Unit) -> Step:
        if self.seen.ready:
            return self._begin_proof(unit)
        text = self._not_ready()
        return Step(self._enter(unit, AWAITING_READY, text), Notice("NotReady", text))

    def _awaiting_ready(self, unit: Unit) -> Step:
        if self.seen.ready:
            return self._begin_proof(unit)
        return Step(_waiting(unit, self._not_ready()))

    def _not_ready(self) -> str:
        return f"is returned to service when it is ready: {self.seen.not_ready}"

    # -- the proof, and the end -------------------------------------------------------------------

    def _begin_proof(self, unit: Unit) -> Step:
        if self.settings.proof == JOB:
            return self._begin_jobs(unit, PROVING, "proof")
        if self.settings.proof != MANUAL:
            return Step(None, Notice("GivenBack", "Returned to service"))
        text = "needs proof that it works: 'sully maintenance approve'"
        unit = self._enter(unit, AWAITING_PROOF, text, approval=f"proof-{unit.attempt}")
        return Step(unit, Notice("AwaitingProof", text))

    def _proving(self, unit: Unit) -> Step:
        if unit.approval in self.seen.approvals:
            return Step(None, Notice("GivenBack", "Proven and returned to service"))
        return Step(_waiting(unit, unit.message))

    # -- Jobs -------------------------------------------------------------------------------------

    def _begin_jobs(self, unit: Unit, phase: str, stage: str) -> Step:
        text = "waits for its Job"
        unit = self._enter(unit, phase, text, approval=f"{stage}-{unit.attempt}")
        return Step(unit, Notice(phase, text))

    def _running_jobs(self, unit: Unit) -> Step:
        seen, job = self.seen.jobs, jobs_of(self.settings, unit)
        # People may know better than a Job.
        if seen.succeeded or job is None or unit.approval in self.seen.approvals:
            if unit.phase == WORKING:
                return self._begin_ready(unit)
            return Step(None, Notice("GivenBack", "Proven and returned to service"))
        if not seen.failed:
            again = retry_time(self.settings, unit)
            if again is not None and again > self.now:
                return Step(_waiting(unit, unit.message, again))
            return Step(_waiting(unit, seen.message or unit.message))
        failures = unit.job_failures + 1
        text = f"{seen.message} (attempt {failures} of {job.attempts})"
        if failures >= job.attempts:
            return self._fail(unit, unit.phase, text)
        unit = replace(unit, job_failures=failures, job_failed_time=self.now)
        unit = _waiting(unit, f"{text}; it is retried", self.now + job.retry_after)
        return Step(unit, Notice("JobFailed", text, warning=True))

    # -- failures ---------------------------------------------------------------------------------

    def _fail(self, unit: Unit, phase: str, message: str) -> Step:
        # Without work on it, it is given back when the window has ended.
        ends = unit.work_time is None and self.settings.end is not None
        until = ", or the end of the maintenance" if ends else ""
        text = f"{message}; it stays closed until 'sully maintenance retry' or 'cancel'{until}"
        unit = self._enter(unit, FAILED, text, approval=f"retry-{unit.attempt}")
        unit = replace(unit, failed_phase=phase, no_execute=False)
        return Step(unit, Notice("Failed", text, warning=True))

    def _failed(self, unit: Unit) -> Step:
        if unit.approval not in self.seen.approvals:
            return Step(_waiting(unit, unit.message))
        phase = unit.failed_phase
        unit = replace(unit, attempt=unit.attempt + 1, failed_phase="")
        if phase == DRAINING:
            return self._begin_drain(unit)
        if phase == PROVING:
            return self._begin_ready(unit)
        return self._begin_work(unit)

    def _enter(self, unit: Unit, phase: str, message: str, approval: str = "") -> Unit:
        return replace(
            unit,
            phase=phase,
            since=self.now,
            message=message,
            approval=approval,
            next_action_time=None,
            # Those of a unit that failed are needed to find its last Job.
            job_failures=unit.job_failures if phase == FAILED else 0,
            job_failed_time=None,
        )


def _waiting(unit: Unit, message: str, until: datetime | None = None) -> Unit:
    return replace(unit, message=message, next_action_time=until)


def is_blocked(unit: Unit) -> bool:
    """Report whether a unit is not drained because of pods that must not be evicted."""
    # Every other wait of a closed unit ends at a time.
    return unit.phase == CLOSED and bool(unit.message) and unit.next_action_time is None


def jobs_of(settings: MaintenanceSettings, unit: Unit) -> ProofSettings | None:
    """Return the Jobs that a unit has in its phase, or had when it failed."""
    match unit.failed_phase or unit.phase:
        case "Working":
            return settings.hook_job
        case "Proving":
            return settings.proof_job
        case _:
            return None


def job_run(unit: Unit) -> str:
    """Return what distinguishes the Jobs of a unit from those before."""
    return f"{unit.failed_phase or unit.phase}-{unit.attempt}-{unit.job_failures}"


def retry_time(settings: MaintenanceSettings, unit: Unit) -> datetime | None:
    """Return when the Jobs of a unit may be created; None if immediately."""
    job, failed = jobs_of(settings, unit), unit.job_failed_time
    return later(failed, job.retry_after) if job is not None and failed is not None else None
