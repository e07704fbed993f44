"""Updates: read, decide and commit, without an `await` in between.

So two writers in one process never see the same state; a conflict can only come from another
process on the same store, and then the decision is repeated.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

import msgspec

from sully.machinery.errors import (
    ApiError,
    BadRequest,
    Conflict,
    NotFound,
    client_error,
    conflict,
    invalid,
)
from sully.machinery.fields import Path
from sully.machinery.patch.ownership import entries
from sully.machinery.serialization.codec import from_json
from sully.machinery.strategy import Obj, Strategy
from sully.server.registry import metadata as meta
from sully.server.registry.bodies.body import Body
from sully.server.registry.bodies.decoding import decode_body, with_empty_lists
from sully.server.registry.bodies.kinds import nameless
from sully.server.registry.creates import Creator
from sully.server.registry.writes import (
    ObjectWriter,
    Result,
    is_dry_run,
    set_managed,
    without_version,
)
from sully.server.requests import Request, Target
from sully.store.base import Check, Delete, Op, Record
from sully.store.errors import ConflictError

_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class Updater:
    """Changes objects of all kinds."""

    def __init__(self, writer: ObjectWriter, creator: Creator) -> None:
        self._writer = writer
        self._creator = creator

    async def update(self, request: Request, body: Body) -> Result:
        """Replace an object, or the part of it that the endpoint owns."""
        request = with_empty_lists(request, body)
        live = self._writer.store.newest(self._writer.objects.key(request.target))
        before = None if live is None else self._writer.objects.bare(live)
        decoded = decode_body(self._writer.objects, request, body, before)
        try:
            result = await self._replace(request, decoded.obj)
        except ApiError as error:
            error.warnings[:0] = decoded.warnings
            raise
        result.warnings[:0] = decoded.warnings
        return result

    async def _replace(self, request: Request, obj: Obj) -> Result:
        target = request.target
        check_name(target, obj)
        if self._creates(target):
            self._check_uid(request, obj, None)
            obj["metadata"].pop("resourceVersion", None)
            return await self._creator.create_object(request, obj)

        def replace(old: Obj) -> Obj:
            self._check_uid(request, obj, old)
            self._check_preconditions(target, obj, old)
            # Refuses custom resources that do not match their schema, if there is one to update.
            self._writer.strategy(target).default(obj, self._writer.context(request))
            # A retry must not see what the first attempt changed.
            return {**obj, "metadata": dict(obj["metadata"])}

        return await self.modify(request, replace)

    def _creates(self, target: Target) -> bool:
        """Report whether a PUT creates the object, as a few kinds allow."""
        if not target.resource.create_on_update or target.subresource:
            return False
        return self._writer.store.newest(self._writer.objects.key(target)) is None

    def _check_update_version(self, target: Target, obj: Obj) -> None:
        requested = obj["metadata"].get("resourceVersion", "")
        if requested and not meta.is_version(requested):
            text = f'strconv.ParseUint: parsing "{requested}": invalid syntax'
            raise client_error(text, self._writer.compat)
        version = target.resource.version(target.version)
        if requested in ("", "0") and version is not None and not version.unconditional_update:
            at = Path("metadata").child("resourceVersion")
            raise invalid(*target.names, [at.invalid(0, "must be specified for an update")])

    async def modify(
        self,
        request: Request,
        change: Callable[[Obj], Obj],
        *,
        track: bool = True,
        strategy: Strategy | None = None,
    ) -> Result:
        """Change one object: `change` returns the new stored object for the live one.

        `track`: whether managedFields record it; otherwise `change` does.
        """
        while True:
            try:
                record, pending = await self._writer.deferring(
                    partial(self._decided, request, change, track=track, strategy=strategy)
                )
            except (Conflict, NotFound):
                if await self._writer.confirms(request.target):
                    raise
                continue
            try:
                return await self._store_update(request, record, pending)
            except ConflictError:
                # Only another process can interfere: decide on its state.
                continue

    def _decided(
        self,
        request: Request,
        change: Callable[[Obj], Obj],
        *,
        track: bool,
        strategy: Strategy | None,
    ) -> tuple[Record, "_PendingUpdate"]:
        record = self._writer.newest(request.target)
        return record, self._next_state(request, record, change, track=track, strategy=strategy)

    def _next_state(
        self,
        request: Request,
        record: Record,
        change: Callable[[Obj], Obj],
        *,
        track: bool,
        strategy: Strategy | None,
    ) -> "_PendingUpdate":
        target, ctx = request.target, self._writer.context(request)
        strategy = strategy or self._writer.strategy(target)
        old = self._writer.objects.live(record)
        obj = change(old)
        self._check_preconditions(target, obj, old)
        meta.carry_over(obj, old)
        if track:
            live = self._writer.objects.convert(old, target.resource, target.version)
            set_managed(obj, self._writer.track(request, live, obj, strategy, ctx))
        notices = list(strategy.notices(obj, old, ctx))
        strategy.admit(obj, old, ctx)
        admission = self._writer.validate_admission(request, "update", obj, old)
        extra_ops = admission.extra_ops
        generation = old["metadata"].get("generation")
        if generation is not None:
            obj["metadata"]["generation"] = generation
        else:
            obj["metadata"].pop("generation", None)
        strategy.prepare_update(obj, old, ctx)
        self._writer.reject_invalid(
            request, target.name, obj, lambda obj: strategy.validate_first(obj, ctx)
        )
        self._writer.reject_invalid(
            request,
            target.name,
            obj,
            lambda obj: chain(
                meta.validate_metadata_update(obj, old, strategy),
                admission.problems,
                strategy.validate_update(obj, old, ctx),
            ),
        )
        self._writer.write_nulls(target, obj, old)
        strategy.review(obj, old, ctx)
        notices += self._writer.review(request, "UPDATE", obj, old)
        extra_ops += self._writer.quotas.charge(target, obj, old)
        return _PendingUpdate(obj, old, [*notices, *strategy.warnings(obj, old, ctx)], extra_ops)

    def _check_preconditions(self, target: Target, obj: Obj, old: Obj) -> None:
        requested = obj["metadata"].get("resourceVersion", "")
        if requested and requested == old["metadata"]["resourceVersion"]:
            # Most likely by a patch. A state that is not written yet has no valid version.
            return
        self._check_update_version(target, obj)
        if requested not in ("", "0"):
            raise conflict(*target.names, _MODIFIED)

    def _check_uid(self, request: Request, obj: Obj, old: Obj | None) -> None:
        target = request.target
        expected = obj["metadata"].get("uid")
        actual = "" if old is None else old["metadata"]["uid"]
        if not expected or expected == actual:
            return
        # A dry run does not reach the store, which adds the prefix.
        key = meta.etcd_key(target).removeprefix("/registry" if is_dry_run(request) else "")
        raise conflict(
            *target.names,
            f"StorageError: invalid object, Code: 4, Key: {key}"
            ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed:"
            f" UID in precondition: {expected}, UID in object meta: {actual}",
        )

    async def change_directly(self, request: Request, change: Callable[[Obj], Obj]) -> Result:
        """Change one object as the server itself, without the rules for clients."""
        while True:
            record = self._writer.newest(request.target)
            old = self._writer.objects.live(record)
            # Decoding again is faster than a copy.
            copied = self._writer.objects.stamped(from_json(record.value), record.revision)
            pending = _PendingUpdate(change(copied), old, [])
            try:
                return await self._store_update(request, record, pending)
            except ConflictError:
                continue

    async def _store_update(
        self, request: Request, record: Record, pending: "_PendingUpdate"
    ) -> Result:
        if is_dry_run(request):
            await self._writer.settled(record)
        obj = entries.settle_times(self._writer.objects.bare(record), without_version(pending.obj))
        if _is_finalized(obj, pending.old):
            if not is_dry_run(request):
                extra_ops = self._writer.quotas.release(request.target, record)
                extra_ops += self._writer.history_ops(request, pending.old, None)
                commit = await self._writer.commit(
                    [Delete(record.key, record.revision), *extra_ops]
                )
                # The deletion has a visible revision; `newest` may have none.
                record = commit.records[0] or record
            deleted_obj = self._writer.objects.stamped(obj, record.revision)
            return Result(deleted_obj, deleted=True, warnings=pending.warnings)
        if is_dry_run(request):
            return Result(
                self._writer.objects.stamped(obj, record.revision), warnings=pending.warnings
            )
        if obj == self._writer.objects.bare(record):
            # Nothing changed. The returned state must still be durable.
            await self._writer.commit([Check(record.key, record.revision)])
            return Result(self._writer.objects.live(record), record, warnings=pending.warnings)
        history = self._writer.history_ops(request, pending.old, obj)
        stored = await self._writer.put(
            record.key, obj, record.revision, *pending.extra_ops, *history
        )
        return Result(self._writer.objects.live(stored), stored, warnings=pending.warnings)


class _PendingUpdate(msgspec.Struct):
    """One computed update, not yet written."""

    obj: Obj
    old: Obj
    warnings: list[str]
    extra_ops: Sequence[Op] = ()  # additions of admission plugins to the transaction


def _is_finalized(obj: Obj, old: Obj) -> bool:
    """Report whether a terminating object can be deleted now."""
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


def check_name(target: Target, obj: Obj) -> None:
    """Reject a body whose name or namespace is not the one in the URL."""
    meta.settle_namespace(target, obj)
    name = obj["metadata"].get("name", "")
    if not name:
        raise nameless(target)
    if name != target.name:
        raise BadRequest(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
