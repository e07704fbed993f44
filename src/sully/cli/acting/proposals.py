"""What a plan is about: objects from files or flags, as the server would store them.

A running server is asked by a dry run, so defaults and refusals are its own. Without one, or where
the user may not write, the embedded server answers in memory.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.taking import read_bytes

if TYPE_CHECKING:
    from sully.client.transport import Key, Kind, Transport
    from sully.planning.changes import Change
    from sully.views.snapshot import Snapshot

Obj = dict[str, Any]
_FORMS = (".yaml", ".yml", ".json")
_OR = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"


def read_bodies(names: Sequence[str]) -> list[Obj]:
    """Read the objects in files, YAML or JSON; `-` is the standard input."""
    found = [obj for name in names for obj in _bodies(name)]
    if names and not found:
        raise CommandError(f"there is no object in {', '.join(names)}", code=2)
    return found


def _bodies(name: str) -> Iterator[Obj]:
    from sully.views.snapshotfile import SnapshotError, documents_in, objects_in

    if name != "-" and Path(name).is_dir():
        found = sorted(each for each in Path(name).iterdir() if each.suffix in _FORMS)
        if not found:
            raise CommandError(f"{name}: there is no file in it that ends in {_OR}", code=2)
        for each in found:
            yield from _bodies(str(each))
        return
    try:
        yield from objects_in(documents_in(read_bytes(name, code=2)))
    except SnapshotError as error:
        raise CommandError(f"{name}: {error}", code=2) from error


def kinds() -> "dict[str, Kind[Any]]":
    """Return the kinds that there are plans for, by name."""
    from sully.views.fleetkinds import CLUSTERS, PLACEMENTS
    from sully.views.kinds import PATCHES, RULES, SLICES

    return {each.kind: each for each in (RULES, PATCHES, SLICES, CLUSTERS, PLACEMENTS)}


def kind_of(body: Obj) -> "Kind[Any]":
    """Return what an object is, or refuse it."""
    known = kinds()
    name = body.get("kind", "")
    if name not in known:
        raise CommandError(f"there is no plan for a {name}; only for {', '.join(known)}", code=2)
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise CommandError(f"the {name} has no name: metadata.name", code=2)
    if not body.get("apiVersion"):
        text = f"the {name} {metadata['name']} has no apiVersion, such as {known[name].api_version}"
        raise CommandError(text, code=2)
    return known[name]


async def proposed(
    session: Session, snapshot: "Snapshot", bodies: Iterable[Obj], *, delete: bool = False
) -> "list[Change]":
    """Return the changes that objects stand for, given what there is."""
    kinds = [(kind_of(body), body) for body in bodies]
    # All at once: a glob may stand for many rules, and each asks the server.
    tries = [_change(session, snapshot, kind, body, delete=delete) for kind, body in kinds]
    return await asyncio.gather(*tries)


async def _change(
    session: Session, snapshot: "Snapshot", kind: "Kind[Any]", body: Obj, *, delete: bool
) -> "Change":
    from sully.client.objects import from_body, key_of
    from sully.planning.changes import Put, Remove

    key = key_of(_placed(session, kind, body))
    known = snapshot.get(kind, key)
    if delete:
        if known is None:
            raise CommandError(f"there is no {kind.kind} {key} to delete")
        return Remove(kind, key)
    made = await _completed(session, snapshot, kind, _in_hub_version(kind, body))
    return Put(kind, from_body(kind, made))


def _placed(session: Session, kind: "Kind[Any]", body: Obj) -> Obj:
    """Return an object with its namespace, which may be the one of the kubeconfig."""
    metadata = body["metadata"]
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = session.namespace or session.default_namespace
    return body


def _in_hub_version(kind: "Kind[Any]", body: Obj) -> Obj:
    from sully.api import build_scheme

    group, _, version = str(body.get("apiVersion", "")).rpartition("/")
    resource = build_scheme().find(kind.group, version, kind.plural)
    if resource is None or group != kind.group:
        raise CommandError(f"there is no {kind.kind} in {body.get('apiVersion')!r}", code=2)
    convert = next(each.to_hub for each in resource.versions if each.name == version)
    hub = body if convert is None else convert(body)
    return {**hub, "apiVersion": kind.api_version}


async def _completed(session: Session, snapshot: "Snapshot", kind: "Kind[Any]", body: Obj) -> Obj:
    from sully.client.objects import key_of
    from sully.machinery.errors import Forbidden, NotFound

    known = snapshot.get(kind, key_of(body))
    if session.connection is not None and not _is_local(session):
        try:
            return await _write(session.connection, kind, body, exists=known is not None)
        except (Forbidden, NotFound):
            # Who may not write may still ask what would happen.
            pass
    return await _rehearsed(snapshot, kind, body, known)


def _is_local(session: Session) -> bool:
    return getattr(session.options, "dry_run", "") == "client"


async def _write(
    transport: "Transport", kind: "Kind[Any]", body: Obj, *, exists: bool, dry: bool = True
) -> Obj:
    """Write as `kubectl apply` does: what the object says, and nothing else."""
    from sully.client.objects import key_of
    from sully.client.options import WriteOptions

    options, plain = WriteOptions(dry_run=dry), kind.read_as(dict)
    if not exists:
        return await transport.create(plain, body, "", options)
    return await transport.patch(plain, key_of(body), body, options=options)


async def _rehearsed(snapshot: "Snapshot", kind: "Kind[Any]", body: Obj, known: Any | None) -> Obj:
    """Have the embedded server complete and check an object, in memory."""
    from sully.client.objects import key_of, to_body
    from sully.machinery.errors import ApiError

    transport = _in_memory(snapshot)
    key = key_of(body)
    if kind.namespaced:
        await _make_namespace(transport, key)
    try:
        if known is not None:
            before = to_body(kind, known)
            before["metadata"].pop("resourceVersion", None)
            await transport.create(kind.read_as(dict), before)
        made = await _write(transport, kind, body, exists=known is not None, dry=False)
    except ApiError as error:
        raise CommandError(error.message) from error
    # Buckets and statuses go by the uid, so a changed rule must keep it.
    if known is not None:
        made["metadata"]["uid"] = known.metadata.uid
    return made


async def _make_namespace(transport: "Transport", key: "Key") -> None:
    from sully.client.transport import Kind

    namespaces: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
    await transport.create(namespaces, {"metadata": {"name": key.namespace}})


def _in_memory(snapshot: "Snapshot") -> "Transport":
    from random import Random

    from sully.api import build_scheme
    from sully.client.direct import DirectTransport
    from sully.machinery.gates import Gates
    from sully.runtime.ids import Ids
    from sully.server.api import Api, Chance
    from sully.server.inprocess import InProcess
    from sully.server.requests import User
    from sully.store.memory import MemoryStore
    from sully.views.snapshot import StoppedClock

    chance = Random(0)
    clock = StoppedClock(snapshot.taken)
    api = Api(
        scheme=build_scheme(),
        store=MemoryStore(),
        chance=Chance(clock, Ids(chance), chance),
        gates=Gates(),
    )
    return DirectTransport(InProcess(api, User("plan", ("system:masters",)), agent="sully-plan"))
