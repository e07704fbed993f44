"""A DeviceMaintenance as the state machine reads it: times, numbers, and no gaps.

On other servers a maintenance may lack defaults or have values that our own server refuses.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.eviction_rate import EvictionRate, parse_rate
from sully.api.sully.durations import duration
from sully.api.sully.types import DeviceMaintenance, DeviceMaintenanceDrain, DeviceProof
from sully.domain.drain.messages import DrainSettings
from sully.domain.proofs.requests import ProofSettings
from sully.domain.proofs.requests import settings_of as jobs_of
from sully.machinery.formats.timestamps import later

APPROVAL: Final = "Approval"
JOB: Final = "Job"
MANUAL: Final = "Manual"
NONE: Final = "None"


class MaintenanceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a maintenance specifies, apart from which devices it is about."""

    start: datetime
    end: datetime | None = None
    close_before: timedelta = timedelta(0)
    max_unavailable: int | str = 1
    by_node: bool = False
    drain: DrainSettings = msgspec.field(default_factory=DrainSettings)
    force: bool = False
    ignore_daemon_sets: bool = False
    hook: str = NONE
    hook_timeout: timedelta | None = None
    hook_job: ProofSettings | None = None
    proof: str = NONE
    proof_job: ProofSettings | None = None
    paused: bool = False
    cancelled: bool = False

    @property
    def frozen(self) -> bool:
        """Report whether no step begins: what is cancelled is given back even after a pause."""
        return self.paused and not self.cancelled

    @property
    def closes_at(self) -> datetime:
        """Return when the first devices are closed."""
        return later(self.start, -self.close_before)

    def is_over(self, now: datetime) -> bool:
        """Report whether the window has ended."""
        return self.end is not None and now >= self.end


def settings_of(maintenance: DeviceMaintenance) -> MaintenanceSettings:
    """Return the settings of a maintenance."""
    spec = maintenance.spec
    hook, proof = spec.hook, spec.proof
    proof_job = jobs_of(proof)
    hook_job = jobs_of(DeviceProof(type=hook.type, job=hook.job)) if hook is not None else None
    return MaintenanceSettings(
        start=spec.start,
        end=end_of(maintenance),
        close_before=duration(spec.close_before),
        max_unavailable=spec.rolling.max_unavailable or 1,
        by_node=spec.rolling.by == "Node",
        drain=_drain_settings(spec.drain, spec.rolling.wait_for_ready or "10m"),
        force=spec.drain.force,
        ignore_daemon_sets=spec.drain.ignore_daemon_sets,
        # Of a type that this version does not know, people are asked.
        hook=NONE if hook is None else JOB if hook_job is not None else APPROVAL,
        hook_timeout=duration(hook.timeout) or None if hook is not None else None,
        hook_job=hook_job,
        proof=NONE if proof is None or proof.type == NONE else JOB if proof_job else MANUAL,
        proof_job=proof_job,
        paused=spec.paused,
        cancelled=spec.cancelled,
    )


def end_of(maintenance: DeviceMaintenance) -> datetime | None:
    """Return when the window of a maintenance ends; None if it has no end."""
    spec = maintenance.spec
    if spec.end is not None:
        return spec.end
    return later(spec.start, duration(spec.duration)) if spec.duration else None


def _drain_settings(drain: DeviceMaintenanceDrain, wait: str) -> DrainSettings:
    timeout = duration(drain.timeout) or None
    return DrainSettings(
        rate=_rate(drain),
        max_unavailable=drain.max_unavailable,
        wait_ready=duration(wait) or None,
        timeout=timeout,
        use_no_execute=drain.then == "NoExecute" and timeout is not None,
        evicts=drain.mode != "WhenIdle",
    )


def _rate(drain: DeviceMaintenanceDrain) -> EvictionRate:
    try:
        rate = parse_rate(drain.rate or "1/s")
    except ValueError:
        rate = parse_rate("1/s")
    return replace(rate, burst=max(1, drain.burst or 1))
