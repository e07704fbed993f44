"""The steps of a write: decode → default → admit → prepare → validate → review → commit.

`ObjectWriter` has what all writes share; creates.py, updates.py, patches.py and deletes.py run the
steps. What differs between kinds is in their Strategy.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from typing import Any, Protocol, TypeVar

import msgspec

from sully.machinery.compat import Compat
from sully.machinery.declared import in_order
from sully.machinery.errors import (
    InternalError,
    RequestEntityTooLarge,
    ServiceUnavailable,
    Timeout,
    invalid,
    not_found,
)
from sully.machinery.fields import FieldError, value_at_path
from sully.machinery.formats.timestamps import format_time
from sully.machinery.gates import Gates
from sully.machinery.patch.ownership import managed
from sully.machinery.patch.ownership.fieldset import FieldSet
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.codec import to_json
from sully.machinery.serialization.decode import decode
from sully.machinery.serialization.empties import with_empties, write_nulls
from sully.machinery.strategy import DeferredWorkError, Obj, Strategy, WriteContext
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.runtime.log import Tally, get_logger
from sully.server.admission.plugins import (
    AdmissionAttributes,
    AdmissionChain,
    PolicyReviewer,
    Recorder,
)
from sully.server.admission.priority import DefaultPriorityClass
from sully.server.admission.quota import QuotaAdmission
from sully.server.admission.rule_notices import RuleNotices
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.registry.bodies.body import check_values
from sully.server.requests import Request, Target
from sully.server.storage.newest import NewestObjects
from sully.server.storage.objects import Objects
from sully.store.base import Check, Commit, Op, Put, Record, RecordPage, Store, StoreKey
from sully.store.errors import (
    ConflictError,
    StoreError,
    TooLargeError,
    UnavailableError,
    UncertainError,
)

T = TypeVar("T")
_log = get_logger("server")
MAX_FIELD_ERRORS = 1000
"""Field errors per object. A body of 3 MiB can have half a million, of a KiB each."""


def _is_declarative(target: Target) -> bool:
    """Report whether a kind has declarative validation, and so reports the same error once.

    All kinds of Kubernetes have it but definitions and the resources that they define.
    """
    version = target.resource.storage_version
    is_custom = version.structural or version.custom is not None
    return not is_custom and target.resource.group != "apiextensions.k8s.io"


class Result(msgspec.Struct):
    """What a write did: the object in the storage version, and warnings for the client."""

    obj: Obj
    record: Record | None = None  # None: dry run, or deleted
    created: bool = False
    deleted: bool = False  # the write deleted the object
    accepted: bool = False  # a deletion of it and its dependents has only started
    warnings: list[str] = msgspec.field(default_factory=list)


class WritableStore(Protocol):
    """What writes need of a store."""

    @property
    def shared(self) -> bool: ...
    def newest(self, key: StoreKey) -> Record | None: ...
    async def catch_up(self) -> None: ...
    async def list(self, resource: str, namespace: str | None = None) -> RecordPage: ...
    async def commit(self, ops: Sequence[Op]) -> Commit: ...


class ObjectWriter:
    """Runs writes of all kinds against one store."""

    def __init__(
        self,
        *,
        store: Store,
        objects: Objects,
        clock: Clock,
        ids: Ids,
        gates: Gates,
        compat: Compat,
    ) -> None:
        self.store: WritableStore = store
        self.objects = objects
        self.clock = clock
        self.ids = ids
        # While a disk is full, clients try hundreds of times a second.
        self._rejected = Tally(_log, "store rejected writes", level="error")
        self._gates = gates
        self.compat = compat
        self.admission = AdmissionChain()
        self.policies: PolicyReviewer | None = None
        self.rule_notices = RuleNotices()
        self.recorders: tuple[Recorder, ...] = ()
        self.authorizer: Authorizer | None = None
        self.quotas = QuotaAdmission(store, objects, clock, compat)
        self.priorities = DefaultPriorityClass(store, objects)
        self.limit_ranges = NewestObjects(
            store, objects, "limitranges", lambda obj: str(obj["metadata"]["namespace"])
        )

    # -- shared by all writes -------------------------------------------------------------------

    def context(self, request: Request) -> WriteContext:
        """Return the context of a request for strategies."""
        return WriteContext(
            now=self.clock.now(),
            user=request.user.name,
            groups=request.user.groups,
            version=request.target.version,
            gates=self._gates,
            lookup=self.lookup,
            new_suffix=self.ids.suffix,
            default_priority_class=self.priorities.get,
            limit_ranges=self.limit_ranges.of,
            compat=self.compat,
            subresource=request.target.subresource,
            sent_empty=request.sent_empty,
            may=partial(self._may, request),
        )

    def _may(self, request: Request, verb: str, subresource: str) -> bool:
        if self.authorizer is None:
            return False
        target = request.target
        attributes = Attributes(
            verb,
            target.resource.group,
            target.version,
            target.resource.plural,
            subresource,
            target.namespace,
            target.name,
        )
        return self.authorizer.authorize(request.user, attributes).allowed

    def validate_admission(
        self, request: Request, operation: str, obj: Obj | None, old: Obj | None = None
    ) -> AdmissionAttributes:
        """Run the admission plugins; return what they add to an update, and to its problems."""
        attributes = AdmissionAttributes(request, operation, obj, old)
        self.admission.validate(attributes)
        return attributes

    def review(
        self, request: Request, operation: str, obj: Obj | None, old: Obj | None = None
    ) -> list[str]:
        """Apply the admission policies to a valid write; return warnings for the client."""
        notices = self.rule_notices.of(request, obj, old)
        if self.policies is None:
            return notices
        return [*notices, *self.policies.review(request, operation, obj, old)]

    def history_ops(self, request: Request, old: Obj, new: Obj | None) -> list[Op]:
        """Return the operations that record a change or deletion of an object."""
        return [op for recorder in self.recorders for op in recorder.ops(request, old, new)]

    def lookup(self, resource: str, namespace: str, name: str) -> Obj | None:
        """Read another object for a strategy, newest state first."""
        record = self.store.newest(StoreKey(resource, namespace, name))
        return None if record is None else self.objects.live(record)

    def newest(self, target: Target) -> Record:
        """Return the newest state of an object; raises NotFound."""
        record = self.store.newest(self.objects.key(target))
        if record is None:
            raise not_found(*target.names)
        return record

    def strategy(self, target: Target) -> Strategy:
        """Return the strategy of the requested endpoint."""
        if target.subresource == "status" and target.resource.status is not None:
            return target.resource.status
        return target.resource.parts.get(target.subresource, target.resource.strategy)

    async def catch_up(self) -> None:
        """Wait until writes acknowledged by other replicas are visible."""
        try:
            await self.store.catch_up()
        except UnavailableError as error:
            raise _store_unavailable(error) from error

    async def put(self, key: StoreKey, obj: Obj, expect: int, *extra: Op) -> Record:
        """Write an object; the caller has decided on the state with revision `expect`."""
        bare = without_version(obj)
        data = to_json(bare)
        stored = self.objects.scheme.stored(key.resource)
        if stored is not None:
            # Many small changes can also result in a large object.
            check_values(stored, bare, len(data))
        commit = await self.commit([Put(key, data, expect, {"bare": bare}), *extra])
        record = commit.records[0]
        if record is None:
            raise InternalError(f"the store returned no record for {key}")
        return record

    async def confirms(self, target: Target) -> bool:
        """Wait until the newest state of an object is durable; False if it changed meanwhile.

        A request that is refused because of another one must not be refused if that one fails.
        """
        key = self.objects.key(target)
        record = self.store.newest(key)
        try:
            await self.commit([Check(key, 0 if record is None else record.revision)])
        except ConflictError:
            return False
        return True

    async def settled(self, record: Record) -> None:
        """Make sure that a record has the revision that readers see.

        While it is written to a store that numbers writes itself, it has none; then this waits for
        it and raises ConflictError, because there is a newer record.
        """
        if record.revision < 0:
            await self.commit([Check(record.key, record.revision)])

    async def commit(self, ops: list[Op]) -> Commit:
        """Commit, with store errors as API errors; conflicts pass through."""
        for op in ops:
            if isinstance(op, Put) and op.derived is not None:
                self.objects.recent.add_decoded(op.derived, len(op.value))
        try:
            return await self.store.commit(ops)
        except ConflictError:
            raise
        except UncertainError as error:
            raise Timeout(str(error)) from error
        except TooLargeError as error:
            raise RequestEntityTooLarge(f"Request entity too large: {error}") from error
        except StoreError as error:
            self._rejected.add(error=str(error))
            self._rejected.report(self.clock.monotonic())
            raise ServiceUnavailable(f"the write could not be stored: {error}") from error

    async def deferring(self, step: Callable[[], T]) -> T:
        """Run a step of a write, and again after work that is too long for the event loop."""
        while True:
            try:
                return step()
            except DeferredWorkError as deferred:
                work = deferred.work
            await asyncio.to_thread(work)

    def write_nulls(self, target: Target, obj: Obj, old: Obj | None = None) -> None:
        """Write empty lists as they will be read; owners and problems have been found before."""
        if target.resource.storage_version.custom is None:
            write_nulls(obj, self._stored_schema(target), old)

    def _stored_schema(self, target: Target) -> ObjectType:
        """Return the table of the storage version, which need not be served."""
        resource = target.resource
        return self.objects.scheme.tables.get(resource.storage_version.package, resource.kind)

    def reject_invalid(
        self,
        request: Request,
        name: str,
        obj: Obj,
        validate: Callable[[Obj], Iterable[FieldError]],
    ) -> None:
        """Raise Invalid if there are field errors."""
        target = request.target
        problems = list(islice(validate(obj), MAX_FIELD_ERRORS))
        if problems:
            problems = self._with_values_as_sent(request, obj, problems, validate)
            schema = self.objects.scheme.schema(target.resource, target.version)
            problems = in_order(problems, schema, self.strategy(target).declared)
            if _is_declarative(target):
                problems = list(dict.fromkeys(problems))
            # Objects with two views are validated and named as they are stored.
            stored = self.objects.scheme.stored(target.resource.storage_key) or target.resource
            raise invalid(stored.kind, stored.group, name, problems)

    def _with_values_as_sent(
        self,
        request: Request,
        obj: Obj,
        problems: list[FieldError],
        validate: Callable[[Obj], Iterable[FieldError]],
    ) -> list[FieldError]:
        """Return field errors that show empty lists and maps as Kubernetes does."""
        sent = self._sent_in_storage_version(request)
        if sent is None:
            return problems
        shown = with_empties(obj, sent, self._stored_schema(request.target))
        if shown != obj:
            # An empty list can also look like a change, which it is not.
            known = {(problem.reason, problem.field) for problem in problems}
            again = islice(validate(shown), MAX_FIELD_ERRORS)
            same = [problem for problem in again if (problem.reason, problem.field) in known]
            # A problem may not exist with the empty list; it was found without.
            problems = same if len(same) == len(problems) else problems
        return [problem.with_empty(value_at_path(sent, problem.field)) for problem in problems]

    def _sent_in_storage_version(self, request: Request) -> Any:
        """Return the object as it was sent; custom resources keep what is empty."""
        resource, sent = request.target.resource, request.sent
        if (
            resource.storage_version.structural
            or resource.storage_version.custom is not None
            or not sent.version
        ):
            return None
        if not resource.has_shapes:
            return sent.value
        schema = self.objects.scheme.schema(resource, sent.version)
        view = with_empties(decode(sent.value, schema, []), sent.value, schema)
        return self.objects.to_stored(view, resource, sent.version)

    def managed_write(
        self, request: Request, strategy: Strategy, ctx: WriteContext
    ) -> managed.Write:
        """Describe a write to field management."""
        target = request.target
        resource = target.resource
        return managed.Write(
            manager=request.manager,
            api_version=target.group_version,
            schema=self.objects.scheme.schema(resource, target.version),
            time=format_time(ctx.now),
            subresource=target.subresource,
            reset=_reset(strategy.reset),
            convert=self._converter(target) if resource.has_shapes else None,
        )

    def _converter(self, target: Target) -> managed.Convert:
        """Return the conversion between versions of a kind; there is none to one not served."""
        resource = target.resource

        def convert(
            obj: Obj, api_version: str, target_version: str
        ) -> tuple[Obj, ObjectType] | None:
            group, _, version = target_version.rpartition("/")
            if group != resource.group or resource.version(version) is None:
                return None
            stored = self.objects.to_stored(obj, resource, api_version.rpartition("/")[2])
            view = self.objects.convert(stored, resource, version)
            return view, self.objects.scheme.schema(resource, version)

        return convert

    def track(
        self, request: Request, live: Obj | None, obj: Obj, strategy: Strategy, ctx: WriteContext
    ) -> list[Obj]:
        """Return managedFields after this write; `live` is in the request's version."""
        view = self.objects.convert(obj, request.target.resource, request.target.version)
        return managed.track_update(live, view, self.managed_write(request, strategy, ctx))


@cache
def _reset(paths: tuple[tuple[str, ...], ...]) -> FieldSet:
    return FieldSet.of(*paths)


def set_managed(obj: Obj, entries: list[Obj]) -> None:
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def without_version(obj: Obj) -> Obj:
    """Return an object as it is stored, without resourceVersion.

    A copy: strategies may have put parts of the old object into the new one.
    """
    metadata = obj["metadata"].copy()
    metadata.pop("resourceVersion", None)
    return {**obj, "metadata": metadata}


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise ServiceUnavailable where the store is unavailable."""
    try:
        yield
    except UnavailableError as error:
        raise _store_unavailable(error) from error


def _store_unavailable(error: UnavailableError) -> ServiceUnavailable:
    _log.error("store unavailable", error=str(error))
    return ServiceUnavailable(f"the store is unavailable: {error}")


def is_dry_run(request: Request) -> bool:
    """Report whether a request is a dry run."""
    return request.option("dryRun") == "All"
