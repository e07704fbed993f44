"""Validates the status of a Job: a finished Job stays finished, and the numbers fit.

Other controllers may manage Jobs, so the server checks each change. Most rules apply only when one
of the fields that they are about changes.
"""

from typing import Any

from sully.api.batch.indexes import IndexesError, count_indexes, first_overlap
from sully.api.core.checks import Errors, not_negative
from sully.api.core.workloads.workload import STATUS
from sully.machinery.formats.timestamps import parse_time

Obj = dict[str, Any]

_CONDITIONS = STATUS.child("conditions")
_TERMINAL = ("Failed", "Complete", "FailureTarget")


def has_condition(job: Obj, type_: str) -> bool:
    """Report whether a condition is true."""
    conditions = job["status"].get("conditions") or ()
    return any(
        (condition["type"], condition["status"]) == (type_, "True") for condition in conditions
    )


def is_finished(job: Obj) -> bool:
    """Report whether a Job is complete or has failed."""
    return has_condition(job, "Complete") or has_condition(job, "Failed")


def status_errors(job: Obj, old: Obj) -> Errors:
    """Check a change of the status."""
    status = job["status"]
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        yield from not_negative(status.get(name, 0), STATUS.child(name))
    yield from _uncounted(status)
    yield from _ends(job, old)
    yield from _finished(job, old)
    yield from _indexes(job, old)
    yield from _pods(job, old)
    yield from _success(job)
    yield from _transitions(job, old)


def _changed(job: Obj, old: Obj, *names: str) -> bool:
    """Report whether one of these fields changed; a capital letter is a condition."""
    return any(
        has_condition(job, name) != has_condition(old, name)
        if name[0].isupper()
        else job["status"].get(name) != old["status"].get(name)
        for name in names
    )


def _uncounted(status: Obj) -> Errors:
    seen: set[str] = set()
    for part in ("succeeded", "failed"):
        uids = (status.get("uncountedTerminatedPods") or {}).get(part) or ()
        for position, uid in enumerate(uids):
            at = STATUS.child("uncountedTerminatedPods", part).index(position)
            if not uid:
                yield at.invalid(uid, "must not be empty")
            elif uid in seen:
                yield at.duplicate(uid)
            seen.add(uid)


def _ends(job: Obj, old: Obj) -> Errors:
    status, complete = job["status"], has_condition(job, "Complete")
    start, end, at = status.get("startTime"), status.get("completionTime"), "completionTime"
    failed, target = has_condition(job, "Failed"), has_condition(job, "FailureTarget")
    if _changed(job, old, "Complete", "Failed") and complete and failed:
        text = "cannot set Complete=True and Failed=true conditions"
        yield _CONDITIONS.invalid_without_value(text)
    if _changed(job, old, "Complete", "FailureTarget") and complete and target:
        text = "cannot set Complete=True and FailureTarget=true conditions"
        yield _CONDITIONS.invalid_without_value(text)
    if _changed(job, old, "Complete", "completionTime"):
        if end and not complete:
            text = "cannot set completionTime when there is no Complete=True condition"
            yield STATUS.child(at).invalid(end, text)
        if complete and not end:
            yield STATUS.child(at).required("completionTime is required for Complete jobs")
    before_start = start and end and parse_time(end) < parse_time(start)
    if _changed(job, old, "startTime", "completionTime") and before_start:
        yield STATUS.child(at).invalid(end, "must be equal to or after `startTime`")
    if _changed(job, old, "Failed", "failedIndexes") and failed and not target:
        text = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield _CONDITIONS.invalid_without_value(text)
    met = has_condition(job, "SuccessCriteriaMet")
    if _changed(job, old, "Complete", "SuccessCriteriaMet") and complete and not met:
        text = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield _CONDITIONS.invalid_without_value(text)


def _finished(job: Obj, old: Obj) -> Errors:
    if not is_finished(job):
        return
    status, spec, ended = job["status"], job["spec"], is_finished(job) != is_finished(old)
    active = status.get("active", 0)
    if (ended or _changed(job, old, "active")) and active > 0:
        yield STATUS.child("active").invalid(active, "active>0 is invalid for finished job")
    never_started = spec.get("suspend") and spec.get("completions") == 0
    missing = not status.get("startTime") and not never_started
    if (ended or _changed(job, old, "startTime")) and missing:
        yield STATUS.child("startTime").required("startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if (ended or _changed(job, old, "uncountedTerminatedPods")) and any(uncounted.values()):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        at = STATUS.child("uncountedTerminatedPods")
        yield at.invalid(shown, "must be empty for finished job")


def _indexes(job: Obj, old: Obj) -> Errors:
    status, spec = job["status"], job["spec"]
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    completions = spec.get("completions")
    at_done, at_failed = STATUS.child("completedIndexes"), STATUS.child("failedIndexes")
    done_changed, failed_changed = (
        _changed(job, old, name) for name in ("completedIndexes", "failedIndexes")
    )
    if done_changed and completions is not None:
        for text in _problems(done, completions):
            yield at_done.invalid(done, f"error parsing completedIndexes: {text}")
    if failed_changed and failed is not None and completions is not None:
        for text in _problems(failed, completions) if "backoffLimitPerIndex" in spec else ():
            yield at_failed.invalid(failed, f"error parsing failedIndexes: {text}")
    if done_changed and done and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield at_done.invalid(done, text)
    if failed_changed and failed is not None and "backoffLimitPerIndex" not in spec:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield at_failed.invalid(failed, text)
    if (done_changed or failed_changed) and failed is not None and completions is not None:
        common = first_overlap(done, failed)
        if common is not None:
            text = f"failedIndexes and completedIndexes overlap at index: {common}"
            yield at_failed.invalid(failed, text)


def _problems(text: str, completions: int) -> list[str]:
    try:
        count_indexes(text, completions)
    except IndexesError as error:
        return [str(error)]
    return []


def _pods(job: Obj, old: Obj) -> Errors:
    status, ended = job["status"], is_finished(job) != is_finished(old)
    terminating, ready = status.get("terminating") or 0, status.get("ready") or 0
    if is_finished(job) and terminating > 0 and (ended or _changed(job, old, "terminating")):
        at = STATUS.child("terminating")
        yield at.invalid(terminating, "terminating>0 is invalid for finished job")
    if _changed(job, old, "ready", "active") and ready > status.get("active", 0):
        yield STATUS.child("ready").invalid(ready, "cannot set more ready pods than active")


def _success(job: Obj) -> Errors:
    met = has_condition(job, "SuccessCriteriaMet")
    for other in ("Failed", "FailureTarget"):
        if met and has_condition(job, other):
            text = f"cannot set SuccessCriteriaMet=True and {other}=true conditions"
            yield _CONDITIONS.invalid_without_value(text)
    if "successPolicy" in job["spec"] and not met and has_condition(job, "Complete"):
        yield _CONDITIONS.invalid_without_value(
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        )


def _transitions(job: Obj, old: Obj) -> Errors:
    status, before = job["status"], old["status"]
    for type_ in _TERMINAL:
        if has_condition(old, type_) and not has_condition(job, type_):
            text = f"cannot disable the terminal {type_}=True condition"
            yield _CONDITIONS.invalid_without_value(text)
    elastic = job["spec"].get("completionMode") == "Indexed" and (
        job["spec"].get("completions") == job["spec"].get("parallelism")
    )
    for name in ("failed", *(() if elastic else ("succeeded",))):
        if status.get(name, 0) < before.get(name, 0):
            text = f"cannot decrease the {name} counter"
            yield STATUS.child(name).invalid(status.get(name, 0), text)
    end, earlier = status.get("completionTime"), before.get("completionTime")
    if end and earlier and end != earlier:
        yield STATUS.child("completionTime").invalid(end, "field is immutable")
    start, started = status.get("startTime"), before.get("startTime")
    suspended = [
        next(
            (
                c["status"]
                for c in version["status"].get("conditions") or ()
                if c["type"] == "Suspended"
            ),
            "",
        )
        for version in (old, job)
    ]
    resumes = suspended == ["True", "False"]
    if started and start != started and not job["spec"].get("suspend") and not resumes:
        text = "field is immutable for unsuspended job once set"
        yield STATUS.child("startTime").invalid(start, text)
    met, was = (has_condition(version, "SuccessCriteriaMet") for version in (job, old))
    if was and not met:
        text = "cannot disable the SuccessCriteriaMet=True condition"
        yield _CONDITIONS.invalid_without_value(text)
    if has_condition(old, "Complete") and met and not was:
        yield _CONDITIONS.invalid_without_value(
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        )
