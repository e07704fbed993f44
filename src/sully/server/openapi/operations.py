"""The operations of each resource, independent of the version of OpenAPI.

v3.py and v2.py turn these values into documents.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sully.machinery.schema import Field, ListOf, ObjectType, Scalar, TableError, Tables
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType, Version
from sully.server.discovery import Subresource, served, subresources
from sully.server.openapi import parameters
from sully.server.openapi.schemas import GVK, META

PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
# kubectl reads this before it sends a strategic merge patch, which custom resources do not accept.
WITHOUT_STRATEGIC = PATCHES[:-1]
BODIES = ("application/json", "application/yaml")
VERSION_ID, VERSION_ABOUT = "getCodeVersion", "Version of the server."


class Operation(msgspec.Struct, frozen=True):
    """One operation: its body, its response, and its action on a kind.

    result: None answers plain text.
    """

    method: str
    action: str
    id: str
    about: str
    result: ObjectType | None
    kind: GVK | None
    parameters: tuple[str, ...] = ()
    body: ObjectType | None = None
    body_required: bool = True
    consumes: tuple[str, ...] = BODIES
    codes: tuple[int, ...] = (200,)
    streams: bool = False

    def extensions(self) -> Iterator[tuple[str, Any]]:
        """Yield what Kubernetes adds to OpenAPI: the verb, and the kind it is about."""
        if self.action:
            yield "x-kubernetes-action", self.action
        if self.kind is not None:
            named = dict(zip(("group", "version", "kind"), self.kind, strict=True))
            yield "x-kubernetes-group-version-kind", named


class PathItem(msgspec.Struct, frozen=True):
    """One path with its operations; parameters are those that all of them have."""

    path: str
    parameters: tuple[str, ...]
    operations: tuple[Operation, ...]


class GroupVersion(msgspec.Struct, frozen=True):
    """A group and version as paths, tags and operation names write it."""

    group: str
    version: str

    @property
    def root(self) -> str:
        """Return the path without its first slash: `api/v1`, `apis/apps/v1`."""
        return f"apis/{self.group}/{self.version}" if self.group else f"api/{self.version}"

    @property
    def tag(self) -> str:
        """Return the name under which tools gather the operations."""
        first, *rest = self._parts()
        return f"{first}{''.join(word.capitalize() for word in rest)}_{self.version}"

    @property
    def camel(self) -> str:
        """Return the part of an operation's name: `ResourceV1`."""
        return "".join(word[:1].upper() + word[1:] for word in (*self._parts(), self.version))

    def _parts(self) -> list[str]:
        return (self.group.removesuffix(".k8s.io") or "core").replace("-", ".").split(".")


def version_info() -> ObjectType:
    """Return the type of `/version`, which is in no table because it is not a kind."""
    object_type = ObjectType(
        "io.k8s.apimachinery.pkg.version", "Info", "Which software answers.", False
    )
    about = {
        "major": "First number of the Kubernetes release whose API is served.",
        "minor": "Second number of that release.",
        "gitVersion": "The full version.",
        "gitCommit": "The commit it was built from.",
        "gitTreeState": "`clean` if there were no uncommitted changes.",
        "buildDate": "When it was built.",
        "goVersion": "Language version it runs on.",
        "compiler": "Implementation of that language.",
        "platform": "Operating system and processor.",
    }
    string = Scalar("string")
    object_type.fields.update(
        (name, Field(name, string, text, required=True, emit=True)) for name, text in about.items()
    )
    return object_type


def list_type(tables: Tables, item: ObjectType, name: str = "") -> ObjectType:
    """Return the list type of a kind; one that is in no table is derived from the kind."""
    name = name or f"{item.name}List"
    try:
        return tables.get(item.package, name)
    except TableError:
        object_type = ObjectType(
            item.package, name, f"A number of {item.name} objects.", atomic=False
        )
        fields = (
            Field("apiVersion", Scalar("string"), "Group and version that give it its shape."),
            Field("items", ListOf(item), "The objects found.", required=True, null=True),
            Field("kind", Scalar("string"), "Kind of the list."),
            Field("metadata", tables.get(META, "ListMeta"), "Facts about the list.", emit=True),
        )
        object_type.fields.update((one.name, one) for one in fields)
        return object_type


def kinds(scheme: Scheme, at: GroupVersion) -> dict[str, list[GVK]]:
    """Return the kinds of the types of a group and version, by the type's full name."""
    kinds_by_type: dict[str, list[GVK]] = {
        f"{META}.{name}": [("", "v1", name)] for name in ("APIResourceList", "Status")
    }
    for name in ("DeleteOptions", "WatchEvent"):
        everywhere = dict.fromkeys((("", "v1", name), (at.group, at.version, name)))
        kinds_by_type[f"{META}.{name}"] = list(everywhere)
    for resource in served(scheme, at.group, at.version):
        package = _version(resource, at).package
        for name in (resource.kind, resource.list_kind or f"{resource.kind}List"):
            kinds_by_type[f"{package}.{name}"] = [(at.group, at.version, name)]
        for sub in subresources(resource, at.version):
            if sub.version:
                package = _package(sub.group, sub.version)
                kinds_by_type[f"{package}.{sub.kind}"] = [(sub.group, sub.version, sub.kind)]
    return kinds_by_type


def paths(scheme: Scheme, at: GroupVersion) -> Iterator[PathItem]:
    """Yield all paths of a group and version."""
    resources = Operation(
        "get",
        "",
        f"get{at.camel}APIResources",
        "Lists the resources of this group and version.",
        scheme.tables.get(META, "APIResourceList"),
        None,
    )
    yield PathItem(f"/{at.root}/", (), (resources,))
    for resource in served(scheme, at.group, at.version):
        yield from _Paths(scheme, at, resource).all()


def _version(resource: ResourceType, at: GroupVersion) -> Version:
    version = resource.version(at.version)
    assert version is not None, "only served resources get here"
    return version


def _package(group: str, version: str) -> str:
    return f"io.k8s.api.{group.split('.')[0] or 'core'}.{version}"


class _Paths:
    """The paths of one resource in one version."""

    def __init__(self, scheme: Scheme, at: GroupVersion, resource: ResourceType) -> None:
        self._tables = scheme.tables
        self._at, self._resource = at, resource
        self._version = _version(resource, at)
        self._kind = scheme.schema(resource, at.version)
        self._scope = "Namespaced" if resource.namespaced else ""
        self._gvk = (at.group, at.version, resource.kind)

    def all(self) -> Iterator[PathItem]:
        plural = self._resource.plural
        if self._resource.namespaced and "list" in self._resource.verbs:
            everywhere = (self._list(f"{self._resource.kind}ForAllNamespaces"),)
            yield PathItem(f"/{self._at.root}/{plural}", ("pretty",), everywhere)
        middle = "namespaces/{namespace}/" if self._resource.namespaced else ""
        inside = ("namespace",) if self._resource.namespaced else ()
        collection = f"/{self._at.root}/{middle}{plural}"
        yield from _item(collection, (*inside, "pretty"), self._collection())
        one = ("name", *inside, "pretty")
        yield from _item(f"{collection}/{{name}}", one, self._single())
        for sub in subresources(self._resource, self._at.version):
            yield from _item(f"{collection}/{{name}}/{sub.name}", one, self._below(sub))

    def _id(self, verb: str, rest: str) -> str:
        return f"{verb}{self._at.camel}{rest}"

    def _list(self, rest: str) -> Operation:
        return Operation(
            "get",
            "list",
            self._id("list", rest),
            f"Lists or watches objects of kind {self._resource.kind}.",
            list_type(self._tables, self._kind, self._resource.list_kind),
            self._gvk,
            parameters.LIST,
            streams=True,
        )

    def _collection(self) -> Iterator[Operation]:
        kind, verbs = self._resource.kind, self._resource.verbs
        if "list" in verbs:
            yield self._list(f"{self._scope}{kind}")
        if "create" in verbs:
            yield self._create(f"{self._scope}{kind}", self._kind, self._gvk)
        if "deletecollection" in verbs:
            yield Operation(
                "delete",
                "deletecollection",
                self._id("delete", f"Collection{self._scope}{kind}"),
                f"Deletes all selected objects of kind {kind}.",
                self._tables.get(META, "Status"),
                self._gvk,
                parameters.DELETE_COLLECTION,
                self._tables.get(META, "DeleteOptions"),
                body_required=False,
            )

    def _single(self) -> Iterator[Operation]:
        verbs = self._resource.verbs
        rest = f"{self._scope}{self._resource.kind}"
        yield from self._changes(rest, tuple(verbs), self._kind, self._gvk)
        if "delete" in verbs:
            returned = self._version.delete_returns_object
            yield Operation(
                "delete",
                "delete",
                self._id("delete", rest),
                f"Deletes one object of kind {self._resource.kind}.",
                self._kind if returned else self._tables.get(META, "Status"),
                self._gvk,
                parameters.DELETE,
                self._tables.get(META, "DeleteOptions"),
                body_required=False,
                codes=(200, 202),
            )

    def _below(self, sub: Subresource) -> Iterator[Operation]:
        rest = f"{self._scope}{self._resource.kind}{sub.name[:1].upper()}{sub.name[1:]}"
        group, version = (sub.group, sub.version) if sub.version else self._gvk[:2]
        if sub.name == "log":
            about = "Reads what the containers of the pod wrote."
            yield Operation("get", "get", self._id("read", rest), about, None, self._gvk)
            return
        try:
            kind = self._kind
            if sub.version or sub.kind != kind.name:
                package = _package(group, version) if sub.version else self._version.package
                kind = self._tables.get(package, sub.kind)
        except TableError:
            return  # a stream, not an object: exec and its like have no schema
        gvk = (group, version, sub.kind)
        if "create" in sub.verbs:
            yield self._create(rest, kind, gvk)
        yield from self._changes(rest, sub.verbs, kind, gvk)

    def _create(self, rest: str, kind: ObjectType, gvk: GVK) -> Operation:
        about, codes = f"Creates an object of kind {gvk[2]}.", (200, 201, 202)
        name = self._id("create", rest)
        return Operation(
            "post", "post", name, about, kind, gvk, parameters.WRITE, kind, codes=codes
        )

    def _changes(
        self, rest: str, verbs: tuple[str, ...], kind: ObjectType, gvk: GVK
    ) -> Iterator[Operation]:
        if "get" in verbs:
            about = f"Reads one object of kind {gvk[2]}."
            yield Operation("get", "get", self._id("read", rest), about, kind, gvk)
        if "update" in verbs:
            about, name = f"Replaces one object of kind {gvk[2]}.", self._id("replace", rest)
            yield Operation(
                "put", "put", name, about, kind, gvk, parameters.WRITE, kind, codes=(200, 201)
            )
        if "patch" in verbs:
            yield Operation(
                "patch",
                "patch",
                self._id("patch", rest),
                f"Changes parts of one object of kind {gvk[2]}.",
                kind,
                gvk,
                parameters.PATCH,
                self._tables.get(META, "Patch"),
                consumes=WITHOUT_STRATEGIC if self._version.structural else PATCHES,
                codes=(200, 201),
            )


def _item(
    path: str, shared: tuple[str, ...], operations: Iterator[Operation]
) -> Iterator[PathItem]:
    served = tuple(operations)
    if served:
        yield PathItem(path, shared, served)
