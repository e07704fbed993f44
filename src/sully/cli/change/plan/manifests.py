"""The objects of `sully plan -f`: from files and directories, as kubectl reads them."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sully.cli.client.session import Session
from sully.cli.client.snapshots import read_bytes
from sully.cli.command import CommandError
from sully.views.kinds import CLAIMS, DEVICE_POLICIES, MAINTENANCES
from sully.views.snapshot.kinds import PODS, TEMPLATES, WORKLOADS

if TYPE_CHECKING:
    from sully.client.transport import Kind

Obj = dict[str, Any]
_SUFFIXES = (".yaml", ".yml", ".json")
_SUFFIX_LIST = f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
_URLS = ("http://", "https://")
_INSTEAD = {
    "Node": "use 'kubectl drain', or for its devices: sully plan device '*/NODE/*' TAINT",
    "Kustomization": "build it first: kubectl kustomize DIR | sully plan -f -",
}
"""What to use for kinds without plans."""


class Manifest(msgspec.Struct, frozen=True):
    """An object, and the file that has it."""

    body: Obj
    file: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}: " if self.file else ""


def read_manifests(session: Session) -> list[Manifest]:
    """Read the objects of -f, YAML or JSON; `-` is standard input."""
    names = session.options.filename
    if "-" in names and "-" in (getattr(session.options, "snapshot", None) or ()):
        raise CommandError("only one of -f and --snapshot can read standard input", code=2)
    files = files_named(session)
    manifests = [Manifest(body, name) for name in files for body in _bodies(session, name)]
    if names and not manifests:
        raise CommandError(f"no objects found in {', '.join(names)}", code=2)
    return manifests


def files_named(session: Session) -> list[str]:
    """Return the files of -f, those in directories included."""
    options = session.options
    return [file for name in options.filename for file in _files(name, deep=options.recursive)]


def _files(name: str, *, deep: bool) -> Iterable[str]:
    if name.startswith(_URLS):
        text = f"{name}: URLs are not supported\n  curl -sSfL '{name}' | sully plan -f -"
        raise CommandError(text, code=2)
    if name == "-" or not Path(name).is_dir():
        return (name,)
    files = sorted(file for file in _inside(name, deep=deep) if file.endswith(_SUFFIXES))
    if not files:
        deeper = "" if deep else "; use -R to read subdirectories"
        raise CommandError(f"{name}: no {_SUFFIX_LIST} files found{deeper}", code=2)
    return files


def _inside(name: str, *, deep: bool) -> Iterator[str]:
    try:
        for folder, _, files in os.walk(name, onerror=_refuse):
            yield from (os.path.join(folder, file) for file in files)
            if not deep:
                return
    except OSError as error:
        raise CommandError(f"{error.filename}: {str(error.strerror).lower()}", code=2) from error


def _refuse(error: OSError) -> None:
    # A plan for half of the objects would be another plan.
    raise error


def _bodies(session: Session, name: str) -> Iterator[Obj]:
    from sully.views.snapshot.documents import TextError, read_documents
    from sully.views.snapshot.file import SnapshotError, objects_in

    try:
        for document, repeated in read_documents(read_bytes(session, name, code=2)):
            if repeated:
                raise CommandError(f"{name}: {', '.join(repeated)}", code=2)
            yield from objects_in((document,))
    except (SnapshotError, TextError) as error:
        raise CommandError(f"{name}: {error}", code=2) from error


def kinds() -> "dict[str, Kind[Any]]":
    """Return the kinds that there are plans for, by name."""
    from sully.planning.dryrun.changes import DEVICE_KINDS, PLACEMENT_KINDS

    own = (DEVICE_POLICIES, MAINTENANCES)
    others = {kind.kind: kind for kind in (*DEVICE_KINDS, *PLACEMENT_KINDS, *own)}
    return others | workload_kinds()


def workload_kinds() -> "dict[str, Kind[Any]]":
    """Return workloads, and what they claim devices with."""

    known: tuple[Kind[Any], ...] = (PODS, *WORKLOADS, CLAIMS, TEMPLATES)
    return {kind.kind: kind for kind in known}


def are_only(manifests: Iterable[Manifest], kinds: Collection[str], noun: str) -> bool:
    """Report whether objects are of kinds with plans of their own; refuse others among them."""
    names = {kind_of(manifest).kind for manifest in manifests}
    if names.isdisjoint(kinds):
        return False
    if others := sorted(names.difference(kinds)):
        raise CommandError(
            f"{noun} cannot be planned together with {', '.join(others)}; make two plans", code=2
        )
    return True


def kind_of(manifest: Manifest) -> "Kind[Any]":
    known, body, where = kinds(), manifest.body, manifest.where
    name = body.get("kind", "")
    if name not in known:
        text = f'{where}plans do not support kind "{name}" (one of: {", ".join(known)})'
        raise CommandError(f"{text}{_instead(name)}", code=2)
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise CommandError(f"{where}{name}: metadata.name is required", code=2)
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field) or "", str):
            text = f"{where}{name}: metadata.{field} must be a string, not {metadata[field]}"
            raise CommandError(text, code=2)
    if not body.get("apiVersion"):
        text = f"apiVersion is required, for example {known[name].api_version}"
        raise CommandError(f"{where}{name} {metadata['name']}: {text}", code=2)
    return known[name]


def _instead(kind: str) -> str:
    return f"\n  {_INSTEAD[kind]}" if kind in _INSTEAD else ""
