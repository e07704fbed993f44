"""Which devices of a policy need a Job as proof, when, and what is reported about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sully.domain.devicepolicies.settings import DRY_RUN, PolicySettings
from sully.domain.devicepolicies.states import DeviceState, Observation
from sully.machinery.formats.timestamps import later

AWAITING_PROOF: Final = "AwaitingProof"
_CLEAR: Final = "needs 'sully policies clear'"


def next_proof_time(settings: PolicySettings, state: DeviceState) -> datetime | None:
    """Return from when a Job may be created for a device; None if none may."""
    job, recovered = settings.proof_job, state.recovered_time
    if job is None or recovered is None or state.flapping or settings.mode == DRY_RUN:
        return None
    if state.proof_failures >= job.attempts:
        return None
    if state.proof_failed_time is not None:
        return later(state.proof_failed_time, job.retry_after)
    return later(recovered, settings.clear_after)


def proofs_to_run(
    settings: PolicySettings,
    states: Mapping[str, DeviceState],
    seen: Mapping[str, Observation],
    now: datetime,
) -> tuple[str, ...]:
    """Return the devices that have a Job now: those that run, then those that waited longest."""
    if settings.proof_job is None:
        return ()
    due: list[tuple[bool, datetime, str]] = []
    for device, state in states.items():
        time = next_proof_time(settings, state)
        if state.phase == AWAITING_PROOF and time is not None and time <= now:
            observed = seen.get(device)
            due.append((observed is None or observed.proof is None, time, device))
    return tuple(device for _, _, device in sorted(due)[: settings.proof_job.parallelism])


def proof_message(settings: PolicySettings, state: DeviceState, seen: Observation) -> str:
    """Return what a recovered device waits for."""
    job = settings.proof_job
    if job is None:
        return _CLEAR
    if settings.mode == DRY_RUN:
        return "a Job would have to prove the device healthy"
    failures = state.proof_failures
    if failures >= job.attempts:
        return f"{state.proof_message} (attempt {failures} of {job.attempts}): {_CLEAR}"
    if seen.proof_problem:
        return f"the proof cannot start: {seen.proof_problem}"
    if seen.proof is not None and not seen.proof.finished:
        return seen.proof.message
    if failures:
        return f"{state.proof_message} (attempt {failures} of {job.attempts}); it is retried"
    return "waits for its proof"
