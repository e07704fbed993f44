"""What a plan is about: objects from files or flags, as the server would store them.

A running server is asked by a dry run, so defaults and refusals are its own. Without one, or where
the user may not write, the embedded server answers in memory.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.patience import patience
from sully.cli.client.taking import read_bytes
from sully.cli.client.words import number

if TYPE_CHECKING:
    from sully.client.transport import Key, Kind, Transport
    from sully.machinery.scheme import Scheme
    from sully.planning.changes import Change
    from sully.views.snapshot import Snapshot

Obj = dict[str, Any]
AT_ONCE = 16
"""How many objects a server is asked about at a time."""
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
    from sully.planning.changes import Put, Remove

    found = [(kind_of(body), body) for body in bodies]
    keys = [(kind, _key(session, kind, body)) for kind, body in found]
    if delete:
        for kind, key in keys:
            if snapshot.get(kind, key) is None:
                raise CommandError(f"there is no {kind.kind} {key} to delete")
        return [Remove(kind, key) for kind, key in keys]
    hub = [(kind, _in_hub_version(kind, body)) for kind, body in found]
    completer = _Completer(session, snapshot)
    # A glob may stand for many rules; a server that is asked for all of them at once tires.
    many = asyncio.Semaphore(AT_ONCE)

    async def put(kind: "Kind[Any]", body: Obj) -> Put:
        async with many:
            return Put(kind, await completer.complete(kind, body))

    asked = number(len(hub), "object")
    with patience(lambda: f"{session.command}: asking the server about {asked}"):
        return await asyncio.gather(*(put(kind, body) for kind, body in hub))


def _key(session: Session, kind: "Kind[Any]", body: Obj) -> "Key":
    """Return which object it is, after giving it a namespace; maybe the one of the kubeconfig."""
    from sully.client.objects import key_of

    metadata = body["metadata"]
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = session.namespace or session.default_namespace
    return key_of(body)


def _in_hub_version(kind: "Kind[Any]", body: Obj) -> Obj:
    if body.get("apiVersion") == kind.api_version:
        return body
    group, _, version = str(body.get("apiVersion", "")).rpartition("/")
    resource = _scheme().find(kind.group, version, kind.plural)
    if resource is None or group != kind.group:
        raise CommandError(f"there is no {kind.kind} in {body.get('apiVersion')!r}", code=2)
    convert = next(each.to_hub for each in resource.versions if each.name == version)
    hub = body if convert is None else convert(body)
    return {**hub, "apiVersion": kind.api_version}


@cache
def _scheme() -> "Scheme":
    from sully.api import build_scheme

    return build_scheme()


class _Completer:
    """Finds out how objects would be stored."""

    def __init__(self, session: Session, snapshot: "Snapshot") -> None:
        local = getattr(session.options, "dry_run", "") == "client"
        self._connection = None if local else session.connection
        self._snapshot = snapshot
        self._turn = asyncio.Lock()
        self._embedded: Transport | None = None
        self._known: set[tuple[Kind[Any], Key]] = set()

    async def complete(self, kind: "Kind[Any]", body: Obj) -> Any:
        """Return an object as it would be stored."""
        from sully.client.objects import from_body, key_of
        from sully.machinery.errors import Forbidden, NotFound

        known = self._snapshot.get(kind, key_of(body))
        if self._connection is not None:
            try:
                made = await _write(self._connection, kind, body, exists=known is not None)
                return from_body(kind, made)
            except (Forbidden, NotFound):
                # Who may not write may still ask what would happen.
                pass
        async with self._turn:
            return from_body(kind, await self._rehearse(kind, body, known))

    async def _rehearse(self, kind: "Kind[Any]", body: Obj, known: Any | None) -> Obj:
        """Have the embedded server complete and check an object, in memory."""
        from sully.client.objects import key_of, to_body
        from sully.machinery.errors import ApiError

        key = key_of(body)
        transport = self._server_for(kind, key)
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

    def _server_for(self, kind: "Kind[Any]", key: "Key") -> "Transport":
        """Return an embedded server that does not know the object yet: files may repeat it."""
        if self._embedded is None or (kind, key) in self._known:
            self._embedded = _embedded(self._snapshot)
            self._known.clear()
        self._known.add((kind, key))
        return self._embedded


def _embedded(snapshot: "Snapshot") -> "Transport":
    from random import Random

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
        scheme=_scheme(),
        store=MemoryStore(),
        chance=Chance(clock, Ids(chance), chance),
        gates=Gates(),
    )
    return DirectTransport(InProcess(api, User("plan", ("system:masters",)), agent="sully-plan"))


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


async def _make_namespace(transport: "Transport", key: "Key") -> None:
    from sully.client.transport import Kind
    from sully.machinery.errors import AlreadyExists

    namespaces: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
    with suppress(AlreadyExists):
        await transport.create(namespaces, {"metadata": {"name": key.namespace}})
