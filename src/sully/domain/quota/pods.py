"""What a pod uses of a quota, the scopes it is in, and what it must specify."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sully.api.core.amounts import HUGE_PAGES, is_native
from sully.api.core.pods.aggregate import (
    has_pod_level,
    pod_limits,
    pod_requests,
    quality_of_service,
)
from sully.api.core.pods.phases import is_terminal
from sully.domain.quota.objects import ScopeRequirement
from sully.domain.scheduling.resources import IMPLICIT, may_be_backed
from sully.machinery.formats.quantity import Quantity
from sully.machinery.formats.timestamps import parse_time
from sully.machinery.selectors import labels

Obj = dict[str, Any]
Usage = dict[str, Quantity]

ONE: Final = Quantity.of(1)
REQUESTS: Final = "requests."
LIMITS: Final = "limits."
_LONGEST_GRACE: Final = 10**10
"""Seconds; more is as good as indefinitely, and too much for a timedelta."""
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_PREFIXES: Final = ("", REQUESTS, LIMITS)
_NAMES: Final = frozenset(f"{prefix}{name}" for name in _COMPUTE for prefix in _PREFIXES)
_MUST_SPECIFY: Final = frozenset(f"{at}{name}" for name in ("cpu", "memory") for at in _PREFIXES)


def is_pod_resource(name: str) -> bool:
    """Report whether a name in a quota is about pods."""
    return name in ("pods", "count/pods") or name in _NAMES or _is_extended(name)


def _is_extended(name: str) -> bool:
    if name.removeprefix(REQUESTS).startswith(HUGE_PAGES):
        return True
    implicit = name.startswith(f"{REQUESTS}{IMPLICIT}")
    return name.startswith(REQUESTS) and (implicit or not is_native(name))


def pod_usage(pod: Obj, now: datetime) -> Usage:
    """Return what a pod uses; one that has ended only counts as an object."""
    usage: Usage = {"count/pods": ONE}
    if not is_live(pod, now):
        return usage
    usage["pods"] = ONE
    for name, amount in pod_requests(pod["spec"]).items():
        if name in _COMPUTE or name.startswith(HUGE_PAGES):
            usage[name] = usage[f"{REQUESTS}{name}"] = amount
        elif may_be_backed(name):
            usage[f"{REQUESTS}{name}"] = amount
    for name, amount in pod_limits(pod["spec"]).items():
        if name in _COMPUTE:
            usage[f"{LIMITS}{name}"] = amount
    return usage


def is_live(pod: Obj, now: datetime) -> bool:
    """Report whether a pod uses anything: it runs, and its grace period is not over."""
    if is_terminal(pod):
        return False
    metadata = pod["metadata"]
    end, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if end is None or grace is None:
        return True
    # A pod on a lost node may stay indefinitely. It must not block the one that replaces it.
    return now - parse_time(end) <= timedelta(seconds=min(grace, _LONGEST_GRACE))


def has_deadline(pod: Obj) -> bool:
    """Report whether a pod has a deadline, for the scopes Terminating and NotTerminating."""
    deadline = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def in_scope(pod: Obj, requirement: ScopeRequirement) -> bool:
    """Report whether a pod is in a scope of a quota."""
    spec: Obj = pod["spec"]
    scope = requirement.scope_name
    match scope:
        case "Terminating" | "NotTerminating":
            return has_deadline(pod) == (scope == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return (quality_of_service(spec) == "BestEffort") == (scope == "BestEffort")
        case "PriorityClass":
            return _has_priority_class(spec.get("priorityClassName", ""), requirement)
        case "CrossNamespacePodAffinity":
            return _reaches_other_namespaces(spec.get("affinity") or {})
        case _:
            return False


def _has_priority_class(name: str, requirement: ScopeRequirement) -> bool:
    if requirement.operator == "Exists":
        return bool(name)
    key = requirement.scope_name
    selection = {"operator": requirement.operator, "values": list(requirement.values)}
    selector = labels.from_object({"matchExpressions": [{"key": key, **selection}]})
    return selector.matches({key: name} if name else {})


def _reaches_other_namespaces(affinity: Obj) -> bool:
    for field in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(field) or {}
        terms = list(part.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = part.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [term.get("podAffinityTerm") or {} for term in weighted]
        if any(t.get("namespaces") or t.get("namespaceSelector") is not None for t in terms):
            return True
    return False


def unspecified(pod: Obj, names: Iterable[str]) -> str:
    """Name the CPU and memory that is limited and that containers leave out; empty if none."""
    spec = pod["spec"]
    if has_pod_level(spec):
        return ""
    limited, lacking = _MUST_SPECIFY.intersection(names), dict[str, set[str]]()
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for name in limited - _limited(container.get("resources") or {}):
            lacking.setdefault(name, set()).add(container.get("name", ""))
    parts = (f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))
    return "; ".join(parts)


def _limited(resources: Mapping[str, Mapping[str, str] | None]) -> set[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    both = {f"{REQUESTS}{name}" for name in requests} | {f"{LIMITS}{name}" for name in limits}
    return both | requests.keys()
