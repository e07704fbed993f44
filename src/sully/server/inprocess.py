"""The API for callers in the same process: the same verbs and checks, no socket.

`InProcess` is one caller's identity. It satisfies what `client/direct.py` expects without either
package importing the other; app.py brings them together.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Protocol

from sully.machinery.errors import ApiError, Forbidden, method_not_allowed, route_not_found
from sully.machinery.strategy import Obj
from sully.server.api import Api
from sully.server.audit.log import AuditSink, DelayedEntries, RequestAudit
from sully.server.authorization.attributes import on_target
from sully.server.authorization.enforce import require
from sully.server.http.lists import list_metadata
from sully.server.negotiation import list_kind
from sully.server.registry.bodies.body import Body
from sully.server.registry.writes import Result
from sully.server.requests import Request, Target, User, has_subresource
from sully.server.storage.objects import Objects, typed
from sully.server.storage.reads import Listing
from sully.server.storage.watching import WatchChange, bookmark
from sully.store.base import Record

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_READS = frozenset(("get", "list"))
_RIGHTS = {"apply": "patch"}  # verbs that authorization names differently


class ResourceNames(Protocol):
    """A resource, object or subresource by its names."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def subresource(self) -> str: ...


class PlannedWrite(Protocol):
    """A write as it would be sent alone."""

    @property
    def verb(self) -> str: ...
    @property
    def ref(self) -> ResourceNames: ...
    @property
    def body(self) -> Any: ...
    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def patch_type(self) -> str: ...


class Reply(ABC):
    """An object as the caller's version shows it. Shared: never modify it."""

    __slots__ = ("items", "memo")

    def __init__(self, memo: dict[Hashable, Any], items: Sequence["Reply"] = ()) -> None:
        self.memo = memo
        """What readers derived from the object."""
        self.items = items
        """The objects of a list."""

    @property
    @abstractmethod
    def obj(self) -> Obj:
        """Return the object with its kind and apiVersion; a list without its items."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name of the object."""

    @property
    @abstractmethod
    def document(self) -> bytes | None:
        """Return the object as JSON, or None if `obj` costs less."""


class _Made(Reply):
    """An object that was made for this reply."""

    __slots__ = ("_obj",)

    def __init__(self, obj: Obj, items: Sequence[Reply] = ()) -> None:
        super().__init__({}, items)
        self._obj = obj

    @property
    def obj(self) -> Obj:
        return self._obj

    @property
    def name(self) -> str:
        name: str = self._obj.get("metadata", {}).get("name", "")
        return name

    @property
    def document(self) -> None:
        return None


class _Stored(Reply):
    """An object of the store, decoded on first use."""

    __slots__ = ("_objects", "_record", "_target")

    def __init__(self, record: Record, target: Target, objects: Objects) -> None:
        super().__init__(record.derived)
        self._record = record
        self._target = target
        self._objects = objects

    @property
    def obj(self) -> Obj:
        resource, version = self._target.resource, self._target.version
        memo = ("view", resource.group, version)
        obj: Obj | None = self.memo.get(memo)
        if obj is None:
            view = self._objects.view(self._record, resource, version)
            obj = self.memo[memo] = typed(view, self._target)
        return obj

    @property
    def name(self) -> str:
        return self._record.key.name

    @property
    def document(self) -> bytes | None:
        return self._objects.undecoded(self._record, self._target)


class InProcess:
    """One user's direct access to an Api."""

    def __init__(self, api: Api, user: User, *, agent: str = "sully") -> None:
        self._api = api
        self._user = user
        self._agent = agent

    async def call(
        self,
        verb: str,
        ref: ResourceNames,
        *,
        body: Any = None,
        options: Mapping[str, str] = NO_OPTIONS,
        patch_type: str = "",
    ) -> Reply:
        """Run one verb and return its result."""
        request = self._request(ref, options)
        right = _RIGHTS.get(verb, verb)
        if verb in _READS or self._api.audit is None:
            self._require_read(right, request)
            return await self._run(verb, request, body, patch_type)
        with self._audited(self._api.audit, request, right) as entry:
            self._require(right, request)
            entry.allowed = True
            reply = await self._run(verb, request, body, patch_type)
            entry.code = 201 if verb == "create" else 200
            entry.name = reply.name
        return reply

    def _audited(self, log: AuditSink, request: Request, verb: str) -> RequestAudit:
        return RequestAudit(log, self._api.clock, self._api.writer.ids, request, verb)

    async def _run(self, verb: str, request: Request, body: Any, patch_type: str) -> Reply:
        if self._api.connects(request):
            return await self._connect(verb, request, body, patch_type)
        match verb:
            case "get":
                return self._record(await self._api.get(request), request.target)
            case "list":
                return self._listing(await self._api.list(request), request.target)
            case "create":
                result = await self._api.create(request, Body(body))
            case "update":
                result = await self._api.update(request, Body(body))
            case "patch":
                result = await self._api.patch(request, patch_type, Body(body))
            case "apply":
                media = patch_type or "application/apply-patch+yaml"
                result = await self._api.patch(request, media, Body(body))
            case "delete":
                result = await self._api.delete(request, body)
            case "deletecollection":
                return self._listing(
                    await self._api.delete_collection(request, body), request.target
                )
            case _:
                raise method_not_allowed()
        return self._result(result, request.target)

    async def commit(self, writes: Sequence[PlannedWrite]) -> None:
        """Run several writes in order, and commit them together.

        Each is authorized, admitted, validated and audited as if it were alone, and sees what those
        before it have changed. Raises the error of the first that is rejected; then none of them
        has an effect.
        """
        audit = self._api.audit
        entries = DelayedEntries(audit) if audit is not None else None
        with self._api.staged() as (api, staged):
            api.audit = entries
            await self._stage(api, writes, entries)
            try:
                await staged.commit_staged()
            except ApiError as error:
                if entries is not None:
                    entries.failed(error)
                raise
        if entries is not None:
            entries.committed()

    async def _stage(
        self, api: Api, writes: Sequence[PlannedWrite], entries: DelayedEntries | None
    ) -> None:
        caller = InProcess(api, self._user, agent=self._agent)
        try:
            for write in writes:
                await caller.call(
                    write.verb,
                    write.ref,
                    body=write.body,
                    options=write.options,
                    patch_type=write.patch_type,
                )
        except ApiError:
            if entries is not None:
                entries.rejected()
            raise

    async def watch(
        self,
        ref: ResourceNames,
        *,
        options: Mapping[str, str] = NO_OPTIONS,
    ) -> AsyncIterator[Sequence[tuple[str, Reply]]]:
        """Watch, in batches of events."""
        request = self._request(ref, options)
        self._require_read("watch", request)
        async with aclosing(await self._api.watch(request)) as batches:
            async for batch in batches:
                yield [self._event(change, request.target) for change in batch]

    async def _connect(self, verb: str, request: Request, body: Any, patch_type: str) -> Reply:
        method = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH"}.get(verb)
        if method is None:
            raise method_not_allowed()
        reply = await self._api.connector.call(request, method, patch_type, Body(body))
        return _Made(reply.obj)

    def _require_read(self, verb: str, request: Request) -> None:
        """Authorize a read; only rejections are audited."""
        try:
            self._require(verb, request)
        except Forbidden:
            if self._api.audit is None:
                raise
            with self._audited(self._api.audit, request, verb):
                raise

    def _require(self, verb: str, request: Request) -> None:
        attributes = on_target(verb, request.target, request.options)
        require(self._api.authorizer, self._user, attributes)

    def _request(self, ref: ResourceNames, options: Mapping[str, str]) -> Request:
        resource = self._api.scheme.find(ref.group, ref.version, ref.plural)
        if resource is None:
            raise route_not_found()
        if ref.subresource and not has_subresource(resource, ref.subresource, ref.version):
            raise route_not_found()
        target = Target(resource, ref.version, ref.namespace, ref.name, ref.subresource)
        return Request(self._user, target, options, self._agent)

    def _record(self, record: Record, target: Target) -> Reply:
        return _Stored(record, target, self._api.objects)

    def _result(self, result: Result, target: Target) -> Reply:
        if result.record is not None:
            return self._record(result.record, target)
        view = self._api.objects.convert(result.obj, target.resource, target.version)
        return _Made(typed(view, target))

    def _listing(self, listing: Listing, target: Target) -> Reply:
        head = {
            "kind": list_kind(target),
            "apiVersion": target.group_version,
            "metadata": list_metadata(listing),
        }
        return _Made(head, [self._record(record, target) for record in listing.records])

    def _event(self, change: WatchChange, target: Target) -> tuple[str, Reply]:
        record = change.record
        if record is None:
            return "BOOKMARK", _Made(bookmark(change, self._api.objects.empty(target)))
        if change.revision == record.revision:
            return change.type, self._record(record, target)
        stored = self._api.objects.stamped(self._api.objects.bare(record), change.revision)
        view = self._api.objects.convert(stored, target.resource, target.version)
        return change.type, _Made(typed(view, target))
