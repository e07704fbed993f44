"""Rejections, in the texts of Kubernetes."""

from sully.machinery.errors import Forbidden, qualified
from sully.machinery.serialization.gotext import quote
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.authorization.attributes import Attributes, Authorizer, Decision, on_target
from sully.server.requests import Target, User


def require(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    """Raise Forbidden if a user may not do something."""
    decision = authorizer.authorize(user, attributes)
    if not decision.allowed:
        raise refusal(user, attributes, decision)


def refusal(user: User, attributes: Attributes, decision: Decision) -> Forbidden:
    """Return the error for a forbidden request."""
    reason = _cannot(user, attributes) + (f": {decision.reason}" if decision.reason else "")
    if attributes.path is not None:
        return Forbidden(f"forbidden: {reason}", details={})
    subject = qualified(attributes.resource, attributes.group)
    if attributes.name:
        subject += f" {quote(attributes.name)}"
    facts = (
        ("name", attributes.name),
        ("group", attributes.group),
        ("kind", attributes.resource),
    )
    details = {fact: value for fact, value in facts if value}
    return Forbidden(f"{subject} is forbidden: {reason}", details=details)


def _cannot(user: User, attributes: Attributes) -> str:
    subject = f"User {quote(user.name)} cannot {attributes.verb}"
    if attributes.path is not None:
        return f"{subject} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = (
        f"in the namespace {quote(attributes.namespace)}"
        if attributes.namespace
        else "at the cluster scope"
    )
    return f"{subject} resource {quote(resource)} in API group {quote(attributes.group)} {where}"


class CreateOnUpdateCheck:
    """Checks the verb create when a PUT or an apply creates an object."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        return operation == "create"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a user who may update such an object and not create it."""
        target = attributes.request.target
        if target.name:
            require(self._authorizer, attributes.request.user, on_target("create", target))
