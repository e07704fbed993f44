"""Snapshots in files: as `kubectl get … -o yaml` or `-o json` prints them, of any cluster.

A file is a List, an object, or several of either (documents.py). Kinds that no question needs are
left aside. `sully snapshot` writes one List, with the time at which it was taken and the
kinds that were listed, so that one without objects is told from one that is missing; where a file
does not say, the reader does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sully.api.sully.types import GROUP as OURS
from sully.api.sully.types import VERSION
from sully.client.discovery.conversion import SHAPES
from sully.client.transport import Kind
from sully.domain.capabilities.control_plane import ControlPlane
from sully.machinery.codec import to_json, to_yaml
from sully.machinery.timestamps import TimeError, format_time, parse_time
from sully.views.devices.changes import Features
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import PATCHES, RULES
from sully.views.snapshot.documents import TextError, read_documents
from sully.views.snapshot.kinds import EVERYTHING
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

TAKEN = "takenTime"
"""Where a List says when it was taken; only ours do."""
LISTED = "listedKinds"
"""Where it says of which kinds it has all there are."""
NAMESPACE = "listedNamespace"
"""Where it says that of what is in namespaces it has only this one's."""
CONTROL_PLANE = "controlPlane"
"""Where it says who schedules and evicts."""


_NO_OBJECT = """\
a document in it is no object: it has no kind
  'kubectl get … -o yaml' and 'kubectl get … -o json' write objects"""
_WRITTEN_BY_PEOPLE = {each.kind for each in (RULES, PATCHES, CLUSTERS, PLACEMENTS)}


class SnapshotError(ValueError):
    """A file that holds no snapshot."""


def read_snapshot(data: bytes, *, now: datetime, features: Features | None = None) -> Snapshot:
    """Read a file; `now` is when it was taken, unless it says so itself."""
    return from_documents(documents_in(data), now=now, features=features)


def documents_in(data: bytes) -> list[Any]:
    """Return the documents of a file; several files are read as one by adding theirs."""
    try:
        return [value for value, _ in read_documents(data)]
    except TextError as error:
        raise SnapshotError(str(error)) from error


def from_documents(
    documents: Sequence[Any], *, now: datetime, features: Features | None = None
) -> Snapshot:
    """Return the snapshot that documents hold together."""
    found: dict[str, list[dict[str, Any]]] = {}
    for obj in objects_in(documents):
        kind = _kind_of(obj)
        if kind is not None:
            found.setdefault(kind.kind, []).append(in_hub_version(obj, kind))
    listed = _listed(documents)
    if not found and not listed:
        names = ", ".join(sorted(each.kind for each in EVERYTHING))
        raise SnapshotError(f"it has no object of a kind that counts; those are: {names}")
    gaps = (_gap(kind, listed.get(_name(kind)), kind.kind in found) for kind in EVERYTHING)
    return Snapshot(
        [Objects(kind, found[kind.kind]) for kind in EVERYTHING if kind.kind in found],
        taken=_taken(documents) or now,
        gaps=[each for each in gaps if each is not None],
        features=features,
        control_plane=_control_plane(documents),
    )


def _control_plane(documents: Sequence[Any]) -> ControlPlane | None:
    parts = (x.get(CONTROL_PLANE) for x in documents if isinstance(x, dict))
    return next(filter(None, map(ControlPlane.from_document, parts)), None)


def _gap(kind: Kind[Any], namespaces: set[str] | None, found: bool) -> Gap | None:
    """Return what is missing of a kind, given of which namespaces it was listed."""
    if namespaces is None:
        return None if found else Gap(kind, "not in the file")
    if "" in namespaces or not kind.namespaced:
        return None
    return Gap(kind, "not in the file", but=", ".join(sorted(namespaces)))


def write_snapshot(snapshot: Snapshot, *, as_json: bool, namespace: str = "") -> bytes:
    """Return a snapshot of plain objects as the text of a file; maybe of one namespace only."""
    items = [_clean(obj) for kind in EVERYTHING for obj in _sorted(snapshot, kind)]
    missing = {_name(each.kind) for each in snapshot.gaps}
    whole = {
        "apiVersion": "v1",
        "kind": "List",
        TAKEN: format_time(snapshot.taken),
        LISTED: [_name(each) for each in EVERYTHING if _name(each) not in missing],
        **({NAMESPACE: namespace} if namespace else {}),
        CONTROL_PLANE: snapshot.control_plane.to_document(),
        "items": items,
    }
    return to_json(whole) + b"\n" if as_json else _as_yaml(whole)


def _as_yaml(whole: dict[str, Any]) -> bytes:
    """Write a List as YAML, one item after the other.

    All of them at once take twice the time and five times the memory.
    """
    items = whole.pop("items")
    before = {name: each for name, each in whole.items() if name < "items"}
    after = {name: each for name, each in whole.items() if name > "items"}
    parts = [b"items:\n", *(to_yaml([each]) for each in items)] if items else [b"items: []\n"]
    return b"".join((to_yaml(before), *parts, to_yaml(after)))


def _sorted(snapshot: Snapshot, kind: Kind[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    copy = snapshot.of(kind)
    for key in sorted(copy.keys()):
        found = copy.get(key)
        if found is not None:
            yield {"apiVersion": kind.api_version, "kind": kind.kind} | found


def _clean(obj: dict[str, Any]) -> dict[str, Any]:
    """Leave out who owns which field, as kubectl does: it is most of many objects.

    Of what people write it tells who set it, and what applying another manifest would take away.
    """
    if obj["kind"] in _WRITTEN_BY_PEOPLE:
        return obj
    metadata = {name: each for name, each in obj["metadata"].items() if name != "managedFields"}
    return obj | {"metadata": metadata}


def objects_in(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects in documents, also those that stand in lists."""
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise SnapshotError(_NO_OBJECT)
        items = document.get("items")
        if isinstance(items, list) and document["kind"].endswith("List"):
            yield from _items(document, items)
        else:
            yield document


def _items(document: Mapping[str, Any], items: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of a list; those of `PodList` do not say what they are."""
    named = {"apiVersion": document.get("apiVersion"), "kind": document["kind"][: -len("List")]}
    yield from objects_in(named | each if isinstance(each, dict) else each for each in items)


def _kind_of(obj: Mapping[str, Any]) -> Kind[dict[str, Any]] | None:
    found = known_kind(obj)
    if found is None:
        return None
    metadata = obj.get("metadata")
    if not (isinstance(metadata, dict) and metadata.get("name")):
        raise SnapshotError(f"a {found.kind} in it has no metadata.name")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field) or "", str):
            raise SnapshotError(f"a {found.kind} in it: metadata.{field} is no text")
    return found


def known_kind(obj: Mapping[str, Any]) -> Kind[dict[str, Any]] | None:
    """Return what an object is; None if no question needs it."""
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    return _kinds().get((group, str(obj["kind"])))


@cache
def _kinds() -> dict[tuple[str, str], Kind[dict[str, Any]]]:
    known = {(each.group, each.kind): each for each in EVERYTHING}
    # Where ours are custom resources, patches lie in our own group.
    return {**known, (OURS, PATCHES.kind): known[PATCHES.group, PATCHES.kind]}


def in_hub_version(obj: dict[str, Any], kind: Kind[Any]) -> dict[str, Any]:
    """Return an object in the version of its kind; refuse one that nobody knows."""
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    if (group, version) == (kind.group, kind.version):
        return obj
    convert = _conversions(kind).get((group, version))
    if convert is None:
        name = obj["metadata"]["name"]
        raise SnapshotError(f"{kind.kind} {name} is of version {version}, which nobody knows here")
    return {**convert(obj), "apiVersion": kind.api_version}


@cache
def _conversions(kind: Kind[Any]) -> dict[tuple[str, str], Callable[[Any], dict[str, Any]]]:
    resource = _resources().get((kind.group, kind.plural))
    known = resource.versions if resource is not None else ()
    found = {(kind.group, each.name): each.to_hub or dict for each in known}
    elsewhere = SHAPES.get((OURS, VERSION, kind.plural))
    return found if elsewhere is None else {**found, (OURS, VERSION): elsewhere.to_hub}


@cache
def _resources() -> dict[tuple[str, str], Any]:
    from sully.api import build_scheme  # late: files usually have the newest version

    return {(each.group, each.plural): each for each in build_scheme().resources()}


def _name(kind: Kind[Any]) -> str:
    return f"{kind.plural}.{kind.group}".rstrip(".")


def _listed(documents: Iterable[Any]) -> dict[str, set[str]]:
    """Return the kinds that were listed, each with its namespaces; an empty one stands for all."""
    found: dict[str, set[str]] = {}
    for each in documents:
        names = each.get(LISTED) if isinstance(each, dict) else None
        for name in names if isinstance(names, list) else ():
            found.setdefault(str(name), set()).add(str(each.get(NAMESPACE) or ""))
    return found


def _taken(documents: Iterable[Any]) -> datetime | None:
    for document in documents:
        text = document.get(TAKEN) if isinstance(document, dict) else None
        if text:
            try:
                return parse_time(str(text))
            except TimeError as error:
                raise SnapshotError(f"{TAKEN}: {error}") from error
    return None
