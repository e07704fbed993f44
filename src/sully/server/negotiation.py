"""Content negotiation: JSON, YAML or protobuf; the object, its metadata only, or a table."""

from datetime import datetime
from typing import Any

import msgspec

from sully.machinery.errors import BadRequest, NotAcceptable
from sully.machinery.fields import Path
from sully.machinery.serialization import codec
from sully.machinery.strategy import Column, Obj
from sully.server.requests import Request, Target
from sully.server.storage.objects import typed

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_ANY = ("*/*", "application/*")
REPRESENTATIONS = (JSON, YAML, PROTOBUF)
"""The media types of objects in Kubernetes, as its errors list them."""
_CREATED = "Created At"
_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


class Form(msgspec.Struct, frozen=True):
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


_WITHOUT_TABLE = ("binding", "ephemeralcontainers", "eviction", "finalize", "resize", "token")
_STATUS_WITHOUT_TABLE = ("apiextensions.k8s.io", "resource.k8s.io")


def has_table(target: Target) -> bool:
    """Report whether Kubernetes prints what a path serves; reviews and some subresources not."""
    if target.subresource == "status":
        return target.resource.group not in _STATUS_WITHOUT_TABLE
    if target.subresource:
        return target.subresource not in _WITHOUT_TABLE
    return "get" in target.resource.verbs or "create" not in target.resource.verbs


def negotiate(
    accept: str, *, pretty: bool = False, protobuf: bool = False, table: bool = True
) -> Form:
    """Return the first supported form of an Accept header.

    protobuf: whether the objects have a form in protobuf; their metadata always has.
    table: whether they have a form as Table.
    """
    if not accept:
        return Form(pretty=pretty) if pretty else PLAIN
    for clause in _by_quality(accept):
        form = _clause(clause, pretty=pretty)
        if form is None or (form.shape == "Table" and not table):
            continue
        if protobuf or form.shape or form.media != PROTOBUF:
            return form
    raise not_acceptable()


def check_route(accept: str, *, is_list: bool) -> None:
    """Reject an Accept header that no route of objects serves; lists can also be streamed."""
    check_representation(accept, (*REPRESENTATIONS, *_STREAMS) if is_list else REPRESENTATIONS)


def check_representation(accept: str, available: tuple[str, ...] = REPRESENTATIONS) -> None:
    """Reject an Accept header that names none of a route's media types, in any form."""
    for clause in accept.split(",") if accept else ():
        if clause.partition(";")[0].strip() in ("*/*", *available):
            return
    if accept:
        listed = ", ".join(available)
        raise NotAcceptable(
            f"406: Not Acceptable\n\nAvailable representations: {listed}", details={}
        )


def check_streamed(form: Form) -> None:
    """Reject a watch in a form that has no stream."""
    if form.media == YAML:
        raise not_acceptable(_STREAMS)


def not_acceptable(accepted: tuple[str, ...] = REPRESENTATIONS) -> NotAcceptable:
    """Return the error for a form that does not exist."""
    return NotAcceptable(f"only the following media types are accepted: {', '.join(accepted)}")


def error_form(accept: str, *, pretty: bool = False) -> Form:
    """Return the form of an error, which is JSON where the requested one does not exist.

    An error has no other shape than its own, so what accepts only another one is skipped.
    """
    for clause in _by_quality(accept):
        form = _clause(clause, pretty=pretty)
        if form is not None and not form.shape and form.media != PROTOBUF:
            return form
    return PLAIN


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
    if media not in (JSON, YAML, PROTOBUF):
        return None
    shape = options.get("as", "")
    if shape and not _is_supported(shape, options):
        return None
    if shape == "Table" and media == PROTOBUF:
        return None
    group_version = f"meta.k8s.io/{options.get('v', 'v1')}" if shape else ""
    pretty = pretty or options.get("pretty", "") not in ("", "0", "false")
    return Form(media, shape, group_version, pretty)


def _is_supported(shape: str, options: dict[str, str]) -> bool:
    known = shape in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    return known and options.get("g") == "meta.k8s.io" and options.get("v") in ("v1", "v1beta1")


def encode(value: Obj, form: Form) -> bytes:
    """Write a response in its media type."""
    if form.media == YAML:
        return codec.to_yaml(value)
    return codec.to_pretty_json(value) if form.pretty else codec.to_json(value)


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
        "items": [metadata_only(obj, form) for obj in objects] or None,
    }


def name_column() -> Column:
    """Return the column every table begins with."""
    return Column("Name", lambda obj, _: obj["metadata"].get("name", ""), format="name")


def created_column() -> Column:
    """Return the second column of kinds without columns of their own."""
    return Column(
        _CREATED,
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
        version = target.resource.version(target.version)
        own = () if version is None else version.columns
        plain = (name_column(), created_column())
        self._columns = columns or own or target.resource.columns or plain
        # Kubernetes has another printer for the kinds that show when they were created.
        dated = not own and any(column.name == _CREATED for column in self._columns)
        self._no_rows: list[Obj] | None = None if dated else []
        if self._include not in ("Metadata", "Object", "None"):
            problem = Path("includeObject").invalid(
                self._include, "must be 'Metadata', 'Object', 'None', or empty"
            )
            raise BadRequest(f"Unable to convert to Table as requested: {problem}")

    def table(self, metadata: Obj, rows: list[tuple[Obj, Obj]], *, columns: bool = True) -> Obj:
        """Return the table of (stored object, view in the client's version) pairs."""
        return self.of_rows(
            metadata, [self.row(stored, view) for stored, view in rows], columns=columns
        )

    def of_rows(self, metadata: Obj, rows: list[Obj], *, columns: bool) -> Obj:
        """Return a table."""
        return {
            "kind": "Table",
            "apiVersion": self._form.group_version,
            "metadata": metadata,
            "columnDefinitions": [_definition(c) for c in self._columns] if columns else None,
            "rows": rows or self._no_rows,
        }

    def row(self, stored: Obj, view: Obj) -> Obj:
        """Return the row of one object."""
        cells = [column.cell(stored, self._now) for column in self._columns]
        conditions = self._target.resource.row_conditions(stored)
        known = {"conditions": conditions} if conditions else {}
        return {"cells": cells, **known, "object": self._shown(view)}

    def empty_row(self, empty: Obj) -> Obj:
        """Return the row of an object with nothing in it: what it lacks is null."""
        cells: list[Any] = []
        for column in self._columns:
            try:
                cells.append(column.cell(empty, self._now))
            except (LookupError, TypeError):
                cells.append(None)
        return {"cells": cells, "object": self._shown(empty)}

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
    return target.resource.list_kind or f"{target.resource.kind}List"
