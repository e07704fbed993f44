"""Deleting: at once, after a grace period, or when the last finalizer goes."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from sully.machinery.codec import copy
from sully.machinery.errors import BadRequest, NotFound, conflict, invalid, not_found
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Obj
from sully.machinery.timestamps import format_time
from sully.server.reads import Listing, Reader
from sully.server.requests import Request, Target
from sully.server.writes import Result, Writer, is_dry_run, without_version
from sully.store.base import Check, Delete, Record
from sully.store.errors import ConflictError

POLICIES = ("Background", "Foreground", "Orphan")


class Deleter:
    """Runs deletions of all kinds."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def delete(self, request: Request, options: Obj) -> Result:
        """Delete one object, or begin to."""
        check_options(options)
        target = request.target
        key = self._writer.objects.key(target)
        while True:
            record = self._writer.store.newest(key)
            if record is None:
                raise not_found(target.resource.plural, target.resource.group, target.name)
            self._check_preconditions(target, record, options)
            try:
                return await self._delete_state(request, record, options)
            except ConflictError:
                # Another process changed it in between: decide again on what is there now.
                continue

    async def delete_collection(self, request: Request, options: Obj, reader: Reader) -> Listing:
        """Delete all objects that the request selects; return them as they were."""
        check_options(options)
        listing = await reader.listing(request)
        target = request.target
        for record in listing.records:
            one = Target(target.resource, target.version, record.key.namespace, record.key.name)
            single = Request(request.user, one, request.options, request.user_agent)
            # Someone else may have been quicker.
            with suppress(NotFound):
                await self.delete(single, options)
        return listing

    def _check_preconditions(self, target: Target, record: Record, options: Obj) -> None:
        wanted = options.get("preconditions") or {}
        live = self._writer.objects.live(record)["metadata"]
        names = (target.resource.plural, target.resource.group, target.name)
        for option, word, actual in (
            ("uid", "UID", live["uid"]),
            ("resourceVersion", "ResourceVersion", live["resourceVersion"]),
        ):
            given = wanted.get(option)
            if given is not None and given != actual:
                where = "object meta" if word == "UID" else "record"
                shown = (
                    f"{word} in {where}: {actual}"
                    if word == "UID"
                    else f"{word} in record ({actual})"
                )
                text = (
                    f"Precondition failed: UID in precondition: {given}, {shown}"
                    if word == "UID"
                    else f"the {word} in the precondition ({given}) does not match the {shown}."
                    " The object might have been modified"
                )
                raise conflict(*names, text)

    async def _delete_state(self, request: Request, record: Record, options: Obj) -> Result:
        live = self._writer.objects.live(record)
        pending = self._pending(request, live, options)
        if pending is None:
            return await self._remove(request, record)
        if is_dry_run(request):
            return Result(pending)
        bare = without_version(pending)
        if bare == self._writer.objects.bare(record):
            await self._writer.commit([Check(record.key, record.revision)])
            return Result(live, record)
        stored = await self._writer.put(record.key, bare, record.revision)
        return Result(self._writer.objects.live(stored), stored)

    async def _remove(self, request: Request, record: Record) -> Result:
        """Take an object out of the store."""
        live = self._writer.objects.live(record)
        graceful = request.target.resource.grace_period is not None
        if graceful:
            # Watchers of kinds with a grace period are told that it is over before the end.
            live = self._marked(live, 0, first="deletionTimestamp" not in live["metadata"])
        if is_dry_run(request):
            return Result(live, deleted=True)
        if graceful:
            record = await self._writer.put(record.key, live, record.revision)
            live = self._writer.objects.live(record)
        done = await self._writer.commit([Delete(record.key, record.revision)])
        return Result(self._writer.objects.stamped(live, done.revision), deleted=True)

    def _pending(self, request: Request, live: Obj, options: Obj) -> Obj | None:
        """Return the object as it waits to go, or None if it can go now."""
        if request.target.resource.storage_key == "namespaces":
            return self._terminating_namespace(live)
        grace = self._grace(request, live, options)
        already = "deletionTimestamp" in live["metadata"]
        held = bool(live["metadata"].get("finalizers"))
        if grace <= 0 and not held:
            return None
        if already:
            left = live["metadata"].get("deletionGracePeriodSeconds", 0)
            asked = options.get("gracePeriodSeconds")
            if asked is None or asked >= left:
                return live
        return self._marked(live, grace, first=not already)

    def _grace(self, request: Request, live: Obj, options: Obj) -> int:
        usual = request.target.resource.grace_period
        if usual is None:
            return 0
        asked = options.get("gracePeriodSeconds")
        seconds = usual(live)
        if asked is None or seconds == 0:
            return seconds
        return max(int(asked), 0) if asked >= 0 else 1

    def _marked(self, live: Obj, grace: int, *, first: bool) -> Obj:
        obj: Obj = copy(live)
        metadata = obj["metadata"]
        now = self._writer.clock.now()
        metadata["deletionTimestamp"] = format_time(now + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if first and metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
        return obj

    def _terminating_namespace(self, live: Obj) -> Obj | None:
        if not live["spec"].get("finalizers") and not live["metadata"].get("finalizers"):
            return None
        if "deletionTimestamp" in live["metadata"]:
            return live
        obj: Obj = copy(live)
        obj["metadata"]["deletionTimestamp"] = format_time(self._writer.clock.now())
        obj["status"]["phase"] = "Terminating"
        return obj


def delete_options(request: Request, body: Any) -> Obj:
    """Merge the options of a deletion from its body and its URL; the body wins."""
    options: Obj = {}
    if request.option("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = _integer(request.option("gracePeriodSeconds"))
    for name in ("propagationPolicy", "dryRun"):
        if request.option(name):
            value = request.option(name)
            options[name] = [value] if name == "dryRun" else value
    if isinstance(body, dict):
        options |= {name: value for name, value in body.items() if value is not None}
    elif body is not None:
        raise BadRequest("the options of a deletion must be a DeleteOptions object")
    return options


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def check_options(options: Obj) -> None:
    """Refuse options that mean nothing."""
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
                policy, ("Background", "Foreground", "Orphan", "nil")
            )
        )
    if any(value != "All" for value in options.get("dryRun") or []):
        problems.append(Path("dryRun").not_supported(options["dryRun"], ("All",)))
    if problems:
        raise invalid("DeleteOptions", "meta.k8s.io", "", problems)
