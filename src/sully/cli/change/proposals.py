"""What a plan is about: objects from files (manifests.py) or flags, as the server would store them.

A running server is asked by a dry run, so defaults and refusals are its own. Without one, or where
the user may not write, the embedded server answers in memory.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sully.cli.change.manifests import Manifest, kind_of
from sully.cli.client.calling import CommandError, Session
from sully.cli.client.patience import patience
from sully.cli.client.texts import printable
from sully.cli.client.words import number

if TYPE_CHECKING:
    from sully.client.transport import Key, Kind, Transport
    from sully.machinery.scheme import Scheme
    from sully.planning.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
AT_ONCE = 16
"""How many objects a server is asked about at a time."""
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp")
"""What no change of an object touches; buckets and records go by the uid."""
_EFFECTS = ("SullyPreferNoSchedule", "SullyNoExecuteWithPodDisruptionBudget")
"""Gates that a cluster may have on; who writes an effect behind one knows, and no file tells."""


async def proposed(
    session: Session, snapshot: "Snapshot", manifests: Iterable[Manifest], *, delete: bool = False
) -> "list[Change]":
    """Return the changes that objects stand for, given what there is.

    Those of files are what `kubectl apply` would make of them, and what the server does not
    know in them is refused, as kubectl does.
    """
    from sully.planning.changes import Put, Remove

    found = [(kind_of(each), each) for each in manifests]
    keys = [(kind, _key(session, kind, each.body)) for kind, each in found]
    if delete:
        for (kind, key), (_, each) in zip(keys, found, strict=True):
            if snapshot.get(kind, key) is None:
                raise CommandError(f"{each.where}there is no {kind.kind} {key} to delete")
        return [Remove(kind, key) for kind, key in keys]
    hub = [(kind, _in_hub_version(kind, each)) for kind, each in found]
    completer = _Completer(session, snapshot, manifests=any(each.file for _, each in hub))
    # A glob may stand for many rules; a server that is asked for all of them at once tires.
    many = asyncio.Semaphore(AT_ONCE)

    async def put(kind: "Kind[Any]", manifest: Manifest) -> Put:
        async with many:
            return Put(kind, await completer.complete(kind, manifest))

    asked = number(len(hub), "object")
    with patience(lambda: f"{session.command}: asking the server about {asked}"):
        return await asyncio.gather(*(put(kind, each) for kind, each in hub))


def _key(session: Session, kind: "Kind[Any]", body: Obj) -> "Key":
    """Return which object it is, after giving it a namespace; maybe the one of the kubeconfig."""
    from sully.client.objects import key_of

    metadata = body["metadata"]
    if not kind.namespaced:
        # Servers overlook one, too.
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = session.namespace or session.default_namespace
    return key_of(body)


def _in_hub_version(kind: "Kind[Any]", manifest: Manifest) -> Manifest:
    from sully.views.snapshot.file import SnapshotError, in_hub_version

    try:
        return replace(manifest, body=in_hub_version(manifest.body, kind))
    except SnapshotError as error:
        text = f"there is no {kind.kind} in {manifest.body.get('apiVersion')!r}"
        raise CommandError(f"{manifest.where}{text}", code=2) from error


@cache
def _scheme() -> "Scheme":
    from sully.api import build_scheme

    return build_scheme()


class _Completer:
    """Finds out how objects would be stored."""

    def __init__(self, session: Session, snapshot: "Snapshot", *, manifests: bool) -> None:
        local = getattr(session.options, "dry_run", "") == "client"
        self._connection = None if local else session.connection
        self._snapshot = snapshot
        self._manifests = manifests
        self._turn = asyncio.Lock()
        self._embedded: Transport | None = None
        self._known: set[tuple[Kind[Any], Key]] = set()

    async def complete(self, kind: "Kind[Any]", manifest: Manifest) -> Any:
        """Return an object as it would be stored."""
        from sully.client.objects import from_body, key_of
        from sully.machinery.errors import ApiError

        body = manifest.body
        known = self._snapshot.get(kind, key_of(body))
        try:
            return from_body(kind, await self._completed(kind, body, known))
        except ApiError as error:
            text = _complaint(kind, body, printable(error.message))
            raise CommandError(f"{manifest.where}{text}") from error

    async def _completed(self, kind: "Kind[Any]", body: Obj, known: Any | None) -> Obj:
        from sully.client.objects import to_body
        from sully.machinery.errors import Forbidden, NotFound

        live = None if known is None else to_body(kind, known)
        said = _applied(kind, body, live) if self._manifests and live is not None else body
        if self._connection is not None:
            try:
                return await self._write(self._connection, kind, said, exists=live is not None)
            except (Forbidden, NotFound):
                # Who may not write may still ask what would happen.
                pass
        async with self._turn:
            return await self._rehearse(kind, said, live)

    async def _rehearse(self, kind: "Kind[Any]", body: Obj, live: Obj | None) -> Obj:
        """Have the embedded server complete and check an object, in memory."""
        from sully.client.objects import key_of

        key = key_of(body)
        transport = self._server_for(kind, key)
        if kind.namespaced:
            await _make_namespace(transport, key)
        if live is None:
            return await self._write(transport, kind, body, exists=False, dry=False)
        await transport.create(kind.read_as(dict), _without(live, "resourceVersion"))
        # Versions and ids are those of another server; the file is of the object all the same.
        said = _without(body, "resourceVersion", "uid")
        made = await self._write(transport, kind, said, exists=True, dry=False)
        return _as_known(made, live)

    async def _write(
        self,
        transport: "Transport",
        kind: "Kind[Any]",
        body: Obj,
        *,
        exists: bool,
        dry: bool = True,
    ) -> Obj:
        """Write as `kubectl apply` does: what the object says, and nothing else."""
        from sully.client.objects import key_of
        from sully.client.options import WriteOptions

        validation = "Strict" if self._manifests else ""
        options = WriteOptions(dry_run=dry, field_validation=validation)
        plain = kind.read_as(dict)
        if not exists:
            return await transport.create(plain, body, "", options)
        return await transport.patch(plain, key_of(body), body, options=options)

    def _server_for(self, kind: "Kind[Any]", key: "Key") -> "Transport":
        """Return an embedded server that does not know the object yet: files may repeat it."""
        if self._embedded is None or (kind, key) in self._known:
            self._embedded = _embedded(self._snapshot)
            self._known.clear()
        self._known.add((kind, key))
        return self._embedded


def _as_known(made: Obj, live: Obj) -> Obj:
    """Return a changed object with all that a change leaves alone, and another server lost."""
    kept = {name: live["metadata"][name] for name in _KEPT if name in live["metadata"]}
    status = {"status": live["status"]} if "status" in live else {}
    return made | {"metadata": made["metadata"] | kept} | status


def _embedded(snapshot: "Snapshot") -> "Transport":
    from random import Random

    from sully.client.direct import DirectTransport
    from sully.machinery.gates import Gates
    from sully.runtime.ids import Ids
    from sully.server.api import Api, Env
    from sully.server.inprocess import InProcess
    from sully.server.requests import User
    from sully.store.memory import MemoryStore
    from sully.views.snapshot.snapshot import StoppedClock

    chance = Random(0)
    clock = StoppedClock(snapshot.taken)
    api = Api(
        scheme=_scheme(),
        store=MemoryStore(),
        env=Env(clock, Ids(chance), chance),
        gates=Gates(dict.fromkeys(_EFFECTS, True)),
    )
    return DirectTransport(InProcess(api, User("plan", ("system:masters",)), agent="sully-plan"))


def _applied(kind: "Kind[Any]", body: Obj, live: Obj) -> Obj:
    """Return what an apply would send, given what is there."""
    from sully.cli.change.applying import as_applied, last_applied
    from sully.views.snapshot.file import SnapshotError, in_hub_version

    before = last_applied(live)
    if before is not None:
        with suppress(SnapshotError, LookupError, TypeError):  # What cannot be read is as it is.
            before = in_hub_version(before, kind)
    return as_applied(body, live, before)


def _without(obj: Obj, *names: str) -> Obj:
    metadata = {name: each for name, each in obj["metadata"].items() if name not in names}
    return {**obj, "metadata": metadata}


def _complaint(kind: "Kind[Any]", body: Obj, message: str) -> str:
    """Say which object a server refuses, and of what is wrong in it no more than that."""
    name = f'"{body["metadata"]["name"]}"'
    _, strict, fields = message.partition("strict decoding error: ")
    if strict:
        # Of a custom resource that is patched a server shows the whole object before it.
        return f"{kind.kind} {name}: {fields}"
    return message if name in message else f"{kind.kind} {name}: {message}"


async def _make_namespace(transport: "Transport", key: "Key") -> None:
    from sully.client.transport import Kind
    from sully.machinery.errors import AlreadyExists

    namespaces: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
    with suppress(AlreadyExists):
        await transport.create(namespaces, {"metadata": {"name": key.namespace}})
