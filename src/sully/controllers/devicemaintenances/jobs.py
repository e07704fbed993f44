"""The Jobs of one maintenance: which it wants, and what they have shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from sully.api.sully.types import GROUP, MAINTENANCE_KIND, VERSION, DeviceMaintenance
from sully.client.transport import Key
from sully.controllers.proofjobs import ProofJobs
from sully.domain.maintenance.settings import MaintenanceSettings
from sully.domain.maintenance.steps import FAILED, JobsReport, Unit, job_run, jobs_of, retry_time
from sully.domain.proofs.outcomes import ProofOutcome, has_ended
from sully.domain.proofs.requests import ProofOwner, ProofRequest, ProofSettings, run_name
from sully.domain.proofs.selection import NotSelectableError
from sully.views.maintenance.devices import MaintenanceDevices

RETRY: Final = timedelta(seconds=30)
"""When to look again at Jobs that run or cannot be created; events are usually faster."""
_NO_JOBS: Final = "the server has no Jobs"


class JobsPlan(msgspec.Struct):
    """Which Jobs a maintenance has now."""

    owner: ProofOwner
    desired: list[ProofRequest] = msgspec.field(default_factory=list)
    retained: set[Key] = msgspec.field(default_factory=set)
    """Those that have ended, and that people may look at."""
    problems: dict[str, str] = msgspec.field(default_factory=dict)
    """Why Jobs cannot be created, by device."""


class MaintenanceJobs:
    """Runs the Jobs of maintenances."""

    def __init__(self, jobs: ProofJobs | None) -> None:
        self._jobs = jobs

    async def report(
        self,
        maintenance: DeviceMaintenance,
        settings: MaintenanceSettings,
        unit: Unit,
        problems: Mapping[str, str],
        devices: MaintenanceDevices,
    ) -> JobsReport:
        """Return what the Jobs of a unit have shown."""
        job = jobs_of(settings, unit)
        if job is None or unit.phase == FAILED:
            return JobsReport()
        problem = next((problems[one] for one in unit.devices if one in problems), "")
        if self._jobs is None or problem:
            return JobsReport(message=f"the Job cannot start: {problem or _NO_JOBS}")
        runs = dict.fromkeys(unit.devices, job_run(unit))
        outcomes = await self._jobs.outcomes(
            _owner(maintenance), job, runs, devices.exact_expression
        )
        return _summary(unit, outcomes)

    def plan(
        self,
        maintenance: DeviceMaintenance,
        settings: MaintenanceSettings,
        units: Iterable[Unit],
        devices: MaintenanceDevices,
        now: datetime,
    ) -> JobsPlan:
        """Return which Jobs units have now; those of other units are to be deleted."""
        plan = JobsPlan(_owner(maintenance))
        if self._jobs is None:
            return plan
        desired: list[ProofRequest] = []
        for unit in units:
            job = jobs_of(settings, unit)
            if job is None:
                continue
            again = retry_time(settings, unit)
            if unit.phase == FAILED or (again is not None and again > now):
                # So that people can read its logs.
                plan.retained |= _names(plan.owner, unit, job)
                continue
            for device in unit.devices:
                try:
                    expression = devices.exact_expression(device)
                except NotSelectableError as error:
                    plan.problems[device] = str(error)
                    continue
                desired.append(
                    ProofRequest(
                        owner=plan.owner,
                        settings=job,
                        device=device,
                        expression=expression,
                        run=job_run(unit),
                    )
                )
        plan.desired = self._within_parallelism(desired)
        return plan

    async def delete_others(self, plan: JobsPlan) -> None:
        """Delete the Jobs that are not planned any more."""
        if self._jobs is not None:
            await self._jobs.delete_others(plan.owner, plan.desired, plan.retained)

    async def start(self, plan: JobsPlan) -> dict[str, str]:
        """Create the planned Jobs; return why some cannot be created, by device."""
        if self._jobs is None:
            return {}
        return plan.problems | await self._jobs.start(plan.desired)

    def _within_parallelism(self, desired: list[ProofRequest]) -> list[ProofRequest]:
        """Return the requests whose Jobs may run now: first those that exist."""
        jobs = self._jobs
        assert jobs is not None

        def exists(request: ProofRequest) -> bool:
            return jobs.jobs.get(Key(request.settings.namespace, request.name)) is not None

        chosen: list[ProofRequest] = []
        running = 0
        for request in sorted(desired, key=lambda one: (not exists(one), one.device)):
            if exists(request) or running < request.settings.parallelism:
                chosen.append(request)
                running += not self._has_ended(request)
        return chosen

    def _has_ended(self, request: ProofRequest) -> bool:
        assert self._jobs is not None
        job = self._jobs.jobs.get(Key(request.settings.namespace, request.name))
        return job is not None and has_ended(job)


def _summary(unit: Unit, by_device: Mapping[str, ProofOutcome]) -> JobsReport:
    outcomes = [by_device.get(device) for device in unit.devices]
    ended = [one for one in outcomes if one is not None and one.finished]
    failed = [one for one in ended if not one.succeeded]
    if failed:
        return JobsReport(failed=True, message=failed[0].message)
    if len(ended) == len(unit.devices):
        return JobsReport(succeeded=True)
    running = [one for one in outcomes if one is not None and not one.finished]
    return JobsReport(message=running[0].message if running else "waits for its Job")


def _names(owner: ProofOwner, unit: Unit, job: ProofSettings) -> set[Key]:
    failures = unit.job_failures if unit.phase == FAILED else unit.job_failures - 1
    run = f"{unit.failed_phase or unit.phase}-{unit.attempt}-{failures}"
    return {Key(job.namespace, run_name(owner, device, run)) for device in unit.devices}


def _owner(maintenance: DeviceMaintenance) -> ProofOwner:
    return ProofOwner(
        api_version=f"{GROUP}/{VERSION}",
        kind=MAINTENANCE_KIND,
        name=maintenance.metadata.name,
        uid=maintenance.metadata.uid,
    )
