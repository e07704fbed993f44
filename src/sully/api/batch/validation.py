"""Validation of Jobs: labels, counts, policies, and what cannot change."""

import re
from itertools import pairwise
from typing import Any

from sully.api.batch.indexes import IndexesError, count_indexes
from sully.api.core.checks import (
    Errors,
    label_key,
    label_selector,
    not_negative,
    same,
    same_selector,
)
from sully.api.core.gotypes import core_type
from sully.api.core.pods.spec.validation import validate_template
from sully.api.core.workloads.workload import SPEC, TEMPLATE, template_labels
from sully.machinery.fields import Path
from sully.machinery.formats.names import dns_label_problems, dns_subdomain_problems
from sully.machinery.selectors import labels
from sully.machinery.serialization.empties import without_empties
from sully.machinery.serialization.gostructs import internal
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MANY = 100_000
_MOST_PARALLEL = 10_000
_MOST_RULES = 20
_MOST_CODES = 255
_MOST_MANAGER = 63
_MOST_INDEXES = 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_PATH_CHARACTERS = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_FIXED = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_HIGH = "when completions are above 100000 and used with backoff limit per index"


def generated_labels(job: Obj) -> dict[str, str]:
    """Return the labels that identify the pods of a Job, under their old and new names."""
    values = {"controller-uid": job["metadata"]["uid"], "job-name": job["metadata"]["name"]}
    return {f"batch.kubernetes.io/{name}": value for name, value in values.items()} | values


def spec_errors(job: Obj, *, new: bool) -> Errors:
    """Check a Job; `new`: also that selector and labels are those of the server."""
    spec = job["spec"]
    if new and not spec["manualSelector"]:
        yield from _generated(job)
    yield from _counts(spec)
    yield from _indexed(spec)
    yield from _policies(spec)
    yield from validate_template(spec["template"], TEMPLATE)
    yield from _restarts(spec)
    yield from _selector(spec)
    yield from _host_names(job)


def _generated(job: Obj) -> Errors:
    own, template_labels = (
        generated_labels(job),
        job["spec"]["template"]["metadata"].get("labels") or {},
    )
    at = TEMPLATE.child("metadata", "labels")
    for name in sorted(own, key=lambda name: ("/" in name, name)):
        if name not in template_labels:
            yield at.key(name).required(f"must be '{own[name]}'")
        elif template_labels[name] != own[name]:
            yield at.key(name).invalid(template_labels, f"must be '{own[name]}'")
    selector = job["spec"].get("selector")
    try:
        matches = labels.from_object(selector).matches(own)
    except labels.SelectorError:
        return
    if not matches:
        yield SPEC.child("selector").invalid(selector, "`selector` not auto-generated")


def _counts(spec: Obj) -> Errors:
    for name in _COUNTS:
        yield from not_negative(spec.get(name, 0), SPEC.child(name))
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield SPEC.child("backoffLimitPerIndex").required("when maxFailedIndexes is specified")
    if "managedBy" in spec:
        yield from _manager(spec["managedBy"], SPEC.child("managedBy"))


def _manager(value: str, at: Path) -> Errors:
    """Check a path with a domain as its prefix."""
    domain, _, path = value.partition("/")
    if not value:
        yield at.required()
        return
    if not domain or not path:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield at.invalid(value, text)
    else:
        for text in dns_subdomain_problems(domain):
            yield at.invalid(domain, text)
        if not _PATH_CHARACTERS.fullmatch(path):
            text = f"Invalid path (regex used for validation is '{_PATH_CHARACTERS.pattern}')"
            yield at.invalid(path, text)
    if len(value.encode()) > _MOST_MANAGER:
        yield at.too_long(_MOST_MANAGER)


def _indexed(spec: Obj) -> Errors:
    mode = spec["completionMode"]
    if mode not in ("NonIndexed", "Indexed"):
        yield SPEC.child("completionMode").not_supported(mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _index_limits(spec)
    elif mode == "NonIndexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if name in spec:
                yield SPEC.child(name).invalid(spec[name], "requires indexed completion mode")


def _index_limits(spec: Obj) -> Errors:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec["parallelism"]
    at_parallelism, at_failed = SPEC.child("parallelism"), SPEC.child("maxFailedIndexes")
    if completions is None:
        yield SPEC.child("completions").required("when completion mode is Indexed")
    if parallelism > _MANY:
        text = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        yield at_parallelism.invalid(parallelism, text)
    if completions is not None and failed is not None and failed > completions:
        yield at_failed.invalid(failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY:
        yield at_failed.invalid(failed, f"must be less than or equal to {_MANY}")
    if (completions or 0) > _MANY and "backoffLimitPerIndex" in spec:
        text = f"must be less than or equal to {_MOST_PARALLEL} {_HIGH}"
        if failed is None:
            yield at_failed.required("must be specified when completions is above 100000")
        if parallelism > _MOST_PARALLEL:
            yield at_parallelism.invalid(parallelism, text)
        if failed is not None and failed > _MOST_PARALLEL:
            yield at_failed.invalid(failed, text)


def _policies(spec: Obj) -> Errors:
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        yield from _failure_policy(spec, SPEC.child("podFailurePolicy", "rules"))
    if success is not None:
        at = SPEC.child("successPolicy")
        if spec["completionMode"] != "Indexed":
            rules = [_shown_rule(rule) for rule in success["rules"] or ()] or None
            yield at.invalid({"Rules": rules}, "requires indexed completion mode")
        else:
            yield from _success_policy(spec, at.child("rules"))
    supported = ("Failed",) if failure is not None else ("Failed", "TerminatingOrFailed")
    if spec["podReplacementPolicy"] not in supported:
        at = SPEC.child("podReplacementPolicy")
        yield at.not_supported(spec["podReplacementPolicy"], supported)


def _shown_rule(rule: Obj) -> Obj:
    return {
        "SucceededIndexes": rule.get("succeededIndexes"),
        "SucceededCount": rule.get("succeededCount"),
    }


def _failure_policy(spec: Obj, at: Path) -> Errors:
    rules = spec["podFailurePolicy"]["rules"] or []
    if len(rules) > _MOST_RULES:
        yield at.too_many(len(rules), _MOST_RULES)
    pod = spec["template"]["spec"]
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    names = {container["name"] for container in containers}
    for position, rule in enumerate(rules):
        yield from _rule(rule, spec, names, at.index(position))


def _rule(rule: Obj, spec: Obj, names: set[str], at: Path) -> Errors:
    action, codes, patterns = rule["action"], rule.get("onExitCodes"), rule.get("onPodConditions")
    here = at.child("action")
    if not action:
        yield here.required(_valid(_ACTIONS))
    elif action == "FailIndex" and "backoffLimitPerIndex" not in spec:
        yield here.invalid(action, "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        yield here.not_supported(action, _ACTIONS)
    if codes is not None:
        yield from _exit_codes(codes, names, at.child("onExitCodes"))
    if patterns:
        yield from _patterns(patterns, at.child("onPodConditions"))
    if codes is not None and patterns:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield at.invalid_without_value(text)
    if codes is None and not patterns:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        yield at.invalid_without_value(text)


def _valid(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(map(quote, values))}]"


def _patterns(patterns: list[Obj], at: Path) -> Errors:
    if len(patterns) > _MOST_RULES:
        yield at.too_many(len(patterns), _MOST_RULES)
    for position, pattern in enumerate(patterns):
        here = at.index(position)
        yield from label_key(pattern["type"], here.child("type"))
        if pattern["status"] not in _STATUSES:
            yield here.child("status").not_supported(pattern["status"], _STATUSES)


def _exit_codes(codes: Obj, names: set[str], at: Path) -> Errors:
    operator, values = codes["operator"], codes["values"] or []
    if not operator:
        yield at.child("operator").required(_valid(("In", "NotIn")))
    elif operator not in ("In", "NotIn"):
        yield at.child("operator").not_supported(operator, ("In", "NotIn"))
    name = codes.get("containerName")
    if name is not None and name not in names:
        text = "must be one of the container or initContainer names in the pod template"
        yield at.child("containerName").invalid(name, text)
    here = at.child("values")
    if not values:
        yield here.invalid(codes["values"], "at least one value is required")
    elif len(values) > _MOST_CODES:
        yield here.too_many(len(values), _MOST_CODES)
    for position, value in enumerate(values):
        if operator == "In" and value == 0:
            yield here.index(position).invalid(value, "must not be 0 for the In operator")
        if value in values[:position]:
            yield here.index(position).duplicate(value)
    if any(later < earlier for earlier, later in pairwise(values)):
        yield here.invalid(values, "must be ordered")


def _success_policy(spec: Obj, at: Path) -> Errors:
    rules, completions = spec["successPolicy"]["rules"] or [], spec.get("completions") or 0
    if not rules:
        yield at.required(
            "at least one rules must be specified when the successPolicy is specified"
        )
    if len(rules) > _MOST_RULES:
        yield at.too_many(len(rules), _MOST_RULES)
    for position, rule in enumerate(rules):
        yield from _success_rule(rule, completions, at.index(position))


def _success_rule(rule: Obj, completions: int, at: Path) -> Errors:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        yield at.required("at least one of succeededCount or succeededIndexes must be specified")
    total = 0
    if indexes is not None:
        here = at.child("succeededIndexes")
        if len(indexes.encode()) > _MOST_INDEXES:
            yield here.too_long(_MOST_INDEXES)
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            yield here.invalid(indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    here, most = at.child("succeededCount"), "must be less than or equal to"
    yield from not_negative(count, here)
    if count > completions:
        text = f"{most} {completions} (the number of specified completions)"
        yield here.invalid(count, text)
    if indexes is not None and count > total:
        where = "(the number of indexes in the specified succeededIndexes field)"
        yield here.invalid(count, f"{most} {total} {where}")


def _restarts(spec: Obj) -> Errors:
    at = TEMPLATE.child("spec", "restartPolicy")
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):
        yield at.required('valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield at.not_supported(policy, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and policy != "Never":
        yield at.invalid(policy, 'only "Never" is supported when podFailurePolicy is specified')


def _selector(spec: Obj) -> Errors:
    selector, at = spec.get("selector"), SPEC.child("selector")
    if selector is None:
        yield at.required()
    yield from label_selector(selector, at)
    try:
        parsed = labels.from_object(selector)
    except labels.SelectorError:
        return
    own = spec["template"]["metadata"].get("labels") or {}
    yield from template_labels(spec["template"], selected=parsed.matches(own))


def _host_names(job: Obj) -> Errors:
    """Check that the last index still makes a host name."""
    spec, name = job["spec"], job["metadata"]["name"]
    if spec["completionMode"] == "Indexed" and spec.get("completions", 0) > 0:
        host = f"{name}-{spec['completions'] - 1}"
        if dns_label_problems(host):
            text = f"will not able to create pod with invalid DNS label: {host}"
            yield Path("metadata").child("name").invalid(name, text)


def update_errors(job: Obj, old: Obj) -> Errors:
    """Check what may change; a suspended Job may be steered to other nodes."""
    spec, before = job["spec"], old["spec"]
    yield from _completions(spec, before)
    yield from same_selector(spec, before)
    yield from _template(spec["template"], old)
    for name in _FIXED:
        if not same(spec.get(name), before.get(name)):
            yield SPEC.child(name).invalid(spec.get(name), "field is immutable")


def _completions(spec: Obj, before: Obj) -> Errors:
    """Check that only an Indexed Job gets other completions, and as many pods in parallel."""
    new, old = spec.get("completions"), before.get("completions")
    at = SPEC.child("completions")
    if spec.get("completionMode") != "Indexed":
        if new != old:
            yield at.invalid(new, "field is immutable")
    elif new is not None and new != old and new != spec["parallelism"]:
        yield at.invalid(new, "can only be modified in tandem with spec.parallelism")


def _template(template: Obj, old: Obj) -> Errors:
    before, at = old["spec"]["template"], TEMPLATE
    if may_change_template(old):
        before = _steered(before, template)
        pod, expected = template["spec"], _with_resources(before["spec"], template["spec"])
        if not same(pod, expected):
            shown = internal(pod, core_type("PodSpec"))
            yield at.child("spec").invalid(shown, "field is immutable")
    elif not same(template, before):
        # Error texts quote Go's struct, in which the metadata is embedded.
        metadata = without_empties(template["metadata"])
        shown = {**metadata, "Spec": internal(template["spec"], core_type("PodSpec"))}
        yield at.invalid(shown, "field is immutable")


def may_change_template(job: Obj) -> bool:
    """Report whether a Job is suspended and has no pods."""
    status = job["status"]
    stopped = "startTime" not in status or any(
        (condition["type"], condition["status"]) == ("Suspended", "True")
        for condition in status.get("conditions") or ()
    )
    return bool(job["spec"].get("suspend")) and stopped and not status.get("active")


def _steered(before: Obj, template: Obj) -> Obj:
    """Return the old template with what decides about its nodes from the new one."""
    pod, new = dict(before["spec"]), template["spec"]
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        pod[name] = new.get(name)
    affinity = dict(pod.get("affinity") or {}) | {
        "nodeAffinity": (new.get("affinity") or {}).get("nodeAffinity")
    }
    pod["affinity"] = affinity if any(affinity.values()) else None
    metadata = dict(before["metadata"]) | {
        name: template["metadata"].get(name) for name in ("labels", "annotations")
    }
    return {"metadata": metadata, "spec": pod}


def _with_resources(pod: Obj, new: Obj) -> Obj:
    changed = dict(pod)
    for name in ("containers", "initContainers"):
        old, latest = pod.get(name) or [], new.get(name) or []
        if len(old) == len(latest):
            changed[name] = [
                {**one, "resources": other.get("resources")}
                if one["name"] == other["name"]
                else one
                for one, other in zip(old, latest, strict=True)
            ]
    return changed
