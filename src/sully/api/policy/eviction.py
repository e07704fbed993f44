"""Whether a pod may be evicted: what the eviction subresource decides before a pod is deleted.

The decision is a value with what to write in addition to deleting the pod, or an ApiError. Budgets
protect running pods; a pod that is Pending or has terminated may always be evicted.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from sully.api.core.pods.conditions import DISRUPTION_TARGET, is_ready, with_condition
from sully.api.policy.protection import TWO_BUDGETS, UNPROTECTED, allows_unready_eviction
from sully.machinery.errors import ApiError, BadRequest, TooManyRequests, client_error, forbidden
from sully.machinery.formats.timestamps import format_time
from sully.machinery.selectors import labels
from sully.machinery.strategy import WriteContext

Obj = dict[str, Any]

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_EVICTED = {
    "type": DISRUPTION_TARGET,
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_NONE_ALLOWED = {
    "type": "DisruptionAllowed",
    "status": "False",
    "reason": "InsufficientPods",
    "message": "",
}
_MAX_PENDING = 2000


class Eviction(msgspec.Struct, frozen=True):
    """An allowed eviction.

    budget: the budget with one disruption less, to be written first; None if none is used.
    exact: the pod may only be deleted in the version that was read; if it changed meanwhile,
    decide again or, where a budget is named, return `still_processed`, so that clients retry.
    """

    budget: Obj | None = None
    exact: bool = False
    budget_name: str = ""


def check_eviction(name: str, eviction: Obj) -> None:
    """Refuse a body that is about another pod than the path."""
    if eviction["metadata"].get("name", "") != name:
        raise BadRequest("name in URL does not match name in Eviction object")


def decide_eviction(pod: Obj, budgets: Iterable[Obj], ctx: WriteContext) -> Eviction:
    """Decide about a pod, given all budgets of its namespace."""
    phase = pod["status"].get("phase")
    if "deletionTimestamp" in pod["metadata"]:
        return Eviction()
    if phase in UNPROTECTED:
        return Eviction(exact=phase == "Pending")
    protecting = [budget for budget in budgets if protects(budget, pod)]
    if not protecting:
        return Eviction()
    if len(protecting) > 1:
        raise client_error(TWO_BUDGETS, ctx.compat)
    budget = protecting[0]
    name = budget["metadata"]["name"]
    if not is_ready(pod) and _allows_unready(budget):
        return Eviction(exact=True, budget_name=name)
    return Eviction(spend(budget, pod["metadata"]["name"], ctx.now), budget_name=name)


def with_disruption_target(pod: Obj, now: datetime) -> Obj:
    """Return a pod with the condition that it is written with before its deletion."""
    return with_condition(pod, _EVICTED, now)


def protects(budget: Obj, pod: Obj) -> bool:
    """Report whether a budget counts a pod; one without a selector counts none."""
    if budget["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    try:
        selector = labels.from_object(budget["spec"].get("selector"))
    except labels.SelectorError:
        return False
    return selector.matches(pod["metadata"].get("labels") or {})


def _allows_unready(budget: Obj) -> bool:
    status = budget["status"]
    return allows_unready_eviction(
        budget["spec"].get("unhealthyPodEvictionPolicy"),
        healthy=status.get("currentHealthy", 0),
        desired=status.get("desiredHealthy", 0),
    )


def spend(budget: Obj, pod_name: str, now: datetime) -> Obj:
    """Return the budget with one disruption less, or raise the error that refuses it."""
    metadata, status = budget["metadata"], budget["status"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise still_processed(metadata["name"])
    allowed, pending = status.get("disruptionsAllowed", 0), status.get("disruptedPods") or {}
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise _broken(metadata["name"], why, why)
    if len(pending) > _MAX_PENDING:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        cause = "too many pending evictions not confirmed by PDB controller"
        raise _broken(metadata["name"], why, cause)
    if allowed == 0:
        raise _exhausted(budget)
    changed = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": pending | {pod_name: format_time(now)},
    }
    if allowed == 1:
        changed["conditions"] = _none_allowed(budget, now)
    return {**budget, "status": changed}


def _none_allowed(budget: Obj, now: datetime) -> list[Obj]:
    condition = {**_NONE_ALLOWED, "lastTransitionTime": format_time(now)}
    generation = budget["status"].get("observedGeneration")
    if generation:
        condition["observedGeneration"] = generation
    old = budget["status"].get("conditions") or []
    rest = [other for other in old if other.get("type") != condition["type"]]
    return [*rest, condition]


def still_processed(name: str) -> TooManyRequests:
    """Return the error for a budget whose status is not that of its current spec."""
    cause = f"The disruption budget {name} is still being processed by the server."
    return _too_many(cause, retry_after=10)


def _exhausted(budget: Obj) -> TooManyRequests:
    name, status = budget["metadata"]["name"], budget["status"]
    reason, message = _why_none_allowed(status)
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    none = f"The disruption budget {name} does not allow evicting pods currently"
    if message and reason == "SyncFailed":
        # The numbers are not to be trusted then.
        return _too_many(f"{none} because it failed sync: {message}")
    if healthy <= desired:
        return _too_many(
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    return _too_many(f"{none} ({reason}): {message}" if message else none)


def _why_none_allowed(status: Obj) -> tuple[str, str]:
    """Return reason and message of the condition that reports it; empty without one."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionAllowed" and condition.get("status") == "False":
            return condition.get("reason", ""), condition.get("message", "")
    return "", ""


def _too_many(cause: str, retry_after: int = 0) -> TooManyRequests:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    headers = {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
        headers["Retry-After"] = str(retry_after)
    return TooManyRequests(_REFUSED, details=details, headers=headers)


def _broken(name: str, why: str, cause: str) -> ApiError:
    error = forbidden("poddisruptionbudget", "policy", name, why)
    text = f"The disruption budget {name} does not allow evicting pods currently: {cause}"
    causes = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    error.details = {**(error.details or {}), **causes}
    return error
