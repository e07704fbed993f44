"""The life of one write: decode → default → admit → prepare → validate → commit.

`Writer` runs the steps that every kind shares; what differs lives in the kind's Strategy. The
read, the decision and the commit of an update happen without a pause in between, so two writers
never see the same state; a conflict can only come from another process on the same store.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

from sully.machinery.codec import copy, to_json
from sully.machinery.errors import (
    ApiError,
    BadRequest,
    InternalError,
    RequestEntityTooLarge,
    ServiceUnavailable,
    already_exists,
    blunder,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.gates import Gates
from sully.machinery.patch import entries, managed
from sully.machinery.patch.fieldset import FieldSet
from sully.machinery.schema import ObjectType
from sully.machinery.strategy import Obj, Strategy, WriteContext
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.server import metadata as meta
from sully.server.bodies import Body, decode_body
from sully.server.objects import Objects
from sully.server.requests import Request, Target
from sully.store.base import Check, Commit, Delete, Key, Op, Put, Record, Store
from sully.store.errors import ConflictError, StoreError, TooLargeError

_log = get_logger("server")
_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_NAME_TRIES = 8


@dataclass(slots=True)
class Result:
    """What a write did: the object in the hub version, and what to tell the client."""

    obj: Obj
    record: Record | None = None  # None: dry run, or gone
    created: bool = False
    deleted: bool = False  # the write made the object go
    warnings: list[str] = field(default_factory=list)


class Writer:
    """Runs writes of all kinds against one store."""

    def __init__(
        self, *, store: Store, objects: Objects, clock: Clock, ids: Ids, gates: Gates, strict: bool
    ) -> None:
        self.store = store
        self.objects = objects
        self.clock = clock
        self._ids = ids
        self._gates = gates
        self.strict = strict

    # -- shared by all writes -------------------------------------------------------------------

    def context(self, request: Request) -> WriteContext:
        """Return what strategies may know about a request."""
        return WriteContext(
            now=self.clock.now(),
            user=request.user.name,
            groups=request.user.groups,
            version=request.target.version,
            gates=self._gates,
            lookup=self.lookup,
            new_suffix=self._ids.suffix,
            strict_compat=self.strict,
            subresource=request.target.subresource,
        )

    def lookup(self, resource: str, namespace: str, name: str) -> Obj | None:
        """Read another object for a strategy, newest state first."""
        record = self.store.newest(Key(resource, namespace, name))
        return None if record is None else self.objects.live(record)

    def strategy(self, target: Target) -> Strategy:
        """Return the strategy of the endpoint a request addresses."""
        if target.subresource == "status" and target.resource.status is not None:
            return target.resource.status
        return target.resource.strategy

    async def put(self, key: Key, obj: Obj, expect: int, *extra: Op) -> Record:
        """Write an object; the caller has decided on the state with revision `expect`."""
        bare = without_version(obj)
        done = await self.commit([Put(key, to_json(bare), expect, {"bare": bare}), *extra])
        record = done.records[0]
        if record is None:
            raise InternalError(f"the store returned no record for {key}")
        return record

    async def commit(self, ops: list[Op]) -> Commit:
        """Commit, with the store's refusals as answers; conflicts pass through."""
        try:
            return await self.store.commit(ops)
        except ConflictError:
            raise
        except TooLargeError as error:
            raise RequestEntityTooLarge(f"Request entity too large: {error}") from error
        except StoreError as error:
            _log.error("the store refused a write", error=str(error))
            raise ServiceUnavailable(f"the write could not be stored: {error}") from error

    # -- create ---------------------------------------------------------------------------------

    async def create(self, request: Request, body: Body) -> Result:
        """Create an object from a body."""
        decoded = decode_body(self.objects, request, body)
        with warned(decoded.warnings):
            result = await self.create_object(request, decoded.obj)
        result.warnings[:0] = decoded.warnings
        return result

    async def create_object(
        self, request: Request, obj: Obj, *, managed_fields: list[Obj] | None = None
    ) -> Result:
        """Create an object that is already in the hub version."""
        target, ctx = request.target, self.context(request)
        strategy = target.resource.strategy
        strategy.default(obj, ctx)
        self._place(target, obj)
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        self._check_namespace(target, obj)
        if obj["metadata"].get("resourceVersion"):
            text = "resourceVersion should not be set on objects to be created"
            raise blunder(text, strict=self.strict)
        # Before admission: what it fills in belongs to nobody.
        if managed_fields is None:
            managed_fields = self._track(request, None, obj, strategy, ctx)
        _set_managed(obj, managed_fields)
        strategy.admit(obj, None, ctx)
        for attempt in range(_NAME_TRIES):
            if generated:
                base = obj["metadata"]["generateName"]
                obj["metadata"]["name"] = meta.generated_name(base, self._ids.suffix())
            self._before_create(obj, strategy, target, ctx)
            try:
                return await self._insert(request, obj, ctx)
            except ConflictError:
                if not generated or attempt == _NAME_TRIES - 1:
                    raise self._exists(target, obj["metadata"]["name"]) from None
        raise self._exists(target, obj["metadata"]["name"])

    def _place(self, target: Target, obj: Obj) -> None:
        metadata = obj["metadata"]
        if not target.resource.namespaced:
            metadata.pop("namespace", None)
            return
        if metadata.get("namespace", target.namespace) != target.namespace:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the"
                " request"
            )
        metadata["namespace"] = target.namespace

    def _check_namespace(self, target: Target, obj: Obj) -> None:
        if not target.resource.namespaced:
            return
        namespace = self.lookup("namespaces", "", target.namespace)
        if namespace is None:
            raise not_found("namespaces", "", target.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            name = obj["metadata"].get("name", "")
            error = forbidden(
                target.resource.plural,
                target.resource.group,
                name,
                f"unable to create new content in namespace {target.namespace} because it is"
                " being terminated",
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {target.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = (error.details or {}) | {"causes": [cause]}
            raise error

    def _before_create(
        self, obj: Obj, strategy: Strategy, target: Target, ctx: WriteContext
    ) -> None:
        meta.clear_system_fields(obj)
        obj["metadata"].pop("generation", None)
        obj["metadata"].setdefault("name", "")
        obj["metadata"]["creationTimestamp"] = format_time(ctx.now)
        obj["metadata"]["uid"] = self._ids.uid()
        strategy.prepare_create(obj, ctx)
        problems = list(
            chain(
                meta.validate_metadata(obj, strategy, namespaced=target.resource.namespaced),
                strategy.validate_create(obj, ctx),
            )
        )
        self._refuse(target, obj["metadata"]["name"], problems)

    def _refuse(self, target: Target, name: str, problems: list[FieldError]) -> None:
        if problems:
            # Objects with two views are validated, and named, as what they are stored as.
            stored = self.objects.scheme.stored(target.resource.storage_key) or target.resource
            raise invalid(stored.kind, stored.group, name, problems)

    async def _insert(self, request: Request, obj: Obj, ctx: WriteContext) -> Result:
        target = request.target
        warnings = list(target.resource.strategy.warnings(obj, None, ctx))
        key = self.objects.key(target, obj["metadata"]["name"])
        if is_dry_run(request):
            if self.store.newest(key) is not None:
                raise self._exists(target, key.name)
            return Result(obj, created=True, warnings=warnings)
        record = await self.put(key, obj, 0)
        return Result(self.objects.live(record), record, created=True, warnings=warnings)

    def _exists(self, target: Target, name: str) -> ApiError:
        error = already_exists(target.resource.plural, target.resource.group, name)
        record = self.store.newest(self.objects.key(target, name))
        if record and "deletionTimestamp" in self.objects.live(record)["metadata"]:
            error.message = f"object is being deleted: {error.message}"
        return error

    def managed_write(
        self, request: Request, strategy: Strategy, ctx: WriteContext
    ) -> managed.Write:
        """Describe a write to field management."""
        target = request.target
        resource = target.resource
        many = any(version.to_hub is not None for version in resource.versions)
        return managed.Write(
            manager=request.manager,
            api_version=target.group_version,
            schema=self.objects.scheme.schema(resource, target.version),
            time=format_time(ctx.now),
            subresource=target.subresource,
            reset=_reset(strategy.reset),
            convert=self._converter(target) if many else None,
        )

    def _converter(self, target: Target) -> managed.Convert:
        """Return how objects of the request's version look in other versions."""
        resource = target.resource

        def convert(obj: Obj, api_version: str) -> tuple[Obj, ObjectType] | None:
            group, _, version = api_version.rpartition("/")
            if group != resource.group or resource.version(version) is None:
                return None
            hub = self.objects.to_hub(obj, resource, target.version)
            view = self.objects.convert(hub, resource, version)
            return view, self.objects.scheme.schema(resource, version)

        return convert

    def _track(
        self, request: Request, live: Obj | None, obj: Obj, strategy: Strategy, ctx: WriteContext
    ) -> list[Obj]:
        """Say who manages which field after this write; `live` is in the request's version."""
        view = self.objects.convert(obj, request.target.resource, request.target.version)
        return managed.track_update(live, view, self.managed_write(request, strategy, ctx))

    # -- update ---------------------------------------------------------------------------------

    async def update(self, request: Request, body: Body) -> Result:
        """Replace an object, or the part of it that the endpoint owns."""
        decoded = decode_body(self.objects, request, body)
        with warned(decoded.warnings):
            result = await self._replace(request, decoded.obj)
        result.warnings[:0] = decoded.warnings
        return result

    async def _replace(self, request: Request, obj: Obj) -> Result:
        target = request.target
        check_name(target, obj, required=True)
        if self._creates(target):
            return await self.create_object(request, obj)
        self.strategy(target).default(obj, self.context(request))
        self._check_update_version(target, obj)

        def replace(old: Obj) -> Obj:
            self._check_uid(target, obj, old)
            # A retry must not see what a first try changed.
            return {**obj, "metadata": dict(obj["metadata"])}

        return await self.modify(request, replace)

    def _creates(self, target: Target) -> bool:
        """Say whether a PUT makes the object, as a few kinds allow."""
        if not target.resource.create_on_update or target.subresource:
            return False
        return self.store.newest(self.objects.key(target)) is None

    def _check_update_version(self, target: Target, obj: Obj) -> None:
        given = obj["metadata"].get("resourceVersion", "")
        if given and not meta.is_version(given):
            text = f'strconv.ParseUint: parsing "{given}": invalid syntax'
            raise blunder(text, strict=self.strict)
        version = target.resource.version(target.version)
        if given in ("", "0") and version is not None and not version.unconditional_update:
            if self.store.newest(self.objects.key(target)) is None:
                raise not_found(target.resource.plural, target.resource.group, target.name)
            at = Path("metadata").child("resourceVersion")
            raise invalid(
                target.resource.plural,
                target.resource.group,
                target.name,
                [at.invalid(0, "must be specified for an update")],
            )

    async def modify(
        self,
        request: Request,
        change: Callable[[Obj], Obj],
        *,
        track: bool = True,
        strategy: Strategy | None = None,
    ) -> Result:
        """Change one object: `change` makes the new hub object from the live one."""
        target = request.target
        key = self.objects.key(target)
        while True:
            record = self.store.newest(key)
            if record is None:
                raise not_found(target.resource.plural, target.resource.group, target.name)
            step = self._next_state(request, record, change, track=track, strategy=strategy)
            try:
                return await self._store_update(request, key, record, step)
            except ConflictError:
                # Only another process can come in between: look at the state it left.
                continue

    def _next_state(
        self,
        request: Request,
        record: Record,
        change: Callable[[Obj], Obj],
        *,
        track: bool,
        strategy: Strategy | None,
    ) -> "_Step":
        target, ctx = request.target, self.context(request)
        strategy = strategy or self.strategy(target)
        old = self.objects.live(record)
        obj = change(old)
        self._check_preconditions(target, obj, old)
        meta.carry_over(obj, old)
        if track:
            live = self.objects.convert(old, target.resource, target.version)
            _set_managed(obj, self._track(request, live, obj, strategy, ctx))
        strategy.admit(obj, old, ctx)
        generation = old["metadata"].get("generation")
        if generation is not None:
            obj["metadata"]["generation"] = generation
        else:
            obj["metadata"].pop("generation", None)
        strategy.prepare_update(obj, old, ctx)
        problems = chain(
            meta.validate_metadata_update(obj, old), strategy.validate_update(obj, old, ctx)
        )
        self._refuse(target, target.name, list(problems))
        return _Step(obj, old, list(strategy.warnings(obj, old, ctx)))

    def _check_preconditions(self, target: Target, obj: Obj, old: Obj) -> None:
        given = obj["metadata"].get("resourceVersion", "")
        if given not in ("", "0") and given != old["metadata"]["resourceVersion"]:
            raise conflict(target.resource.plural, target.resource.group, target.name, _MODIFIED)

    def _check_uid(self, target: Target, obj: Obj, old: Obj) -> None:
        given, actual = obj["metadata"].get("uid"), old["metadata"]["uid"]
        if not given or given == actual:
            return
        where = f"{target.namespace}/{target.name}" if target.namespace else target.name
        raise conflict(
            target.resource.plural,
            target.resource.group,
            target.name,
            f"StorageError: invalid object, Code: 4, Key: /registry/{target.resource.plural}/{where}"
            ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
            f" UID in precondition: {given}, UID in object meta: {actual}",
        )

    async def change_directly(self, request: Request, change: Callable[[Obj], Obj]) -> Result:
        """Change one object as the server itself does, past the rules for clients."""
        target = request.target
        key = self.objects.key(target)
        while True:
            record = self.store.newest(key)
            if record is None:
                raise not_found(target.resource.plural, target.resource.group, target.name)
            old = self.objects.live(record)
            step = _Step(change(copy(old)), old, [])
            try:
                return await self._store_update(request, key, record, step)
            except ConflictError:
                continue

    async def _store_update(
        self, request: Request, key: Key, record: Record, step: "_Step"
    ) -> Result:
        obj = entries.settle_times(self.objects.bare(record), without_version(step.obj))
        if _finished(obj, step.old):
            if not is_dry_run(request):
                await self.commit([Delete(key, record.revision)])
            gone = self.objects.stamped(obj, record.revision)
            return Result(gone, deleted=True, warnings=step.warnings)
        if is_dry_run(request):
            return Result(self.objects.stamped(obj, record.revision), warnings=step.warnings)
        if obj == self.objects.bare(record):
            # Nothing changed. What is shown must still be durable before it is shown.
            await self.commit([Check(key, record.revision)])
            return Result(self.objects.live(record), record, warnings=step.warnings)
        stored = await self.put(key, obj, record.revision)
        return Result(self.objects.live(stored), stored, warnings=step.warnings)


@dataclass(slots=True)
class _Step:
    """One computed update, not yet written."""

    obj: Obj
    old: Obj
    warnings: list[str]


@cache
def _reset(paths: tuple[tuple[str, ...], ...]) -> FieldSet:
    return FieldSet.of(*paths)


def _finished(obj: Obj, old: Obj) -> bool:
    """Say whether an object that is being deleted has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in old["metadata"] or metadata.get("finalizers"):
        return False
    if old["metadata"].get("deletionGracePeriodSeconds", 0) > 0:
        return False
    return not _namespace_finalizers(obj) and bool(
        old["metadata"].get("finalizers") or _namespace_finalizers(old)
    )


def _namespace_finalizers(obj: Obj) -> bool:
    spec = obj.get("spec")
    return isinstance(spec, dict) and bool(spec.get("finalizers"))


def _set_managed(obj: Obj, entries: list[Obj]) -> None:
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def check_name(target: Target, obj: Obj, *, required: bool) -> None:
    """Refuse a body whose name or namespace is not the one in the URL."""
    name = obj["metadata"].get("name", "")
    if not name and required:
        raise BadRequest(
            f"the name of the object ({target.name} based on URL) was undeterminable:"
            " name must be provided"
        )
    if name and name != target.name:
        raise BadRequest(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    namespace = obj["metadata"].get("namespace", "")
    if target.resource.namespaced:
        if namespace and namespace != target.namespace:
            raise BadRequest(
                f"the namespace of the object ({namespace}) does not match the namespace on the"
                f" URL ({target.namespace})"
            )
        obj["metadata"]["namespace"] = target.namespace
    else:
        obj["metadata"].pop("namespace", None)


def without_version(obj: Obj) -> Obj:
    """Return an object as it is stored; the version is the store's to say.

    A copy: strategies may have put parts of the old object into the new one.
    """
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    return {**obj, "metadata": metadata}


@contextmanager
def warned(warnings: list[str]) -> Iterator[None]:
    """Let an error carry the warnings that were due before it."""
    try:
        yield
    except ApiError as error:
        error.warnings[:0] = warnings
        raise


def is_dry_run(request: Request) -> bool:
    """Say whether the client only wants to see what would happen."""
    return request.option("dryRun") == "All"
