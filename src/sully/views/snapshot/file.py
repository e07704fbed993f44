"""Snapshots in files: as `kubectl get … -o yaml` or `-o json` prints them, of any cluster.

A file is a List, an object, or several of either (documents.py). Other kinds than `EVERYTHING` are
ignored. `sully snapshot` writes one List with the time at which it was taken and the kinds that
were listed, so that a kind without objects differs from one that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sully.api.sully.types import GROUP as OURS
from sully.api.sully.types import VERSION
from sully.client.discovery.conversion import CONVERTERS
from sully.client.transport import Kind
from sully.domain.capabilities.control_plane import ControlPlane
from sully.machinery.formats.timestamps import TimeError, format_time, parse_time
from sully.machinery.serialization.codec import to_json, to_yaml
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import PATCHES, RULES
from sully.views.snapshot.documents import TextError, read_documents
from sully.views.snapshot.kinds import EVERYTHING
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

TAKEN = "takenTime"
"""Field of a List that `sully snapshot` wrote: when it was taken."""
LISTED = "listedKinds"
"""The kinds of which it has all objects."""
NAMESPACE = "listedNamespace"
"""The only namespace that was listed, if not all were."""
CONTROL_PLANE = "controlPlane"
"""Which components schedule and evict."""


_NO_OBJECT = """\
a document is not an object: it has no kind
  'kubectl get … -o yaml' and 'kubectl get … -o json' write objects"""
_USER_KINDS = {kind.kind for kind in (RULES, PATCHES, CLUSTERS, PLACEMENTS)}


class SnapshotError(ValueError):
    """A file that is not a snapshot."""


def documents_in(data: bytes) -> list[Any]:
    """Return the documents of a file; several files are read as one by adding theirs."""
    try:
        return [value for value, _ in read_documents(data)]
    except TextError as error:
        raise SnapshotError(str(error)) from error


def from_documents(documents: Sequence[Any], *, now: datetime) -> Snapshot:
    """Return the snapshot of all objects in the documents."""
    objects: dict[str, list[dict[str, Any]]] = {}
    for obj in objects_in(documents):
        kind = _kind_of(obj)
        if kind is not None:
            objects.setdefault(kind.kind, []).append(in_hub_version(obj, kind))
    listed = _listed(documents)
    if not objects and not listed:
        names = ", ".join(sorted(kind.kind for kind in EVERYTHING))
        raise SnapshotError(f"no object of a supported kind (one of: {names})")
    gaps = (_gap(kind, listed.get(_name(kind)), kind.kind in objects) for kind in EVERYTHING)
    return Snapshot(
        [Objects(kind, objects[kind.kind]) for kind in EVERYTHING if kind.kind in objects],
        taken=_taken(documents) or now,
        gaps=[gap for gap in gaps if gap is not None],
        control_plane=_control_plane(documents),
    )


def _control_plane(documents: Sequence[Any]) -> ControlPlane | None:
    parts = (x.get(CONTROL_PLANE) for x in documents if isinstance(x, dict))
    return next(filter(None, map(ControlPlane.from_document, parts)), None)


def _gap(kind: Kind[Any], namespaces: set[str] | None, has_objects: bool) -> Gap | None:
    """Return what is missing of a kind that was listed in these namespaces."""
    if namespaces is None:
        return None if has_objects else Gap(kind, "not in the file")
    if "" in namespaces or not kind.namespaced:
        return None
    return Gap(kind, "not in the file", only_namespace=", ".join(sorted(namespaces)))


def write_snapshot(snapshot: Snapshot, *, as_json: bool, namespace: str = "") -> bytes:
    """Return the text of a file with a snapshot of plain objects, perhaps of one namespace."""
    items = [_clean(obj) for kind in EVERYTHING for obj in _sorted(snapshot, kind)]
    missing = {_name(gap.kind) for gap in snapshot.gaps}
    document = {
        "apiVersion": "v1",
        "kind": "List",
        TAKEN: format_time(snapshot.taken),
        LISTED: [_name(kind) for kind in EVERYTHING if _name(kind) not in missing],
        **({NAMESPACE: namespace} if namespace else {}),
        CONTROL_PLANE: snapshot.control_plane.to_document(),
        "items": items,
    }
    return to_json(document) + b"\n" if as_json else _to_yaml(document)


def _to_yaml(document: dict[str, Any]) -> bytes:
    """Return a List as YAML, one item after the other.

    All of them together take twice the time and five times the memory.
    """
    items = document.pop("items")
    before = {name: value for name, value in document.items() if name < "items"}
    after = {name: value for name, value in document.items() if name > "items"}
    parts = [b"items:\n", *(to_yaml([item]) for item in items)] if items else [b"items: []\n"]
    return b"".join((to_yaml(before), *parts, to_yaml(after)))


def _sorted(snapshot: Snapshot, kind: Kind[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    cache = snapshot.of(kind)
    for key in sorted(cache.keys()):
        obj = cache.get(key)
        if obj is not None:
            yield {"apiVersion": kind.api_version, "kind": kind.kind} | obj


def _clean(obj: dict[str, Any]) -> dict[str, Any]:
    """Remove managedFields, as kubectl does: they are most of many objects.

    For kinds that users write they show who set a field, and what another apply would remove.
    """
    if obj["kind"] in _USER_KINDS:
        return obj
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return obj | {"metadata": metadata}


def objects_in(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects in documents, and those in lists."""
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
    """Yield the items of a list; those of `PodList` have no kind."""
    named = {"apiVersion": document.get("apiVersion"), "kind": document["kind"][: -len("List")]}
    yield from objects_in(named | item if isinstance(item, dict) else item for item in items)


def _kind_of(obj: Mapping[str, Any]) -> Kind[dict[str, Any]] | None:
    kind = known_kind(obj)
    if kind is None:
        return None
    metadata = obj.get("metadata")
    if not (isinstance(metadata, dict) and metadata.get("name")):
        raise SnapshotError(f"{kind.kind}: metadata.name is required")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field) or "", str):
            raise SnapshotError(f"{kind.kind}: metadata.{field} must be a string")
    return kind


def known_kind(obj: Mapping[str, Any]) -> Kind[dict[str, Any]] | None:
    """Return the kind of an object; None if snapshots do not have it."""
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    return _kinds().get((group, str(obj["kind"])))


@cache
def _kinds() -> dict[tuple[str, str], Kind[dict[str, Any]]]:
    kinds = {(kind.group, kind.kind): kind for kind in EVERYTHING}
    # Where our kinds are custom resources, patches are in our own group.
    return {**kinds, (OURS, PATCHES.kind): kinds[PATCHES.group, PATCHES.kind]}


def in_hub_version(obj: dict[str, Any], kind: Kind[Any]) -> dict[str, Any]:
    """Return an object in the version of its kind; raise SnapshotError for an unknown version."""
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    if (group, version) == (kind.group, kind.version):
        return obj
    convert = _conversions(kind).get((group, version))
    if convert is None:
        name = obj["metadata"]["name"]
        raise SnapshotError(f"{kind.kind} {name}: unknown version {version!r}")
    return {**convert(obj), "apiVersion": kind.api_version}


@cache
def _conversions(kind: Kind[Any]) -> dict[tuple[str, str], Callable[[Any], dict[str, Any]]]:
    resource = _resources().get((kind.group, kind.plural))
    versions = resource.versions if resource is not None else ()
    conversions = {(kind.group, version.name): version.to_stored or dict for version in versions}
    custom = CONVERTERS.get((OURS, VERSION, kind.plural))
    return conversions if custom is None else {**conversions, (OURS, VERSION): custom.to_ours}


@cache
def _resources() -> dict[tuple[str, str], Any]:
    from sully.api import build_scheme  # late: files usually have the newest version

    return {(resource.group, resource.plural): resource for resource in build_scheme().resources()}


def _name(kind: Kind[Any]) -> str:
    return f"{kind.plural}.{kind.group}".rstrip(".")


def _listed(documents: Iterable[Any]) -> dict[str, set[str]]:
    """Return the namespaces in which each kind was listed; the empty one stands for all."""
    listed: dict[str, set[str]] = {}
    for document in documents:
        names = document.get(LISTED) if isinstance(document, dict) else None
        for name in names if isinstance(names, list) else ():
            listed.setdefault(str(name), set()).add(str(document.get(NAMESPACE) or ""))
    return listed


def _taken(documents: Iterable[Any]) -> datetime | None:
    for document in documents:
        text = document.get(TAKEN) if isinstance(document, dict) else None
        if text:
            try:
                return parse_time(str(text))
            except TimeError as error:
                raise SnapshotError(f"{TAKEN}: {error}") from error
    return None
