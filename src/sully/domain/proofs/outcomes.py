"""What a Job that tests a device has shown so far."""

from __future__ import annotations

import msgspec
from msgspec import field

from sully.domain.workloads.jobs.objects import ENDS, JobCondition
from sully.machinery.meta import ObjectMeta, Wire, find_condition, is_condition_true

MESSAGE_MAX = 1024


class ProofJobStatus(Wire, frozen=True, kw_only=True):
    """How a Job ended."""

    conditions: tuple[JobCondition, ...] = ()


class ProofJob(Wire, frozen=True, kw_only=True):
    """A Job as proofs read it."""

    metadata: ObjectMeta
    status: ProofJobStatus = field(default_factory=ProofJobStatus)


class ProofOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a Job, or that it has not ended."""

    run: str
    finished: bool = False
    succeeded: bool = False
    message: str = ""


def outcome(run: str, job: ProofJob, details: str = "") -> ProofOutcome:
    """Return what a Job has shown; `details` is what its pods reported."""
    name = f"Job {job.metadata.namespace}/{job.metadata.name}"
    if is_condition_true(job.status.conditions, "Complete"):
        return ProofOutcome(run=run, finished=True, succeeded=True, message=f"{name} succeeded")
    if is_condition_true(job.status.conditions, "Failed"):
        failed = find_condition(job.status.conditions, "Failed")
        reason = failed.message or failed.reason if failed is not None else ""
        text = ": ".join(part for part in (f"{name} failed", details or reason) if part)
        return ProofOutcome(run=run, finished=True, message=_shortened(text))
    if job.metadata.deletion_timestamp is not None:
        # A user deleted it: the next one gets its name when it is gone.
        return ProofOutcome(run=run, message=f"{name} is being deleted")
    return ProofOutcome(run=run, message=f"{name} is running")


def has_failed(job: ProofJob) -> bool:
    """Report whether a Job has failed, so that the status of its pods may contain why."""
    return is_condition_true(job.status.conditions, "Failed")


def has_ended(job: ProofJob) -> bool:
    """Report whether a Job has succeeded or failed."""
    return any(is_condition_true(job.status.conditions, type_) for type_ in ENDS)


def _shortened(text: str) -> str:
    return text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 1]}…"
