"""The kinds of CustomResourceDefinitions, which come and go while controllers run.

Controllers that treat all kinds alike get the built-in ones when they are built. These are the
others: `all` for those that list, handlers for the garbage collector, which watches each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from sully.client.discovery.resources import CUSTOM_VERBS, APIResource
from sully.client.informers.informer import Informer
from sully.client.transport import Kind, Transport
from sully.machinery.meta import ObjectMeta, Wire, find_condition
from sully.machinery.scheme import version_priority

T = TypeVar("T")


class DefinitionNames(Wire, frozen=True, kw_only=True):
    """The names under which a kind is served."""

    plural: str = ""
    kind: str = ""


class DefinitionVersion(Wire, frozen=True, kw_only=True):
    """A version of a kind."""

    name: str
    served: bool = False


class DefinitionSpec(Wire, frozen=True, kw_only=True):
    """Where the objects of a kind are."""

    group: str = ""
    scope: str = ""
    versions: tuple[DefinitionVersion, ...] = ()


class DefinitionCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a definition's state."""

    type: str
    status: str
    message: str = ""


class DefinitionStatus(Wire, frozen=True, kw_only=True):
    """Whether a kind is served."""

    conditions: tuple[DefinitionCondition, ...] | None = None
    accepted_names: DefinitionNames = DefinitionNames()


class Definition(Wire, frozen=True, kw_only=True):
    """A CustomResourceDefinition, without its schemas."""

    metadata: ObjectMeta
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


DEFINITIONS: Kind[Definition] = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    Definition,
    namespaced=False,
)
Handler = Callable[[APIResource | None, APIResource | None], None]
"""Gets the resource of a definition before and after a change."""


class CustomKinds:
    """The resources of the definitions of a server."""

    def __init__(self, definitions: Informer[Definition], known: Iterable[APIResource]) -> None:
        """`known` are the resources that controllers have from the start."""
        self._known = {(resource.group, resource.plural) for resource in known}
        self._resources: dict[str, APIResource] = {}
        self._handlers: list[Handler] = []
        definitions.on_change(self._changed)

    def all(self, type_: type[T]) -> list[Kind[T]]:
        """Return the namespaced kinds, read as a type."""
        return [
            resource.as_kind(type_) for resource in self._resources.values() if resource.namespaced
        ]

    def on_change(self, handler: Handler) -> None:
        """Call a handler for each kind that is added, updated or deleted."""
        self._handlers.append(handler)

    def _changed(self, old: Definition | None, new: Definition | None) -> None:
        definition = new or old
        assert definition is not None, "a change has an object"
        name = definition.metadata.name
        resource = None if new is None else resource_of(new)
        if resource is not None and (resource.group, resource.plural) in self._known:
            return
        before = self._resources.pop(name, None)
        if resource is not None:
            self._resources[name] = resource
        if before != resource:
            for handler in self._handlers:
                handler(before, resource)


async def listed_kinds(
    transport: Transport, known: Iterable[APIResource], type_: type[T]
) -> list[Kind[T]]:
    """Return the namespaced kinds of the definitions that a server has now."""
    without = {(resource.group, resource.plural) for resource in known}
    resources = map(resource_of, (await transport.list(DEFINITIONS)).items)
    return [
        resource.as_kind(type_)
        for resource in resources
        if resource is not None
        and resource.namespaced
        and (resource.group, resource.plural) not in without
    ]


def resource_of(definition: Definition) -> APIResource | None:
    """Return the resource of a definition; None while it is not served."""
    established = find_condition(definition.status.conditions or (), "Established")
    versions = [version.name for version in definition.spec.versions if version.served]
    if established is None or established.status != "True" or not versions:
        return None
    return APIResource(
        group=definition.spec.group,
        versions=tuple(sorted(versions, key=version_priority)),
        plural=definition.status.accepted_names.plural,
        kind=definition.status.accepted_names.kind,
        namespaced=definition.spec.scope == "Namespaced",
        verbs=CUSTOM_VERBS,
    )
