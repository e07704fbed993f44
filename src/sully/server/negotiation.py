"""Content negotiation: JSON or YAML; the object, its metadata only, or a table."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sully.machinery.errors import BadRequest, NotAcceptable
from sully.machinery.fields import Path
from sully.machinery.strategy import Column, Obj
from sully.server.requests import Request, Target
from sully.server.storage.objects import typed

JSON, YAML = "application/json", "application/yaml"
_ANY = ("*/*", "application/*")


@dataclass(frozen=True, slots=True)
class Form:
    """The negotiated form of a response."""

    media: str = JSON
    shape: str = ""  # "", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
    group_version: str = "meta.k8s.io/v1"
    pretty: bool = False

    @property
    def plain(self) -> bool:
        """Report whether the stored encoding can be sent as it is."""
        return self.media == JSON and not self.shape and not self.pretty


PLAIN = Form()


def negotiate(accept: str, *, pretty: bool = False) -> Form:
    """Return the first supported form of an Accept header."""
    if not accept:
        return Form(pretty=pretty) if pretty else PLAIN
    for clause in _by_quality(accept):
        form = _clause(clause, pretty=pretty)
        if form is not None:
            return form
    raise NotAcceptable(
        "only the following media types are accepted: application/json, application/yaml"
    )


def _by_quality(accept: str) -> list[str]:
    """Sort accepted media types: by quality, then by specificity."""
    clauses = accept.split(",")
    if "q=" not in accept and "*" not in accept:
        return clauses
    return sorted(clauses, key=lambda clause: (-_quality(clause), clause.split(";")[0].count("*")))


def _quality(clause: str) -> float:
    _, has_quality, text = clause.partition("q=")
    try:
        return float(text.split(";")[0]) if has_quality else 1.0
    except ValueError:
        return 1.0


def _clause(clause: str, *, pretty: bool) -> Form | None:
    media, *parameters = (part.strip() for part in clause.split(";"))
    options = dict(part.partition("=")[::2] for part in parameters)
    if media in _ANY:
        media = JSON
    if media not in (JSON, YAML):
        return None
    shape = options.get("as", "")
    if shape and not _is_supported(shape, options):
        return None
    group_version = f"meta.k8s.io/{options.get('v', 'v1')}" if shape else ""
    pretty = pretty or options.get("pretty", "") not in ("", "0", "false")
    return Form(media, shape, group_version, pretty)


def _is_supported(shape: str, options: dict[str, str]) -> bool:
    known = shape in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    return known and options.get("g") == "meta.k8s.io" and options.get("v") in ("v1", "v1beta1")


def metadata_only(obj: Obj, form: Form) -> Obj:
    """Return the PartialObjectMetadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": form.group_version,
        "metadata": obj["metadata"],
    }


def metadata_list(metadata: Obj, objects: list[Obj], form: Form) -> Obj:
    """Return the PartialObjectMetadataList of a list; its items have their kind."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": form.group_version,
        "metadata": metadata,
        "items": [metadata_only(obj, form) for obj in objects],
    }


def name_column() -> Column:
    """Return the column every table begins with."""
    return Column("Name", lambda obj, _: obj["metadata"]["name"], format="name")


def created_column() -> Column:
    """Return the second column of kinds without columns of their own."""
    return Column(
        "Created At",
        lambda obj, _: obj["metadata"].get("creationTimestamp", ""),
        type="date",
    )


class Tables:
    """Prints objects as tables."""

    def __init__(
        self, request: Request, form: Form, now: datetime, columns: tuple[Column, ...] = ()
    ) -> None:
        target = request.target
        self._target = target
        self._form = form
        self._now = now
        self._include = request.option("includeObject") or "Metadata"
        plain = (name_column(), created_column())
        self._columns = columns or target.resource.columns or plain
        if self._include not in ("Metadata", "Object", "None"):
            problem = Path("includeObject").invalid(
                self._include, "must be 'Metadata', 'Object', 'None', or empty"
            )
            raise BadRequest(f"Unable to convert to Table as requested: {problem}")

    def table(self, metadata: Obj, rows: list[tuple[Obj, Obj]], *, columns: bool = True) -> Obj:
        """Return the table of (hub object, view in the client's version) pairs."""
        return {
            "kind": "Table",
            "apiVersion": self._form.group_version,
            "metadata": metadata,
            "columnDefinitions": [_definition(c) for c in self._columns] if columns else None,
            "rows": [self.row(hub, view) for hub, view in rows],
        }

    def row(self, hub: Obj, view: Obj) -> Obj:
        """Return the row of one object."""
        cells = [column.cell(hub, self._now) for column in self._columns]
        return {"cells": cells, "object": self._shown(view)}

    def _shown(self, view: Obj) -> Any:
        if self._include == "None":
            return None
        if self._include == "Object":
            return typed(view, self._target)
        return metadata_only(view, self._form)


def _definition(column: Column) -> Obj:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def list_kind(target: Target) -> str:
    """Return the kind of a list of the target's objects."""
    return f"{target.resource.kind}List"
