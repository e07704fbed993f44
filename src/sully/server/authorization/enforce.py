"""Refusals in the words of Kubernetes."""

from sully.machinery.errors import Forbidden, qualified
from sully.machinery.gotext import quote
from sully.server.admission.guards import AdmissionAttributes
from sully.server.authorization.attributes import Attributes, Authorizer, Verdict, on_target
from sully.server.requests import User


def require(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    """Refuse who may not."""
    verdict = authorizer.decide(user, attributes)
    if not verdict.allowed:
        raise refusal(user, attributes, verdict)


def refusal(user: User, attributes: Attributes, verdict: Verdict) -> Forbidden:
    """Return the error for a forbidden request."""
    why = _cannot(user, attributes) + (f": {verdict.reason}" if verdict.reason else "")
    if attributes.path is not None:
        return Forbidden(f"forbidden: {why}", details={})
    subject = qualified(attributes.resource, attributes.group)
    if attributes.name:
        subject += f" {quote(attributes.name)}"
    facts = (
        ("name", attributes.name),
        ("group", attributes.group),
        ("kind", attributes.resource),
    )
    details = {fact: value for fact, value in facts if value}
    return Forbidden(f"{subject} is forbidden: {why}", details=details)


def _cannot(user: User, attributes: Attributes) -> str:
    who = f"User {quote(user.name)} cannot {attributes.verb}"
    if attributes.path is not None:
        return f"{who} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = (
        f"in the namespace {quote(attributes.namespace)}"
        if attributes.namespace
        else "at the cluster scope"
    )
    return f"{who} resource {quote(resource)} in API group {quote(attributes.group)} {where}"


class CreateOnUpdateCheck:
    """Asks again when a PUT or an apply turns out to create: that is another right."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, attempt: AdmissionAttributes) -> None:
        """Refuse who may change such an object and not create one."""
        target = attempt.request.target
        if attempt.operation == "create" and target.name:
            require(self._authorizer, attempt.request.user, on_target("create", target))
