"""Which objects of a resource a request selects: label and field selectors."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from sully.machinery.errors import BadRequest
from sully.machinery.selectors import fieldselectors, labels
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj
from sully.server.requests import Request, Target


class SelectionPredicate(msgspec.Struct, frozen=True):
    """The parsed selectors of one request."""

    labels: labels.Selector
    fields: fieldselectors.FieldSelector
    values: Callable[[Obj], dict[str, str]]
    # The only name that can match, None if others can, as MatchesSingle in Kubernetes.
    single: str | None = None

    @property
    def everything(self) -> bool:
        """Report whether every object matches."""
        return self.labels.everything and not self.fields.requirements

    def matches(self, obj: Obj) -> bool:
        """Report whether a stored object matches."""
        if not self.labels.matches(obj["metadata"].get("labels") or {}):
            return False
        return not self.fields.requirements or self.fields.matches(self.values(obj))


def selection(request: Request) -> SelectionPredicate:
    """Read the selectors of a request; reject what the kind cannot be selected by."""
    target = request.target
    by_label, by_field = parse_selectors(request)
    for requirement in by_field.requirements:
        _check_label(target, requirement.field)
    names = [
        requirement.value
        for requirement in by_field.requirements
        if requirement.field == "metadata.name" and not requirement.negated
    ]
    return SelectionPredicate(
        by_label, by_field, lambda obj: field_values(target, obj), names[0] if names else None
    )


def parse_selectors(request: Request) -> tuple[labels.Selector, fieldselectors.FieldSelector]:
    """Read the selectors of a request, without what its kind has fields for."""
    try:
        by_label = labels.parse(request.option("labelSelector"))
        return by_label, fieldselectors.parse(request.option("fieldSelector"))
    except labels.SelectorError as error:
        raise BadRequest(str(error)) from None


def by_name(request: Request) -> Request:
    """Return a watch of the object that a path names as one that selects its name.

    A field selector of the client must require that name too, as in Kubernetes.
    """
    target = request.target
    predicate = selection(request)
    selector = request.option("fieldSelector")
    if not predicate.fields.requirements:
        selector = f"metadata.name={fieldselectors.escape(target.name)}"
    elif predicate.single != target.name:
        raise BadRequest("fieldSelector metadata.name doesn't match requested name")
    options = {**request.options, "fieldSelector": selector}
    return replace(request, target=replace(target, name=""), options=options)


def _check_label(target: Target, label: str) -> None:
    resource = target.resource
    known = ("metadata.name", *_selectable(target))
    # Kinds with fields of their own list every field they have; others have both by default.
    in_namespace = resource.namespaced or resource.unknown_label is None
    if label in known or (label == "metadata.namespace" and in_namespace):
        return
    if resource.unknown_label is not None:
        raise BadRequest(
            resource.unknown_label(resource.group, target.version, resource.kind, label)
        )
    raise BadRequest(
        f'{quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


def _selectable(target: Target) -> Mapping[str, Callable[[Obj], str]]:
    version = target.resource.version(target.version)
    own = None if version is None else version.selectable
    return target.resource.selectable if own is None else own


def field_values(target: Target, obj: Obj) -> dict[str, str]:
    """Return the values an object can be selected by."""
    metadata = obj["metadata"]
    values = {
        "metadata.name": metadata.get("name", ""),
        "metadata.namespace": metadata.get("namespace", ""),
    }
    for label, value in _selectable(target).items():
        values[label] = value(obj)
    return values
