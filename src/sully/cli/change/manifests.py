"""The objects that `sully plan -f` tries: from files and folders, as kubectl takes them.

What they would become is in proposals.py.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.taking import read_bytes

if TYPE_CHECKING:
    from sully.client.transport import Kind

Obj = dict[str, Any]
_FORMS = (".yaml", ".yml", ".json")
_OR = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"
_URLS = ("http://", "https://")
_INSTEAD = {
    "Pod": "'sully explain pod NAME' says where it could run, and what is in the way",
    "ResourceClaim": "'sully explain claim NAME' says what it gets, and what is in the way",
    "Node": "'kubectl drain' empties it; for its devices: sully plan device '*/NODE/*' TAINT",
    "Kustomization": "kubectl puts it together: kubectl kustomize DIR | sully plan -f -",
}
"""What to do about kinds that people try without success."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object, and the file that has it."""

    body: Obj
    file: str = ""

    @property
    def where(self) -> str:
        """Return the file, to be put before what is wrong with the object."""
        return f"{self.file}: " if self.file else ""


def read_manifests(session: Session) -> list[Manifest]:
    """Read the objects in the files that were named, YAML or JSON; `-` is the standard input."""
    names = session.options.filename
    if "-" in names and "-" in (getattr(session.options, "snapshot", None) or ()):
        raise CommandError("only one of -f and --snapshot can read the standard input", code=2)
    files = files_named(session)
    found = [Manifest(body, name) for name in files for body in _bodies(session, name)]
    if names and not found:
        raise CommandError(f"there is no object in {', '.join(names)}", code=2)
    return found


def files_named(session: Session) -> list[str]:
    """Return the files that were named, those of folders too."""
    options = session.options
    return [each for name in options.filename for each in _files(name, deep=options.recursive)]


def _files(name: str, *, deep: bool) -> Iterable[str]:
    """Return the files that a name stands for."""
    if name.startswith(_URLS):
        text = f"{name}: nothing is fetched\n  curl -sSfL '{name}' | sully plan -f -"
        raise CommandError(text, code=2)
    if name == "-" or not Path(name).is_dir():
        return (name,)
    found = sorted(each for each in _inside(name, deep=deep) if each.endswith(_FORMS))
    if not found:
        deeper = "" if deep else "; -R also looks into the folders in it"
        raise CommandError(f"{name}: there is no file in it that ends in {_OR}{deeper}", code=2)
    return found


def _inside(name: str, *, deep: bool) -> Iterator[str]:
    try:
        for folder, _, files in os.walk(name, onerror=_refuse):
            yield from (os.path.join(folder, each) for each in files)
            if not deep:
                return
    except OSError as error:
        raise CommandError(f"{error.filename}: {str(error.strerror).lower()}", code=2) from error


def _refuse(error: OSError) -> None:
    # Half of the objects would be another plan.
    raise error


def _bodies(session: Session, name: str) -> Iterator[Obj]:
    from sully.views.snapshot.documents import TextError, read_documents
    from sully.views.snapshot.file import SnapshotError, objects_in

    try:
        for document, repeated in read_documents(read_bytes(session, name, code=2)):
            if repeated:
                text = f"{name}: {', '.join(repeated)} stands in it more than once"
                raise CommandError(text, code=2)
            yield from objects_in((document,))
    except (SnapshotError, TextError) as error:
        raise CommandError(f"{name}: {error}", code=2) from error


def kinds() -> "dict[str, Kind[Any]]":
    """Return the kinds that there are plans for, by name."""
    from sully.planning.changes import ABOUT_DEVICES, ABOUT_FLEET

    return {each.kind: each for each in (*ABOUT_DEVICES, *ABOUT_FLEET)}


def kind_of(manifest: Manifest) -> "Kind[Any]":
    """Return what an object is, or refuse it."""
    known, body, where = kinds(), manifest.body, manifest.where
    name = body.get("kind", "")
    if name not in known:
        text = f"{where}there is no plan for a {name}; only for {', '.join(known)}"
        raise CommandError(f"{text}{_instead(name)}", code=2)
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise CommandError(f"{where}the {name} has no name: metadata.name", code=2)
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field) or "", str):
            text = f"{where}the {name}: metadata.{field} {metadata[field]} is no text"
            raise CommandError(text, code=2)
    if not body.get("apiVersion"):
        text = f"the {name} {metadata['name']} has no apiVersion, such as {known[name].api_version}"
        raise CommandError(f"{where}{text}", code=2)
    return known[name]


def _instead(kind: str) -> str:
    return f"\n  {_INSTEAD[kind]}" if kind in _INSTEAD else ""
