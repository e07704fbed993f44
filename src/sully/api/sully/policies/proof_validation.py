"""Defaults and validation of proofs: what must happen before a device is given back.

A template is checked here as far as proofs depend on it; the rest is checked when a Job is created.
"""

from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import between, dns_label, one_of
from sully.api.resource.validation.names import validate_subdomain
from sully.api.sully.durations import validate_duration
from sully.machinery.fields import FieldError, Path

Obj = dict[str, Any]
Errors = Iterator[FieldError]

PROOFS = ("None", "Manual", "Job")
ATTEMPTS_MAX = 10
PARALLELISM_MAX = 100
CLAIM = "device"
"""The name of the claim in the pods of a Job."""
DEFAULTS: Obj = {"timeout": "1h", "attempts": 3, "retryAfter": "5m", "parallelism": 1}
_RESTARTS = ("Never", "OnFailure")
_CONTAINERS = ("initContainers", "containers")
_ONE_POD = ("completions", "parallelism")
_OURS = ("activeDeadlineSeconds", "managedBy", "manualSelector", "selector", "suspend")


def default_proof(spec: Obj) -> None:
    """Set what the client left out of the `proof` of a spec."""
    proof = spec.get("proof")
    job = proof.get("job") if isinstance(proof, dict) else None
    if isinstance(job, dict):
        for name, value in DEFAULTS.items():
            job[name] = job.get(name) or value


def validate_proof(proof: Obj | None, at: Path) -> Errors:
    """Yield everything wrong with a proof; there may be none."""
    if proof is None:
        return
    yield from one_of(proof["type"], PROOFS, at.child("type"), required=True)
    job, where = proof.get("job"), at.child("job")
    if job is None:
        if proof["type"] == "Job":
            yield where.required("the type is Job")
    elif proof["type"] != "Job":
        yield where.forbidden("may only be set with the type Job")
    else:
        yield from _job(job, where)


def _job(job: Obj, at: Path) -> Errors:
    yield from dns_label(job["namespace"], at.child("namespace"))
    yield from validate_subdomain(job["deviceClassName"], at.child("deviceClassName"))
    for name in ("timeout", "retryAfter"):
        yield from validate_duration(job[name], at.child(name), required=True)
    yield from between(job["attempts"], 1, ATTEMPTS_MAX, at.child("attempts"))
    yield from between(job["parallelism"], 1, PARALLELISM_MAX, at.child("parallelism"))
    yield from _template(job["template"], at.child("template"))


def _template(template: Any, at: Path) -> Errors:
    if not isinstance(template, dict):
        # Its content has no schema.
        yield at.invalid(template, "must be an object")
        return
    yield from _only(template, ("metadata", "spec"), at)
    yield from _only(_object(template, "metadata"), ("annotations", "labels"), at.child("metadata"))
    spec, where = _object(template, "spec"), at.child("spec")
    for name in _OURS:
        if name in spec:
            yield where.child(name).forbidden("the controller sets it")
    for name in _ONE_POD:
        if spec.get(name, 1) != 1:
            yield where.child(name).invalid(spec[name], "must be 1")
    pod = _object(_object(spec, "template"), "spec")
    yield from _pod(pod, where.child("template", "spec"))


def _pod(pod: Obj, at: Path) -> Errors:
    yield from one_of(pod.get("restartPolicy", "Never"), _RESTARTS, at.child("restartPolicy"))
    for name in _CONTAINERS:
        containers = pod.get(name)
        if containers is None and name == "initContainers":
            continue
        if not isinstance(containers, list) or not containers:
            yield at.child(name).required()
        elif not all(isinstance(container, dict) for container in containers):
            yield at.child(name).invalid(containers, "must be a list of objects")
    claims = pod.get("resourceClaims") or []
    for position, claim in enumerate(claims if isinstance(claims, list) else ()):
        if isinstance(claim, dict) and claim.get("name") == CLAIM:
            where = at.child("resourceClaims").index(position).child("name")
            yield where.invalid(CLAIM, "is the name of the claim that the controller adds")


def _object(parent: Obj, name: str) -> Obj:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _only(obj: Obj, names: tuple[str, ...], at: Path) -> Errors:
    for name in sorted(set(obj) - set(names)):
        yield at.child(name).forbidden(f"may only have {' and '.join(names)}")
