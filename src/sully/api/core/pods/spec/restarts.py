"""When containers of a pod are restarted: policies of their own, rules, and resizing."""

from typing import Any

from sully.api.core.checks import Errors, one_of
from sully.machinery.fields import Path

Obj = dict[str, Any]

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_RULES_MAX = 20
_CODES_MAX = 255
_WITHOUT_POLICY = "must specify restartPolicy when restart rules are used"
_NEVER = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
_ONLY_SIDECARS = "must not be set to 'RestartContainer' for non-sidecar initContainers"


def restart(container: Obj, at: Path) -> Errors:
    """Check the policy of one container and its rules."""
    rules = container.get("restartPolicyRules") or []
    if "restartPolicy" in container:
        yield from one_of(container["restartPolicy"], _POLICIES, at.child("restartPolicy"))
    elif rules:
        yield at.child("restartPolicy").required(_WITHOUT_POLICY)
    at = at.child("restartPolicyRules")
    if len(rules) > _RULES_MAX:
        yield at.too_many(len(rules), _RULES_MAX)
    for position, rule in enumerate(rules):
        yield from _rule(rule, at.index(position))


def restart_first(container: Obj, at: Path) -> Errors:
    """Check a container that runs first: without a policy, its rules are ignored."""
    if "restartPolicy" in container:
        yield from restart(container, at)
    elif container.get("restartPolicyRules"):
        yield at.child("restartPolicy").required(_WITHOUT_POLICY)


def _rule(rule: Obj, at: Path) -> Errors:
    yield from one_of(rule.get("action", ""), _ACTIONS, at.child("action"))
    at = at.child("exitCodes")
    if "exitCodes" not in rule:
        yield at.required("must be specified")
        return
    codes = rule["exitCodes"]
    yield from one_of(codes.get("operator", ""), ("In", "NotIn"), at.child("operator"))
    if len(codes.get("values") or ()) > _CODES_MAX:
        yield at.child("values").too_many(len(codes["values"]), _CODES_MAX)


def resize(policies: list[Obj], pod_policy: str, at: Path) -> Errors:
    """Check whether a container is restarted when its resources change."""
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        resource, way = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            yield at.index(position).duplicate(resource)
        seen.add(resource)
        yield from one_of(resource, ("cpu", "memory"), at, required=True)
        yield from one_of(way, ("NotRequired", "RestartContainer"), at, required=True)
        if pod_policy == "Never" and way != "NotRequired":
            yield at.invalid(way, _NEVER)


def only_sidecars_restart(container: Obj, at: Path) -> Errors:
    """Check that a container that runs to its end is not restarted for new resources."""
    for position, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            here = at.child("resizePolicy").index(position).child("restartPolicy")
            yield here.invalid("RestartContainer", _ONLY_SIDECARS)
