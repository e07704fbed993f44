"""Prevents privilege escalation through roles and bindings.

A user who may `escalate` a role, or `bind` it, is exempt, as is system:masters. All others must
hold each permission that a role contains, in the namespace of the role or binding.
"""

from typing import Any

from sully.api.rbac.coverage import combinations, described, missing, quoted
from sully.api.rbac.names import GROUP
from sully.machinery.errors import NotFound, RequestEntityTooLarge, forbidden, not_found
from sully.machinery.serialization.gotext import quote
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Attributes
from sully.server.authorization.authorizer import MASTERS, RbacAuthorizer
from sully.server.requests import Target, User

Obj = dict[str, Any]

_EVERYTHING = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_AGGREGATES = "must have cluster-admin privileges to use the aggregationRule"
MAX_COMBINATIONS = 10_000
"""How many permissions are compared; a rule of a few lines can mean billions."""
# What the garbage collector may change without holding the permissions.
_LEAVING = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class EscalationCheck:
    """Checks the rules of roles and the subjects of bindings."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        return target.resource.group == GROUP

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a grant of permissions that the writer does not hold."""
        target, user, obj = attributes.request.target, attributes.request.user, attributes.obj
        if obj is None or MASTERS in user.groups:
            return
        if attributes.old is not None and _only_leaves(obj, attributes.old):
            return
        if target.resource.plural in ("roles", "clusterroles"):
            self._check_role(user, target, obj, attributes.old or {})
        else:
            self._check_binding(user, target, obj)

    def _check_role(self, user: User, target: Target, role: Obj, old: Obj) -> None:
        resource = target.resource
        escalate = Attributes(
            "escalate",
            GROUP,
            "*",
            resource.plural,
            namespace=target.namespace,
            name=target.name,
        )
        if self._authorizer.authorize(user, escalate).allowed:
            return
        name = role["metadata"].get("name", "")
        problem = self._lacks(user, target.namespace, role.get("rules") or [])
        if problem:
            raise forbidden(resource.plural, GROUP, name, problem)
        gathers = role.get("aggregationRule") or old.get("aggregationRule")
        if gathers and self._lacks(user, target.namespace, list(_EVERYTHING)):
            raise forbidden(resource.plural, GROUP, name, _AGGREGATES)

    def _check_binding(self, user: User, target: Target, binding: Obj) -> None:
        ref, namespace = binding["roleRef"], target.namespace
        roles = "clusterroles" if ref["kind"] == "ClusterRole" else "roles"
        bind = Attributes("bind", GROUP, "*", roles, namespace=namespace, name=ref["name"])
        if self._authorizer.authorize(user, bind).allowed:
            return
        try:
            rules = self._authorizer.rules_of(ref["kind"], namespace, ref["name"])
        except NotFound:
            # Kubernetes names the role, but the kind of the request.
            raise not_found(target.resource.plural, GROUP, ref["name"]) from None
        problem = self._lacks(user, namespace, rules)
        if problem:
            name = binding["metadata"].get("name", "")
            raise forbidden(target.resource.plural, GROUP, name, problem)

    def _lacks(self, user: User, namespace: str, rules: list[Obj]) -> str:
        """Return which of these rules a user does not hold; empty if all."""
        if combinations(rules) > MAX_COMBINATIONS:
            raise RequestEntityTooLarge(
                f"Request entity too large: limit is {MAX_COMBINATIONS} combinations of groups,"
                ' resources, names and verbs in one role; use "*", or several roles'
            )
        user_rules = self._authorizer.rules_for(user, namespace)
        lacking = missing(user_rules.rules, rules)
        if not lacking:
            return ""
        text = (
            f"user {quote(user.name)} (groups={quoted(user.groups)}) is attempting to grant RBAC"
            " permissions not currently held:\n" + "\n".join(described(lacking))
        )
        if user_rules.problems:
            text += f"; resolution errors: [{' '.join(user_rules.problems)}]"
        return text


def _only_leaves(obj: Obj, old: Obj) -> bool:
    """Report whether only finalizers and owners change."""
    return _without(obj) == _without(old)


def _without(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _LEAVING}
    return {**obj, "metadata": metadata}
