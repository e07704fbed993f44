"""Returns objects as they would be stored: with defaults, and validated.

A dry run on the server uses its own defaults and errors. Without a server, or where the user may
not write, the same code runs here on an empty store in memory (local_server.py). Most plans do not
need it, so it is imported when it is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from sully.client.objects import from_body, key_of, to_body
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.domain.planning.workload_pods import unused_name
from sully.machinery.errors import AlreadyExists, Forbidden, NotFound
from sully.planning.dryrun.apply import apply_patch, last_applied
from sully.views.kinds import CONSUMER_PODS
from sully.views.snapshot.file import SnapshotError, in_hub_version
from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
_ACCOUNTS: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
_IMMUTABLE = ("uid", "creationTimestamp", "deletionTimestamp")
"""Metadata that no update changes."""
_RECREATED = (CONSUMER_PODS.plural, "jobs")
"""What is deleted and created again, because most of its spec cannot be updated."""


class DryRun:
    """Returns objects as they would be stored, given those of a snapshot."""

    def __init__(
        self, snapshot: Snapshot, transport: Transport | None = None, *, apply: bool = False
    ) -> None:
        """With `apply`, write as `kubectl apply` does: strictly, and deleting what is left out."""
        self._snapshot = snapshot
        self._transport = transport
        self._apply = apply
        self._lock = asyncio.Lock()
        self._local: Transport | None = None
        self._written: set[tuple[Kind[Any], Key]] = set()

    async def stored(self, kind: Kind[Any], body: Obj) -> Any:
        """Return an object as it would be stored; raise `ApiError` if it would be refused."""
        existing = self._snapshot.get(kind, key_of(body))
        if existing is not None and kind.plural in _RECREATED:
            return from_body(kind, await self._recreated(kind, body))
        live = None if existing is None else to_body(kind, existing)
        if self._apply and live is not None:
            body = _apply_patch(kind, body, live)
        return from_body(kind, await self._stored(kind, body, live))

    async def _recreated(self, kind: Kind[Any], body: Obj) -> Obj:
        """Return an object that replaces the one of its name."""
        name = body["metadata"]["name"]
        return _named(await self._stored(kind, _named(body, unused_name(name)), None), name)

    async def _stored(self, kind: Kind[Any], body: Obj, live: Obj | None) -> Obj:
        if self._transport is not None:
            # Users without write access can still plan. An object that was created after the
            # snapshot was taken is no part of the plan: the write finds it.
            with suppress(Forbidden, NotFound, AlreadyExists):
                return await self._write(self._transport, kind, body, exists=live is not None)
        async with self._lock:
            return await self._stored_locally(kind, body, live)

    async def _stored_locally(self, kind: Kind[Any], body: Obj, live: Obj | None) -> Obj:
        from sully.planning.dryrun.local_server import is_known

        if not is_known(kind):
            # A kind of another server: what it would change is not known here.
            return body
        key = key_of(body)
        transport = self._server_for(kind, key)
        if kind.namespaced:
            with suppress(AlreadyExists):
                await transport.create(_NAMESPACES, {"metadata": {"name": key.namespace}})
        if kind.plural == CONSUMER_PODS.plural:
            with suppress(AlreadyExists):
                metadata = {"name": "default", "namespace": key.namespace}
                await transport.create(_ACCOUNTS, {"metadata": metadata})
            body = _without_references(body)
        if live is None:
            return await self._write(transport, kind, body, exists=False, dry=False)
        await transport.create(kind.read_as(dict), _without(live, "resourceVersion"))
        # Versions and uids are those of another server.
        change = _without(body, "resourceVersion", "uid")
        updated = await self._write(transport, kind, change, exists=True, dry=False)
        return _with_immutable_fields(updated, live)

    async def _write(
        self, transport: Transport, kind: Kind[Any], body: Obj, *, exists: bool, dry: bool = True
    ) -> Obj:
        validation = "Strict" if self._apply else ""
        options = WriteOptions(dry_run=dry, field_validation=validation)
        plain = kind.read_as(dict)
        if not exists:
            return await transport.create(plain, body, "", options)
        return await transport.patch(plain, key_of(body), body, options=options)

    def _server_for(self, kind: Kind[Any], key: Key) -> Transport:
        """Return a server that does not have the object: files may repeat it."""
        from sully.planning.dryrun.local_server import local_server

        if self._local is None or (kind, key) in self._written:
            self._local = local_server(self._snapshot.taken)
            self._written.clear()
        self._written.add((kind, key))
        return self._local


def _apply_patch(kind: Kind[Any], body: Obj, live: Obj) -> Obj:
    """Return what `kubectl apply` would send for the live object."""
    before = last_applied(live)
    if before is not None:
        # If it cannot be converted, it is compared as it is.
        with suppress(SnapshotError, LookupError, TypeError):
            before = in_hub_version(before, kind)
    return apply_patch(body, live, before)


def _with_immutable_fields(updated: Obj, live: Obj) -> Obj:
    """Return an updated object with the metadata and status of the live one."""
    immutable = {name: live["metadata"][name] for name in _IMMUTABLE if name in live["metadata"]}
    status = {"status": live["status"]} if "status" in live else {}
    return updated | {"metadata": updated["metadata"] | immutable} | status


def _without_references(pod: Obj) -> Obj:
    """Return a pod without the names of objects that are not known here."""
    unknown = ("serviceAccountName", "serviceAccount", "priorityClassName")
    spec = {name: value for name, value in pod["spec"].items() if name not in unknown}
    return {**pod, "spec": spec}


def _named(obj: Obj, name: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "name": name}}


def _without(obj: Obj, *names: str) -> Obj:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in names}
    return {**obj, "metadata": metadata}
