"""The review kinds and their validation."""

from collections.abc import Iterator
from typing import Any

from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import label_key_problems
from sully.machinery.strategy import ResourceType, Strategy, Version

Obj = dict[str, Any]

AUTHORIZATION = "io.k8s.api.authorization.v1"
GROUP = "authorization.k8s.io"

_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NO_SUBJECT = "at least one of user or group must be specified"


def _review(kind: str, *, namespaced: bool = False) -> ResourceType:
    return ResourceType(
        group=GROUP,
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        namespaced=namespaced,
        versions=(Version("v1", AUTHORIZATION),),
        strategy=Strategy(),
        virtual=True,
    )


REVIEWS = (
    _review("LocalSubjectAccessReview", namespaced=True),
    _review("SelfSubjectAccessReview"),
    _review("SelfSubjectRulesReview"),
    _review("SubjectAccessReview"),
)


def validate_spec(spec: Obj, *, has_subject: bool = False) -> Iterator[FieldError]:
    """Yield what is wrong with the attributes, of a resource or of a path, and with the subject."""
    at = Path("spec")
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        at_path = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        yield at.invalid(at_path, _ONE_OF)
    elif resource is None and path is None:
        yield at.invalid(None, _ONE_OF)
    if has_subject and not spec.get("user") and not spec.get("groups"):
        yield at.child("user").invalid(spec.get("user", ""), _NO_SUBJECT)
    if resource is not None:
        below = at.child("resourceAttributes")
        yield from _selector(resource.get("fieldSelector"), below.child("fieldSelector"))
        yield from _selector(resource.get("labelSelector"), below.child("labelSelector"))


def _selector(selector: Obj | None, at: Path) -> Iterator[FieldError]:
    if selector is None:
        return
    raw, single = selector.get("rawSelector"), selector.get("requirements")
    if raw and single:
        yield at.child("rawSelector").invalid(
            raw, "may not specified at the same time as requirements"
        )
    elif not raw and not single:
        yield at.child("requirements").required(
            f"when {at} is specified, requirements or rawSelector is required"
        )
    is_label = at.text.endswith("labelSelector")
    for index, requirement in enumerate(single or ()):
        here, key = at.child("requirements").index(index), requirement.get("key", "")
        if not is_label and not key:
            yield here.child("key").required("must be specified")
        yield from _values(requirement, here)
        for problem in label_key_problems(key) if is_label else ():
            yield here.child("key").invalid(key, problem)


def _values(requirement: Obj, at: Path) -> Iterator[FieldError]:
    """Check the values of an operator; unknown ones may be those of a newer client."""
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        text = "must be specified when `operator` is 'In' or 'NotIn'"
        yield at.child("values").required(text)
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield at.child("values").forbidden(text)


def validate_local(namespace: str, spec: Obj) -> Iterator[FieldError]:
    """Yield what is wrong with a review that is limited to one namespace."""
    at = Path("spec.resourceAttributes.namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        text = "must match metadata.namespace"
        yield at.invalid(resource.get("namespace", ""), text)
    if spec.get("nonResourceAttributes") is not None:
        text = "disallowed on this kind of request"
        path = spec["nonResourceAttributes"]
        shown = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        yield Path("spec.nonResourceAttributes").invalid(shown, text)


def validate_metadata(review: Obj, *, namespaced: bool = False) -> Iterator[FieldError]:
    """Yield what is wrong with the metadata: reviews are not stored and have no name."""
    metadata = review["metadata"]
    allowed = ("managedFields", "namespace") if namespaced else ("managedFields",)
    if any(name not in allowed for name in metadata):
        text = "must be empty except for namespace" if namespaced else "must be empty"
        # Kubernetes shows its own structure, where the namespace is between names and labels.
        first = [name for name in ("name", "generateName", "namespace") if name in metadata]
        yield Path("metadata").invalid(dict.fromkeys(first) | metadata, text)
