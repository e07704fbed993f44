"""SubjectAccessReviews and SelfSubjectRulesReviews.

They use the authorizer of all requests. The kinds are in api/authorization; `register`
registers their handlers.
"""

from collections.abc import Iterator
from typing import Any

from sully.api.authorization.reviews import (
    GROUP,
    validate_local,
    validate_metadata,
    validate_spec,
)
from sully.machinery.errors import BadRequest, invalid, joined
from sully.machinery.fields import FieldError
from sully.machinery.selectors import fieldselectors, labels
from sully.machinery.selectors.labels import SelectorError
from sully.server.authorization.attributes import Attributes, selected_fields
from sully.server.authorization.authorizer import RbacAuthorizer
from sully.server.registry.virtual import VirtualResources
from sully.server.requests import Request, User

Obj = dict[str, Any]


class Reviews:
    """Handles access reviews."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    def register(self, virtuals: VirtualResources) -> None:
        """Register all kinds of the group."""
        virtuals.add(GROUP, "selfsubjectaccessreviews", self.own)
        virtuals.add(GROUP, "subjectaccessreviews", self.subject)
        virtuals.add(GROUP, "localsubjectaccessreviews", self.local)
        virtuals.add(GROUP, "selfsubjectrulesreviews", self.rules)

    def own(self, request: Request, review: Obj) -> Obj:
        """Handle a SelfSubjectAccessReview."""
        _check(*validate_spec(review["spec"]), *validate_metadata(review))
        return self._reviewed(review, request.user)

    def subject(self, _request: Request, review: Obj) -> Obj:
        """Handle a SubjectAccessReview."""
        spec = review["spec"]
        _check(*validate_spec(spec, has_subject=True), *validate_metadata(review))
        return self._reviewed(review, _subject(spec))

    def local(self, request: Request, review: Obj) -> Obj:
        """Handle a LocalSubjectAccessReview."""
        spec = review["spec"]
        _check(
            *validate_spec(spec, has_subject=True),
            *validate_metadata(review, namespaced=True),
            *validate_local(request.target.namespace, spec),
        )
        return self._reviewed(review, _subject(spec))

    def rules(self, request: Request, review: Obj) -> Obj:
        """Handle a SelfSubjectRulesReview."""
        namespace = review["spec"].get("namespace", "")
        if not namespace:
            raise BadRequest("no namespace on request")
        rules = self._authorizer.rules_for(request.user, namespace)
        status: Obj = {
            "resourceRules": list(_resource_rules(rules.rules)),
            "nonResourceRules": list(_path_rules(rules.rules)),
            "incomplete": rules.is_incomplete,
        }
        if rules.problems:
            status["evaluationError"] = joined(rules.problems)
        # Kubernetes sends back nothing of what it got.
        return {**review, "metadata": {}, "spec": {}, "status": status}

    def _reviewed(self, review: Obj, user: User) -> Obj:
        decision = self._authorizer.authorize(user, attributes_of(review["spec"]))
        status: Obj = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        if problems := ", ".join(_ignored_selectors(review["spec"])):
            status["evaluationError"] = problems
        return {**review, "status": status}


def _ignored_selectors(spec: Obj) -> Iterator[str]:
    """Yield which selectors of a review cannot be parsed."""
    attributes = spec.get("resourceAttributes") or {}
    for name, parse, is_known in (
        ("fieldSelector", fieldselectors.parse, _selects_field),
        ("labelSelector", labels.parse, _selects_label),
    ):
        selector = attributes.get(name) or {}
        requirements = selector.get("requirements") or []
        wrong = [requirement for requirement in requirements if not is_known(requirement)]
        part = "partially " if len(wrong) < len(requirements) else ""
        try:
            parse(selector.get("rawSelector") or "")
        except SelectorError:
            yield f"spec.resourceAttributes.{name} ignored due to parse error"
        else:
            if wrong:
                yield f"spec.resourceAttributes.{name} {part}ignored due to parse error"


def _selects_label(requirement: Obj) -> bool:
    return requirement.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")


def _selects_field(requirement: Obj) -> bool:
    """Report whether a field selector can express a requirement."""
    values = requirement.get("values") or ()
    return requirement.get("operator") in ("In", "NotIn") and len(values) == 1


def attributes_of(spec: Obj) -> Attributes:
    """Return the attributes of a review."""
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    spec_attributes = spec["resourceAttributes"]
    selector = spec_attributes.get("fieldSelector") or {}
    fields = dict(selected_fields(selector.get("rawSelector", "")))
    for requirement in selector.get("requirements") or ():
        if requirement.get("operator") == "In" and len(requirement.get("values") or ()) == 1:
            fields[requirement["key"]] = requirement["values"][0]
    return Attributes(
        spec_attributes.get("verb", ""),
        spec_attributes.get("group", ""),
        spec_attributes.get("version", ""),
        spec_attributes.get("resource", ""),
        spec_attributes.get("subresource", ""),
        spec_attributes.get("namespace", ""),
        spec_attributes.get("name", ""),
        fields=fields,
    )


def _subject(spec: Obj) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _check(*problems: FieldError) -> None:
    if problems:
        # Kind and name are empty on the wire.
        raise invalid("", GROUP, "", problems)


def _resource_rules(rules: list[Obj]) -> Iterator[Obj]:
    for rule in rules:
        if rule.get("resources"):
            parts = ("verbs", "apiGroups", "resources", "resourceNames")
            yield {part: rule[part] for part in parts if rule.get(part)}


def _path_rules(rules: list[Obj]) -> Iterator[Obj]:
    for rule in rules:
        if rule.get("nonResourceURLs"):
            yield {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}
