"""Permissions on parts of the status of claims: the scheduler's and the drivers'.

Who may write `resourceclaims/status` may not therefore allocate devices: changing the allocation or
the reservations requires a permission on the subresource `resourceclaims/binding` as well, and what
drivers report about devices requires one on `resourceclaims/driver` under the driver's name. A
driver that runs on a node is restricted to claims of that node. Neither subresource is served; they
exist for RBAC only, as in Kubernetes since 1.36 (gate DRAResourceClaimGranularStatusAuthorization).
"""

from collections.abc import Iterator
from typing import Any

from sully.machinery.gates import Gates
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.authorization.enforce import refusal
from sully.server.requests import Target, User

Obj = dict[str, Any]

GATE = "DRAResourceClaimGranularStatusAuthorization"
NODE = "authentication.kubernetes.io/node-name"
_VERBS = ("update", "patch")  # either is enough: admission does not see which verb was used


class ClaimAdmission:
    """Checks which parts of a claim's status a write changes."""

    def __init__(self, authorizer: Authorizer, gates: Gates) -> None:
        self._authorizer = authorizer
        self._gates = gates

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a change of a part without its permission."""
        target, obj, old = attributes.request.target, attributes.obj, attributes.old
        claims = (target.resource.group, target.resource.plural, target.subresource)
        if claims != ("resource.k8s.io", "resourceclaims", "status") or obj is None or old is None:
            return
        if not self._gates[GATE]:
            return
        user = attributes.request.user
        after, before = obj.get("status") or {}, old.get("status") or {}
        if any(after.get(part) != before.get(part) for part in ("allocation", "reservedFor")):
            self._require(
                user, [_attributes(verb, target, "binding", target.name) for verb in _VERBS]
            )
        if after.get("allocation") is None:
            # Deallocation also removes what drivers reported.
            return
        on_node = _is_on_node(user, after)
        for driver in changed_drivers(after.get("devices") or [], before.get("devices") or []):
            scopes = ("associated-node", "arbitrary-node") if on_node else ("arbitrary-node",)
            verbs = [f"{scope}:{verb}" for scope in scopes for verb in _VERBS]
            self._require(user, [_attributes(verb, target, "driver", driver) for verb in verbs])

    def _require(self, user: User, alternatives: list[Attributes]) -> None:
        if not any(
            self._authorizer.authorize(user, attributes).allowed for attributes in alternatives
        ):
            raise refusal(user, alternatives[0], self._authorizer.authorize(user, alternatives[0]))


def _attributes(verb: str, target: Target, part: str, name: str) -> Attributes:
    resource = target.resource
    return Attributes(
        verb, resource.group, target.version, resource.plural, part, target.namespace, name
    )


def changed_drivers(after: list[Obj], before: list[Obj]) -> list[str]:
    """Return the drivers whose reports differ, in order of their names."""
    drivers = {report.get("driver", "") for report in (*after, *before)}
    return sorted(
        driver
        for driver in drivers
        if list(_reports_of(driver, after)) != list(_reports_of(driver, before))
    )


def _reports_of(driver: str, reports: list[Obj]) -> Iterator[Obj]:
    return (report for report in reports if report.get("driver", "") == driver)


def _is_on_node(user: User, status: Obj) -> bool:
    """Report whether a user's credentials are of the one node that a claim is allocated on."""
    nodes = tuple(user.extra.get(NODE, ()))
    selector = (status.get("allocation") or {}).get("nodeSelector") or {}
    return len(nodes) == 1 and any(
        field.get("key") == "metadata.name" and field.get("values") == list(nodes)
        for term in selector.get("nodeSelectorTerms") or ()
        for field in term.get("matchFields") or ()
    )
