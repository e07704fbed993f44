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
        written: Obj = {one.method: self._operation(one) for one in item.operations}
        if item.parameters:
            written["parameters"] = [_parameter(name) for name in item.parameters]
        return written

    def _operation(self, one: Operation) -> Obj:
        written: Obj = {
            "description": one.about,
            "consumes": list(one.consumes),
            "produces": self._forms(one),
            "schemes": ["https"],
            "tags": [self._at.tag],
            "operationId": one.id,
        }
        if one.parameters or one.body is not None:
            written["parameters"] = [*self._body(one), *map(_parameter, one.parameters)]
        written["responses"] = self._responses(one)
        written.update(one.extensions())
        return written

    def _forms(self, one: Operation) -> list[str]:
        if one.result is None:
            return ["text/plain"]
        return list(STREAM_FORMS if one.streams else JSON_FORMS)

    def _body(self, one: Operation) -> Iterator[Obj]:
        if one.body is not None:
            schema = self._definitions.reference(one.body)
            body: Obj = {"name": "body", "in": "body", "schema": schema}
            yield body | ({"required": True} if one.body_required else {})

    def _responses(self, one: Operation) -> Obj:
        text = {"type": "string"}
        schema = self._definitions.reference(one.result) if one.result else text
        good = {str(code): {"description": REASONS[code], "schema": schema} for code in one.codes}
        failed = {"description": "Failure", "schema": self._definitions.reference(self._status)}
        return good | {"401": {"description": "Unauthorized"}, "default": failed}
