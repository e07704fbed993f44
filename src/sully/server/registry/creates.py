"""Creates: name, namespace, admission, validation, and one insert."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from sully.machinery.errors import (
    ApiError,
    already_exists,
    client_error,
    forbidden,
    not_found,
)
from sully.machinery.fields import FieldError
from sully.machinery.formats.timestamps import format_time
from sully.machinery.strategy import Obj, Strategy, WriteContext
from sully.server.registry import metadata as meta
from sully.server.registry.bodies.body import Body
from sully.server.registry.bodies.decoding import decode_body, with_empty_lists
from sully.server.registry.writes import (
    ObjectWriter,
    Result,
    is_dry_run,
    set_managed,
)
from sully.server.requests import Request, Target
from sully.store.base import Record, StoreKey
from sully.store.errors import ConflictError

_NAME_ATTEMPTS = 8
_WAIT = 1.5
_POLL = 0.05
"""Seconds that a create waits for dependencies, and between two checks."""


class Creator:
    """Creates objects of all kinds."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    async def create(self, request: Request, body: Body) -> Result:
        """Create an object from a body."""
        request = with_empty_lists(request, body)
        decoded = decode_body(self._writer.objects, request, body)
        try:
            result = await self.create_object(request, decoded.obj)
        except ApiError as error:
            error.warnings[:0] = decoded.warnings
            raise
        result.warnings[:0] = decoded.warnings
        return result

    async def create_object(
        self, request: Request, obj: Obj, *, managed_fields: list[Obj] | None = None
    ) -> Result:
        """Create an object that is already in the storage version."""
        target, strategy = request.target, request.target.resource.strategy
        if (expected := strategy.expects(obj)) is not None:
            await self._wait_for(target.namespace, *expected)
        if self._writer.quotas.awaits_usage(target):
            await self._wait_for_usage(target)
        ctx = self._writer.context(request)
        meta.clear_system_fields(obj)
        meta.settle_namespace(target, obj)
        # Refuses custom resources that do not match their schema.
        strategy.default(obj, ctx)
        generated = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        self._check_namespace(target, obj)
        # Before admission: what plugins set has no field manager.
        if managed_fields is None:
            managed_fields = self._writer.track(request, None, obj, strategy, ctx)
        set_managed(obj, managed_fields)
        notices = list(strategy.notices(obj, None, ctx))
        strategy.admit(obj, None, ctx)
        self._writer.validate_admission(request, "create", obj)
        reviewed: list[str] = []
        try:
            result = await self._create_named(request, obj, ctx, reviewed, generated=generated)
        except ApiError as error:
            error.warnings[:0] = reviewed
            raise
        result.warnings[:0] = [*notices, *reviewed]
        return result

    async def _create_named(
        self, request: Request, obj: Obj, ctx: WriteContext, reviewed: list[str], *, generated: bool
    ) -> Result:
        """Validate and insert an object, with another name if a generated one is taken."""
        target, strategy = request.target, request.target.resource.strategy
        for attempt in range(_NAME_ATTEMPTS):
            if generated:
                base = obj["metadata"]["generateName"]
                obj["metadata"]["name"] = meta.generated_name(base, self._writer.ids.suffix())
            await self._writer.deferring(partial(self._before_create, request, obj, strategy, ctx))
            if attempt == 0:
                reviewed += self._writer.review(request, "CREATE", obj)
            try:
                return await self._insert(request, obj, ctx)
            except ConflictError:
                if not generated or attempt == _NAME_ATTEMPTS - 1:
                    raise self._already_exists(target, obj["metadata"]["name"]) from None
        raise self._already_exists(target, obj["metadata"]["name"])

    async def _wait_for(self, namespace: str, resource: str, name: str) -> None:
        """Wait briefly for the controllers that populate new namespaces, as Kubernetes does."""
        clock = self._writer.clock
        deadline = clock.monotonic() + _WAIT
        while self._writer.lookup(resource, namespace, name) is None:
            live = self._writer.lookup("namespaces", "", namespace)
            if live is None or "deletionTimestamp" in live["metadata"]:
                return
            if clock.monotonic() >= deadline:
                return
            await clock.sleep(_POLL)

    async def _wait_for_usage(self, target: Target) -> None:
        """Wait briefly for the controller that sets the usage of new quotas."""
        clock = self._writer.clock
        deadline = clock.monotonic() + _WAIT
        while self._writer.quotas.awaits_usage(target) and clock.monotonic() < deadline:
            await clock.sleep(_POLL)

    def _check_namespace(self, target: Target, obj: Obj) -> None:
        if not target.resource.namespaced:
            return
        namespace = self._writer.lookup("namespaces", "", target.namespace)
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
        self, request: Request, obj: Obj, strategy: Strategy, ctx: WriteContext
    ) -> None:
        target = request.target
        meta.clear_system_fields(obj)
        obj["metadata"].setdefault("name", "")
        obj["metadata"]["creationTimestamp"] = format_time(ctx.now)
        obj["metadata"]["uid"] = self._writer.ids.uid()
        strategy.prepare_create(obj, ctx)
        for validate in _validations(strategy, target, ctx):
            self._writer.reject_invalid(request, obj["metadata"]["name"], obj, validate)
        self._writer.write_nulls(target, obj)
        strategy.review(obj, None, ctx)

    async def _insert(self, request: Request, obj: Obj, ctx: WriteContext) -> Result:
        target = request.target
        warnings = list(target.resource.strategy.warnings(obj, None, ctx))
        key = self._writer.objects.key(target, obj["metadata"]["name"])
        if is_dry_run(request):
            self._writer.quotas.charge(target, obj)
            if self._writer.store.newest(key) is not None:
                raise self._already_exists(target, key.name)
            return Result(obj, created=True, warnings=warnings)
        # As in Kubernetes, what is not a version and 0 do not count.
        version = obj["metadata"].get("resourceVersion", "")
        if version.strip("0") and meta.is_version(version):
            text = "resourceVersion should not be set on objects to be created"
            raise client_error(text, self._writer.compat)
        record = await self._put(target, key, obj)
        return Result(self._writer.objects.live(record), record, created=True, warnings=warnings)

    async def _put(self, target: Target, key: StoreKey, obj: Obj) -> Record:
        """Write a new object and charge it to quotas, both or neither."""
        while True:
            charges = self._writer.quotas.charge(target, obj)
            try:
                with self._writer.quotas.indexed_while_written(key, obj):
                    return await self._writer.put(key, obj, 0, *charges)
            except ConflictError as error:
                if error.key == key:
                    raise
                # Another process charged the quota, or changed it: decide again.

    def _already_exists(self, target: Target, name: str) -> ApiError:
        error = already_exists(target.resource.plural, target.resource.group, name)
        record = self._writer.store.newest(self._writer.objects.key(target, name))
        if record and "deletionTimestamp" in self._writer.objects.live(record)["metadata"]:
            error.message = f"object is being deleted: {error.message}"
        return error


def _validations(
    strategy: Strategy, target: Target, ctx: WriteContext
) -> Iterator[Callable[[Obj], Iterable[FieldError]]]:
    """Yield the checks of a new object; the errors of each are reported together."""

    def metadata(obj: Obj) -> Iterable[FieldError]:
        return meta.validate_metadata(obj, strategy, namespaced=target.resource.namespaced)

    def own(obj: Obj) -> Iterable[FieldError]:
        return strategy.validate_create(obj, ctx)

    yield lambda obj: strategy.validate_first(obj, ctx)
    if strategy.validates_metadata():
        yield lambda obj: chain(
            strategy.validate_before_metadata(obj, ctx), metadata(obj), own(obj)
        )
    else:
        yield own
        yield metadata
