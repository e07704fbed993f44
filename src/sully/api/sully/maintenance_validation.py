"""Validation of DeviceMaintenances."""

from collections.abc import Mapping
from typing import Any, Final

from sully.api.core.checks import Errors, between, label_key, one_of
from sully.api.resource.eviction_rate import MAX_COUNT, parse_rate
from sully.api.sully.checks import limited, validate_amount
from sully.api.sully.durations import duration, validate_duration
from sully.api.sully.policies.device_validation import validate_selector
from sully.api.sully.policies.proof_validation import validate_proof
from sully.machinery.fields import Path
from sully.machinery.formats.timestamps import TimeError, parse_time
from sully.machinery.strategy import WriteContext

Obj = dict[str, Any]

UNITS = ("Device", "Node")
MODES = ("Evict", "WhenIdle")
ACTIONS = ("Fail", "NoExecute")
HOOKS = ("Approval", "Job")
_PROOF_OF_HOOK = {"Approval": "Manual", "Job": "Job"}
"""Proofs with the same fields."""
TIMEOUT_OF_JOB = "a Job has a timeout of its own"
REASON_MAX: Final = 512
BY_DEFAULT: Final[Mapping[str, Obj]] = {
    "rolling": {"by": "Device", "maxUnavailable": 1, "waitForReady": "10m"},
    "drain": {"mode": "Evict", "rate": "1/s", "then": "Fail"},
}
"""The defaults of a maintenance."""
TWO_ENDS = "may not be set together with duration"
NOT_LATER = "must be later than start"
NOT_UNDONE = "a cancelled maintenance cannot be continued: create another"
NEEDS_TIMEOUT = "the action NoExecute requires a timeout"
NEEDS_WAIT = "may not be set if waitForReady is 0s"


def validate_maintenance(spec: Obj, at: Path, ctx: WriteContext) -> Errors:
    """Yield everything wrong with a maintenance."""
    yield from validate_selector(spec["selector"], at.child("selector"), ctx)
    yield from label_key(spec["identityAttribute"], at.child("identityAttribute"))
    yield from limited(spec, "reason", at, REASON_MAX)
    yield from _window(spec, at)
    yield from _rolling(spec["rolling"], at.child("rolling"))
    yield from _drain(spec, at.child("drain"))
    if (hook := spec.get("hook")) is not None:
        yield from _hook(hook, at.child("hook"))
    yield from validate_proof(spec.get("proof"), at.child("proof"))


def _hook(hook: Obj, at: Path) -> Errors:
    yield from one_of(hook["type"], HOOKS, at.child("type"), required=True)
    yield from _positive(hook, "timeout", at)
    if hook["type"] == "Job" and hook.get("timeout"):
        yield at.child("timeout").forbidden(TIMEOUT_OF_JOB)
    if hook["type"] in HOOKS:
        job = {"job": hook["job"]} if "job" in hook else {}
        yield from validate_proof({"type": _PROOF_OF_HOOK[hook["type"]], **job}, at)


def validate_change(spec: Obj, old: Obj, at: Path) -> Errors:
    """Check what may change."""
    if old.get("cancelled") and not spec.get("cancelled"):
        yield at.child("cancelled").forbidden(NOT_UNDONE)


def _window(spec: Obj, at: Path) -> Errors:
    if not spec.get("start"):
        yield at.child("start").required()
    yield from _positive(spec, "duration", at)
    yield from validate_duration(spec.get("closeBefore", ""), at.child("closeBefore"))
    end = spec.get("end")
    if end is None:
        return
    if spec.get("duration"):
        yield at.child("end").forbidden(TWO_ENDS)
    if spec.get("start") and not _is_before(spec["start"], end):
        yield at.child("end").invalid(end, NOT_LATER)


def _is_before(start: str, end: str) -> bool:
    try:
        return parse_time(start) < parse_time(end)
    except TimeError:
        return True  # an invalid time was refused before


def _positive(values: Obj, name: str, at: Path) -> Errors:
    if values.get(name):
        yield from validate_duration(values[name], at.child(name), required=True)


def _rolling(rolling: Obj, at: Path) -> Errors:
    yield from one_of(rolling["by"], UNITS, at.child("by"))
    yield from validate_amount(rolling["maxUnavailable"], at.child("maxUnavailable"), positive=True)
    yield from validate_duration(rolling["waitForReady"], at.child("waitForReady"))


def _drain(spec: Obj, at: Path) -> Errors:
    drain = spec["drain"]
    yield from one_of(drain["mode"], MODES, at.child("mode"))
    yield from one_of(drain["then"], ACTIONS, at.child("then"))
    try:
        parse_rate(drain["rate"])
    except ValueError:
        text = "must be a rate, for example 2/s or 1/5m"
        yield at.child("rate").invalid(drain["rate"], text)
    if (burst := drain.get("burst")) is not None:
        yield from between(burst, 1, MAX_COUNT, at.child("burst"))
    yield from _positive(drain, "timeout", at)
    if drain["then"] == "NoExecute" and not drain.get("timeout"):
        yield at.child("timeout").required(NEEDS_TIMEOUT)
    if (most := drain.get("maxUnavailable")) is not None:
        yield from validate_amount(most, at.child("maxUnavailable"), positive=True)
        if not duration(spec["rolling"]["waitForReady"]):
            yield at.child("maxUnavailable").forbidden(NEEDS_WAIT)
