"""Permissions on parts of the status of claims: the scheduler's and the drivers'.

The permission to write `resourceclaims/status` is not one to allocate devices: changing the
allocation or the reservations requires a permission on the subresource `resourceclaims/binding` as
well, and what drivers report about devices requires one on `resourceclaims/driver` under the
driver's name. A driver that runs on a node is restricted to claims of that node. Neither
subresource is served; they exist for RBAC only, as in Kubernetes since 1.36 (gate
DRAResourceClaimGranularStatusAuthorization).
"""

from collections.abc import Iterator
from typing import Any

from sully.machinery.fields import FieldError, Path
from sully.machinery.gates import Gates
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.authorization.enforce import refusal
from sully.server.requests import Request, Target, User

Obj = dict[str, Any]

GATE = "DRAResourceClaimGranularStatusAuthorization"
NODE = "authentication.kubernetes.io/node-name"
_STATUS = Path("status")


class ClaimAdmission:
    """Checks which parts of a claim's status a write changes."""

    def __init__(self, authorizer: Authorizer, gates: Gates) -> None:
        self._authorizer = authorizer
        self._gates = gates

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        return (
            (target.resource.group, target.resource.plural) == ("resource.k8s.io", "resourceclaims")
            and target.subresource == "status"
            and self._gates[GATE]
        )

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a change of a part without its permission; the verb is that of the request."""
        obj, old = attributes.obj, attributes.old
        if obj is None or old is None:
            return
        after, before = obj.get("status") or {}, old.get("status") or {}
        attributes.problems.extend(self._binding(attributes.request, after, before))
        attributes.problems.extend(self._drivers(attributes.request, after, before))

    def _binding(self, request: Request, after: Obj, before: Obj) -> Iterator[FieldError]:
        if all(after.get(part) == before.get(part) for part in ("allocation", "reservedFor")):
            return
        # Devices belong to the cluster, so this is for users who may allocate in all namespaces.
        attributes = _attributes(request.verb, request.target, "binding")
        refused = self._refused(request.user, [attributes])
        if refused:
            yield _STATUS.child("allocation").forbidden(
                "changing status.allocation or status.reservedFor requires"
                f' resource="resourceclaims/binding", verb="{request.verb}" permission: {refused}'
            )

    def _drivers(self, request: Request, after: Obj, before: Obj) -> Iterator[FieldError]:
        if after.get("allocation") is None:
            # Deallocation also removes what drivers reported.
            return
        user, target = request.user, request.target
        scopes = ("associated-node", "arbitrary-node")[0 if _is_on_node(user, after) else 1 :]
        verbs = [f"{scope}:{request.verb}" for scope in scopes]
        for driver in changed_drivers(after.get("devices") or [], before.get("devices") or []):
            alternatives = [
                _attributes(verb, target, "driver", target.namespace, driver) for verb in verbs
            ]
            refused = self._refused(user, alternatives)
            if refused:
                yield _STATUS.child("devices").forbidden(
                    'changing status.devices requires resource="resourceclaims/driver",'
                    f' verb="[{" ".join(verbs)}]" permission: {refused}'
                )

    def _refused(self, user: User, alternatives: list[Attributes]) -> str:
        """Return why none of the alternatives is allowed; empty if one is."""
        decisions = [self._authorizer.authorize(user, one) for one in alternatives]
        if any(decision.allowed for decision in decisions):
            return ""
        return str(refusal(user, alternatives[0], decisions[0]))


def _attributes(
    verb: str, target: Target, part: str, namespace: str = "", name: str = ""
) -> Attributes:
    resource = target.resource
    return Attributes(verb, resource.group, target.version, resource.plural, part, namespace, name)


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
    """Report whether a service account runs on the one node that a claim is allocated on."""
    nodes = tuple(user.extra.get(NODE, ()))
    if len(nodes) != 1 or not user.name.startswith("system:serviceaccount:"):
        return False
    selector = (status.get("allocation") or {}).get("nodeSelector") or {}
    field = {"key": "metadata.name", "operator": "In", "values": list(nodes)}
    return selector.get("nodeSelectorTerms") == [{"matchFields": [field]}]
