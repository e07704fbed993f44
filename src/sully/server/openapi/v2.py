"""OpenAPI 2 (Swagger): one document for everything.

Older clients know only this one, some of them only in the binary form that gnostic.py writes from
the same document.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sully.machinery.schema import ObjectType
from sully.machinery.scheme import Scheme
from sully.server.discovery import named_groups
from sully.server.openapi.operations import (
    VERSION_ABOUT,
    VERSION_ID,
    GroupVersion,
    Operation,
    PathItem,
    kinds,
    paths,
    version_info,
)
from sully.server.openapi.parameters import PARAMETERS
from sully.server.openapi.schemas import GVK, META, V2, Definitions
from sully.server.openapi.v3 import JSON_FORMS, REASONS, STREAM_FORMS

Obj = dict[str, Any]


def build(scheme: Scheme, release: str) -> Obj:
    """Describe everything that is served; release is the version of the server."""
    places = list(group_versions(scheme))
    definitions = Definitions(V2, _all_kinds(scheme, places))
    status = scheme.tables.get(META, "Status")
    paths_: Obj = {}
    for at in places:
        writer = _Writer(definitions, at, status)
        paths_ |= {item.path: writer.path(item) for item in paths(scheme, at)}
    paths_["/version/"] = {"get": _version_operation(definitions)}
    definitions.reference(scheme.tables.get(META, "WatchEvent"))
    return {
        "swagger": "2.0",
        "info": {"title": "Sully", "version": release},
        "paths": paths_,
        "definitions": definitions.ordered(),
        "securityDefinitions": {
            "BearerToken": {
                "description": "A bearer token in the Authorization header.",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            }
        },
        "security": [{"BearerToken": []}],
    }


def _version_operation(definitions: Definitions) -> Obj:
    answer = {"description": "OK", "schema": definitions.reference(version_info())}
    return {
        "description": VERSION_ABOUT,
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "schemes": ["https"],
        "tags": ["version"],
        "operationId": VERSION_ID,
        "responses": {"200": answer, "401": {"description": "Unauthorized"}},
    }


def group_versions(scheme: Scheme) -> Iterator[GroupVersion]:
    """Yield everything served, the core group first."""
    core = [("", scheme.groups()[""])] if "" in scheme.groups() else []
    for group, versions in core + named_groups(scheme):
        for version in versions:
            yield GroupVersion(group, version)


def _all_kinds(scheme: Scheme, places: Iterable[GroupVersion]) -> dict[str, list[GVK]]:
    merged: dict[str, dict[GVK, None]] = {}
    for at in places:
        for name, gvks in kinds(scheme, at).items():
            merged.setdefault(name, {}).update(dict.fromkeys(gvks))
    return {name: list(gvks) for name, gvks in merged.items()}


def _parameter(name: str) -> Obj:
    known = PARAMETERS[name]
    parameter: Obj = {
        "uniqueItems": True,
        "type": known.type,
        "description": known.about,
        "name": name,
        "in": known.place,
    }
    return parameter | ({"required": True} if known.place == "path" else {})


class _Writer:
    """Writes the paths of one group and version, adding the types they mention."""

    def __init__(self, definitions: Definitions, at: GroupVersion, status: ObjectType) -> None:
        self._definitions, self._at, self._status = definitions, at, status

    def path(self, item: PathItem) -> Obj:
        written: Obj = {
            operation.method: self._operation(operation) for operation in item.operations
        }
        if item.parameters:
            written["parameters"] = [_parameter(name) for name in item.parameters]
        return written

    def _operation(self, operation: Operation) -> Obj:
        written: Obj = {
            "description": operation.about,
            "consumes": list(operation.consumes),
            "produces": self._forms(operation),
            "schemes": ["https"],
            "tags": [self._at.tag],
            "operationId": operation.id,
        }
        if operation.parameters or operation.body is not None:
            written["parameters"] = [*self._body(operation), *map(_parameter, operation.parameters)]
        written["responses"] = self._responses(operation)
        written.update(operation.extensions())
        return written

    def _forms(self, operation: Operation) -> list[str]:
        if operation.result is None:
            return ["text/plain"]
        return list(STREAM_FORMS if operation.streams else JSON_FORMS)

    def _body(self, operation: Operation) -> Iterator[Obj]:
        if operation.body is not None:
            schema = self._definitions.reference(operation.body)
            body: Obj = {"name": "body", "in": "body", "schema": schema}
            yield body | ({"required": True} if operation.body_required else {})

    def _responses(self, operation: Operation) -> Obj:
        text = {"type": "string"}
        schema = self._definitions.reference(operation.result) if operation.result else text
        good = {
            str(code): {"description": REASONS[code], "schema": schema} for code in operation.codes
        }
        failed = {"description": "Failure", "schema": self._definitions.reference(self._status)}
        return good | {"401": {"description": "Unauthorized"}, "default": failed}
