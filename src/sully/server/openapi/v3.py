"""OpenAPI 3: one document for each group and version."""

from collections.abc import Iterable
from typing import Any

from sully.machinery.schema import ObjectType
from sully.machinery.scheme import Scheme
from sully.server.openapi.operations import (
    VERSION_ABOUT,
    VERSION_ID,
    GroupVersion,
    Operation,
    kinds,
    paths,
    version_info,
)
from sully.server.openapi.parameters import PARAMETERS
from sully.server.openapi.schemas import META, V3, Definitions

Obj = dict[str, Any]

REASONS = {200: "OK", 201: "Created", 202: "Accepted"}
JSON_FORMS = ("application/json", "application/yaml")
STREAM_FORMS = ("application/json", "application/json;stream=watch", "application/yaml")


def build(scheme: Scheme, group: str, version: str, release: str) -> Obj:
    """Describe one group and version; release is the version of the server."""
    at = GroupVersion(group, version)
    definitions = Definitions(V3, kinds(scheme, at))
    writer = _Writer(definitions, at, scheme.tables.get(META, "Status"))
    document = {
        item.path: {one.method: writer.operation(one) for one in item.operations}
        | _shared(item.parameters)
        for item in paths(scheme, at)
    }
    definitions.reference(scheme.tables.get(META, "WatchEvent"))
    return _whole(document, definitions, release)


def build_version(release: str) -> Obj:
    """Describe `/version`, which belongs to no group."""
    definitions = Definitions(V3)
    schema = definitions.reference(version_info())
    answer = {"description": "OK", "content": {"application/json": {"schema": schema}}}
    operation = {
        "tags": ["version"],
        "description": VERSION_ABOUT,
        "operationId": VERSION_ID,
        "responses": {"200": answer, "401": {"description": "Unauthorized"}},
    }
    return _whole({"/version/": {"get": operation}}, definitions, release)


def _whole(paths: Obj, definitions: Definitions, release: str) -> Obj:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Sully", "version": release},
        "paths": paths,
        "components": {
            "schemas": definitions.ordered(),
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey",
                    "description": "A bearer token in the Authorization header.",
                    "name": "authorization",
                    "in": "header",
                }
            },
        },
    }


def _shared(names: Iterable[str]) -> Obj:
    parameters = _parameters(names)
    return {"parameters": parameters} if parameters else {}


def _parameters(names: Iterable[str]) -> list[Obj]:
    return [_parameter(name) for name in names]


def _parameter(name: str) -> Obj:
    known = PARAMETERS[name]
    parameter: Obj = {"name": name, "in": known.place, "description": known.about}
    if known.place == "path":
        parameter["required"] = True
    return parameter | {"schema": {"type": known.type, "uniqueItems": True}}


class _Writer:
    """Writes the operations of one document, adding the types they mention."""

    def __init__(self, definitions: Definitions, at: GroupVersion, status: ObjectType) -> None:
        self._definitions, self._at, self._status = definitions, at, status

    def operation(self, described: Operation) -> Obj:
        written: Obj = {
            "tags": [self._at.tag],
            "description": described.about,
            "operationId": described.id,
        }
        if described.parameters:
            written["parameters"] = _parameters(described.parameters)
        if described.body is not None:
            written["requestBody"] = self._body(described, described.body)
        written["responses"] = self._responses(described)
        written.update(described.extensions())
        return written

    def _body(self, described: Operation, kind: ObjectType) -> Obj:
        body: Obj = {"content": self._content(kind, described.consumes)}
        if described.body_required:
            body["required"] = True
        return body

    def _responses(self, described: Operation) -> Obj:
        forms = STREAM_FORMS if described.streams else JSON_FORMS
        content = self._content(described.result, forms if described.result else ("text/plain",))
        good = {
            str(code): {"description": REASONS[code], "content": content}
            for code in described.codes
        }
        failed = {"description": "Failure", "content": self._content(self._status, JSON_FORMS)}
        return good | {"401": {"description": "Unauthorized"}, "default": failed}

    def _content(self, kind: ObjectType | None, forms: Iterable[str]) -> Obj:
        schema = self._definitions.reference(kind) if kind else {"type": "string"}
        return {form: {"schema": schema} for form in forms}
