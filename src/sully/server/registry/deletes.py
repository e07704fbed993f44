"""Deletes: immediately, after a grace period, or when the last finalizer is removed."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sully.api.apiextensions.definitions import DEFINITIONS, terminating
from sully.domain.workloads.ownership import Policy, deletion_finalizers
from sully.machinery.errors import BadRequest, Conflict, NotFound, conflict, invalid
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.timestamps import format_time, parse_time
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.codec import copy
from sully.machinery.serialization.decode import DecodeError, decode
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj
from sully.server.registry.bodies.kinds import COMMON_KINDS, no_kind_problem
from sully.server.registry.metadata import etcd_key
from sully.server.registry.writes import ObjectWriter, Result, is_dry_run, without_version
from sully.server.requests import Request, Target
from sully.server.storage.reads import Listing, Reader, parse_int
from sully.server.storage.turns import in_turns
from sully.store.base import Check, Commit, Delete, Record
from sully.store.errors import ConflictError

MAX_GRACE_SECONDS = 1000 * 365 * 86400
_UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""The option that deletes an object which cannot be read from the store."""
_READABLE = (
    "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg:"
    " unsafe deletion is not allowed because the object is decodable from storage"
)
_NOT_IN_COLLECTIONS = "is not allowed with DELETECOLLECTION, try again after removing the option"
_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to"
    " remove them or set propagationPolicy=Orphan to suppress this warning"
)
_META_SCHEME = "pkg/apis/meta/internalversion/scheme/register.go:27"
POLICIES = ("Background", "Foreground", "Orphan")


class Deleter:
    """Runs deletions of all kinds."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer

    async def delete(self, request: Request, options: Obj) -> Result:
        """Delete one object, or set its deletionTimestamp."""
        check_options(options)
        target = request.target
        while True:
            try:
                record = self._writer.newest(target)
                live = self._writer.objects.live(record)
                self._writer.validate_admission(request, "delete", None, live)
                warnings = self._writer.review(request, "DELETE", None, live)
                self._check_preconditions(target, record, options)
            except (Conflict, NotFound):
                if await self._writer.confirms(target):
                    raise
                continue
            if options.get(_UNSAFE):
                raise conflict(*target.names, _READABLE.format(etcd_key(target)))
            try:
                result = await self._delete_state(request, record, options)
                result.warnings[:0] = warnings
                result.accepted = not result.deleted and options.get("orphanDependents") is False
                return result
            except ConflictError:
                # Another process changed it: decide again.
                continue

    async def delete_collection(self, request: Request, options: Obj, reader: Reader) -> Listing:
        """Delete all objects that the request selects; return them as they were."""
        if options.get(_UNSAFE):
            problem = Path(_UNSAFE).invalid(True, _NOT_IN_COLLECTIONS)
            raise invalid("DeleteOptions", "meta.k8s.io", "", [problem])
        check_options(options)
        listing = await reader.listing(request)
        async for part in in_turns(listing.records):
            for record in part:
                await self._delete_one(request, record, options)
        return listing

    async def _delete_one(self, request: Request, record: Record, options: Obj) -> None:
        key, target = record.key, request.target
        one = Target(target.resource, target.version, key.namespace, key.name)
        # It may have been deleted meanwhile.
        with suppress(NotFound):
            single = Request(request.user, one, request.options, request.user_agent)
            await self.delete(single, options)

    def _check_preconditions(self, target: Target, record: Record, options: Obj) -> None:
        preconditions = options.get("preconditions") or {}
        live = self._writer.objects.live(record)["metadata"]
        for option, field, actual in (
            ("uid", "UID", live["uid"]),
            ("resourceVersion", "ResourceVersion", live["resourceVersion"]),
        ):
            expected = preconditions.get(option)
            if expected is not None and expected != actual:
                raise _precondition_failed(target, field, expected, actual)

    async def _delete_state(self, request: Request, record: Record, options: Obj) -> Result:
        if is_dry_run(request):
            await self._writer.settled(record)
        live = self._writer.objects.live(record)
        terminating = self._terminating(request, live, options)
        if terminating is None:
            return await self._remove(request, record)
        if is_dry_run(request):
            return Result(terminating)
        bare = without_version(terminating)
        if bare == self._writer.objects.bare(record):
            await self._writer.commit([Check(record.key, record.revision)])
            return Result(live, record)
        history = self._writer.history_ops(request, live, bare)
        stored = await self._writer.put(record.key, bare, record.revision, *history)
        return Result(self._writer.objects.live(stored), stored)

    async def _remove(self, request: Request, record: Record) -> Result:
        """Remove an object from the store."""
        live = self._writer.objects.live(record)
        graceful = request.target.resource.grace_period is not None
        if graceful:
            # For kinds with a grace period, watchers see its end before the deletion.
            live = self._with_deletion_time(live, 0)
        if is_dry_run(request):
            return Result(live, deleted=True)
        if not graceful:
            commit = await self._commit(request, record, Delete(record.key, record.revision))
            return Result(self._writer.objects.stamped(live, commit.revision), deleted=True)
        last = await self._writer.put(record.key, live, record.revision)
        live = self._writer.objects.live(last)
        ended = await self._end(request, record, last)
        if ended is not None:
            live = self._writer.objects.stamped(live, ended.revision)
        return Result(live, deleted=True)

    async def _end(self, request: Request, record: Record, last: Record) -> Commit | None:
        """Delete an object whose grace period is over; None if another client was faster.

        A kubelet deletes such a pod too. As in Kubernetes that is not an error of this request, and
        another object with the name must not be deleted instead.
        """
        while True:
            try:
                return await self._commit(request, record, Delete(last.key, last.revision))
            except ConflictError as error:
                current = error.current
                if current is None or current.create_revision != last.create_revision:
                    return None
                last = current

    async def _commit(self, request: Request, record: Record, delete: Delete) -> Commit:
        """Delete an object and release its quota usage, by its state before the deletion."""
        old = self._writer.objects.live(record)
        while True:
            released = self._writer.quotas.release(request.target, record)
            history = self._writer.history_ops(request, old, None)
            try:
                return await self._writer.commit([delete, *released, *history])
            except ConflictError as error:
                if error.key == delete.key:
                    raise
                # Another process wrote the quota or the record: decide again.

    def _terminating(self, request: Request, live: Obj, options: Obj) -> Obj | None:
        """Return the terminating object, or None if it can be deleted now."""
        if request.target.resource.storage_key == "namespaces":
            return self._terminating_namespace(live, options)
        if request.target.resource.storage_key == DEFINITIONS.storage_key:
            return terminating(live, self._writer.clock.now())
        remaining = live["metadata"].get("deletionGracePeriodSeconds", 0)
        requested = options.get("gracePeriodSeconds")
        if remaining > 0 and (requested is None or requested >= remaining):
            # A running grace period can only be shortened.
            return live
        grace = self._grace(request, live, options)
        finalizers = _finalizers(request.target, live, options)
        if grace <= 0 and not finalizers:
            return None
        return self._with_deletion_time(live, grace, finalizers)

    def _grace(self, request: Request, live: Obj, options: Obj) -> int:
        default_grace = request.target.resource.grace_period
        metadata = live["metadata"]
        expired = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
        if default_grace is None or expired:
            return 0
        requested = options.get("gracePeriodSeconds")
        seconds = default_grace(live)
        if requested is None or seconds == 0:
            return seconds
        return max(int(requested), 0) if requested >= 0 else 1

    def _with_deletion_time(
        self, live: Obj, grace: int, finalizers: list[str] | None = None
    ) -> Obj:
        """Return the object with its deletionTimestamp, and with finalizers if given."""
        # Only metadata changes, and only its own entries.
        metadata = dict(live["metadata"])
        if finalizers:
            metadata["finalizers"] = finalizers
        elif finalizers is not None:
            metadata.pop("finalizers", None)
        if "deletionTimestamp" not in metadata and metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = format_time(self._deletion_time(metadata, grace))
        metadata["deletionGracePeriodSeconds"] = grace
        return {**live, "metadata": metadata}

    def _deletion_time(self, metadata: Obj, grace: int) -> datetime:
        # The period may exceed the range of dates.
        wait = timedelta(seconds=min(grace, MAX_GRACE_SECONDS))
        now = self._writer.clock.now()
        if "deletionTimestamp" not in metadata:
            return now + wait
        end = parse_time(metadata["deletionTimestamp"])
        remaining = metadata.get("deletionGracePeriodSeconds", 0)
        if grace > 0 and remaining <= MAX_GRACE_SECONDS:
            # A shorter period counts from the start of the first one.
            return end - timedelta(seconds=remaining) + wait
        return min(end, now)

    def _terminating_namespace(self, live: Obj, options: Obj) -> Obj | None:
        if "deletionTimestamp" in live["metadata"]:
            blocked = live["spec"].get("finalizers") or live["metadata"].get("finalizers")
            return live if blocked else None
        finalizers = deletion_finalizers(live["metadata"].get("finalizers", ()), options)
        if not live["spec"].get("finalizers") and not finalizers:
            return None
        obj: Obj = copy(live)
        if finalizers:
            obj["metadata"]["finalizers"] = finalizers
        obj["metadata"]["deletionTimestamp"] = format_time(self._writer.clock.now())
        obj["status"]["phase"] = "Terminating"
        return obj


def _finalizers(target: Target, live: Obj, options: Obj) -> list[str]:
    """Return the finalizers of an object once it is deleted."""
    finalizers: list[str] = live["metadata"].get("finalizers", [])
    if target.resource.storage_key == "events":
        # The garbage collector ignores events.
        return finalizers
    default: Policy = "Orphan" if target.resource.orphans_by_default else "Background"
    return deletion_finalizers(finalizers, options, default)


def delete_options(request: Request, body: Any, schema: ObjectType) -> Obj:
    """Return the options of a deletion: those of its body, or without one those of its URL."""
    if body is not None:
        return _read_options(body, schema)
    options: Obj = {}
    if request.options.get("gracePeriodSeconds") is not None:
        options["gracePeriodSeconds"] = parse_int(request.option("gracePeriodSeconds"))
    if request.options.get("propagationPolicy") is not None:
        options["propagationPolicy"] = request.option("propagationPolicy")
    if request.options.get("dryRun") is not None:
        options["dryRun"] = [request.option("dryRun")]
    if request.options.get("orphanDependents") is not None:
        options["orphanDependents"] = request.flag("orphanDependents")
    if request.options.get(_UNSAFE) is not None:
        options[_UNSAFE] = request.flag(_UNSAFE)
    preconditions = {n: request.option(n) for n in ("uid", "resourceVersion") if request.option(n)}
    if preconditions:
        options["preconditions"] = preconditions
    return options


def _read_options(body: Any, schema: ObjectType) -> Obj:
    kind = (body.get("kind") if isinstance(body, dict) else "") or "DeleteOptions"
    if kind != "DeleteOptions":
        if isinstance(kind, str) and kind in COMMON_KINDS:
            raise BadRequest(f"converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
        version = quote(str(body.get("apiVersion") or "v1"))
        text = f"no kind {quote(str(kind))} is registered for version {version} in scheme"
        raise BadRequest(f'{text} "{_META_SCHEME}"')
    if not isinstance(body, dict):
        raise BadRequest(no_kind_problem(body))
    try:
        return decode(body, schema, [])
    except DecodeError as error:
        raise BadRequest(str(error)) from None


def orphan_warnings(options: Obj) -> Iterator[str]:
    """Warn that dependents stay, unless a client sets a propagation policy."""
    if "propagationPolicy" not in options and "orphanDependents" not in options:
        yield _ORPHANS


def _precondition_failed(target: Target, field: str, expected: str, actual: str) -> Conflict:
    resource = target.resource
    if (resource.group, resource.plural) == ("", "namespaces"):
        # Kubernetes deletes them by other code, with this text.
        text = f"{field} in precondition: {expected}, {field} in object meta: {actual}"
        return conflict(*target.names, f"Precondition failed: {text}")
    happened = "deleted and then recreated" if field == "UID" else "modified"
    text = (
        f"the {field} in the precondition ({expected}) does not match the {field} in record"
        f" ({actual})."
        f" The object might have been {happened}"
    )
    return conflict(resource.kind, resource.group, target.name, text)


def check_options(options: Obj) -> None:
    """Reject invalid options."""
    problems: list[FieldError] = []
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is not None and orphan is not None:
        problems.append(
            Path("propagationPolicy").invalid(
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    if policy is not None and policy not in POLICIES:
        problems.append(
            Path("propagationPolicy").not_supported(
                policy, ("Foreground", "Background", "Orphan", "nil")
            )
        )
    if any(value != "All" for value in options.get("dryRun") or []):
        problems.append(Path("dryRun").not_supported(options["dryRun"], ("All",)))
    if problems:
        raise invalid("DeleteOptions", "meta.k8s.io", "", problems)
