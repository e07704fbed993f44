"""Subresources with verbs of their own: scale, binding, eviction, finalize.

What they do to an object is decided by pure functions beside the kinds (api/); here they are
fetched, asked and committed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sully.api.apps.scale import apply_scale, scale_of
from sully.api.core.namespaces import finalized, validate_finalizers
from sully.api.core.pods.binding import bind_pod, check_binding
from sully.api.policy.eviction import Eviction, check_eviction, decide_eviction, still_processed
from sully.machinery.codec import copy
from sully.machinery.decode import DecodeError, decode
from sully.machinery.errors import BadRequest, Conflict, conflict, invalid, method_not_allowed
from sully.machinery.patch.errors import PatchError
from sully.machinery.patch.json_patch import apply_json_patch
from sully.machinery.patch.merge_patch import apply_merge_patch
from sully.machinery.strategy import Obj
from sully.server.bodies import Body
from sully.server.deletes import Deleter
from sully.server.options import check_write_options
from sully.server.reads import Reader
from sully.server.requests import Request, Target
from sully.server.updates import Updater
from sully.server.writes import Writer, is_dry_run
from sully.store.base import Key
from sully.store.errors import ConflictError

SUCCESS: Obj = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_BUDGETS = "policy/poddisruptionbudgets"


@dataclass(slots=True)
class ConnectReply:
    """What a subresource answers."""

    obj: Obj
    code: int = 200
    warnings: list[str] = field(default_factory=list)


Handler = Callable[[Request, Body], ConnectReply]


class Connector:
    """Handles the subresources that are no part of the object itself."""

    def __init__(self, writer: Writer, updater: Updater, deleter: Deleter, reader: Reader) -> None:
        self._writer = writer
        self._updater = updater
        self._deleter = deleter
        self._reader = reader
        self._added: dict[tuple[str, str], Handler] = {}

    def add(self, resource: str, subresource: str, handler: Handler) -> None:
        """Let someone else answer what is posted to a subresource."""
        self._added[resource, subresource] = handler

    async def call(
        self, request: Request, method: str, patch_type: str, body: Body | None
    ) -> ConnectReply:
        """Run one request on a subresource."""
        await self._writer.catch_up()
        # Scaling is an update of the whole object and is looked at as one.
        if method == "POST" and body is not None:
            posted = body.value if isinstance(body.value, dict) else None
            self._writer.guard(request, "connect", posted)
        handler = self._added.get((request.target.resource.plural, request.target.subresource))
        if handler is not None and method == "POST" and body is not None:
            return handler(request, body)
        value = {} if body is None or body.value is None else body.value
        match request.target.subresource, method:
            case "scale", "GET":
                return await self._get_scale(request)
            case "scale", "PUT":
                return await self._replace_scale(request, value)
            case "scale", "PATCH":
                return await self._patch_scale(request, patch_type, value)
            case "binding", "POST":
                return await self._bind(request, self._decoded(value, "core", "Binding"))
            case "eviction", "POST":
                return await self._evict(request, self._decoded(value, "policy", "Eviction"))
            case "finalize", "PUT":
                return await self._finalize(request, value)
            case _:
                raise method_not_allowed()

    def _decoded(self, value: Any, group: str, kind: str) -> Obj:
        """Read the body of a kind that is never stored."""
        schema = self._writer.objects.scheme.tables.get(f"io.k8s.api.{group}.v1", kind)
        try:
            return decode(value, schema, [])
        except DecodeError as error:
            raise BadRequest(
                f'{kind} in version "v1" cannot be handled as a {kind}: {error}'
            ) from None

    # -- scale ------------------------------------------------------------------------------------

    async def _get_scale(self, request: Request) -> ConnectReply:
        record = await self._reader.get(_whole(request))
        return ConnectReply(_scale(self._writer.objects.live(record)))

    async def _replace_scale(self, request: Request, value: Any) -> ConnectReply:
        check_write_options(request, "UpdateOptions")
        scale = self._decoded(value, "autoscaling", "Scale")
        return await self._rescale(request, lambda _old: scale)

    async def _patch_scale(self, request: Request, patch_type: str, patch: Any) -> ConnectReply:
        check_write_options(request, "PatchOptions")

        def patched(old: Obj) -> Obj:
            run = apply_json_patch if patch_type.endswith("json-patch+json") else apply_merge_patch
            try:
                return self._decoded(run(_scale(old), patch), "autoscaling", "Scale")
            except PatchError as error:
                raise error.answer() from None

        return await self._rescale(request, patched)

    async def _rescale(self, request: Request, wanted: Any) -> ConnectReply:
        result = await self._updater.modify(
            request,
            lambda old: apply_scale(copy(old), wanted(old)),
            strategy=request.target.resource.strategy,
        )
        return ConnectReply(_scale(result.obj), warnings=result.warnings)

    # -- pods -------------------------------------------------------------------------------------

    async def _bind(self, request: Request, binding: Obj) -> ConnectReply:
        check_write_options(request, "CreateOptions")
        ctx = self._writer.context(request)
        check_binding(request.target.name, binding, ctx)
        # The rules of an update would forbid clients what a binding does.
        await self._updater.change_directly(
            _whole(request), lambda pod: bind_pod(pod, binding, ctx)
        )
        return ConnectReply(SUCCESS, 201)

    async def _evict(self, request: Request, eviction: Obj) -> ConnectReply:
        check_write_options(request, "CreateOptions")
        check_eviction(request.target.name, eviction)
        record = await self._reader.get(_whole(request))
        pod = self._writer.objects.live(record)
        options = eviction.get("deleteOptions") or {}
        _check_uid(request.target, pod, options)
        page = await self._writer.store.list(_BUDGETS, request.target.namespace)
        budgets = [self._writer.objects.live(budget) for budget in page.records]
        decision = decide_eviction(pod, budgets, self._writer.context(request))
        if not is_dry_run(request) and "All" not in (options.get("dryRun") or ()):
            await self._carry_out(request, decision, pod, options)
        return ConnectReply(SUCCESS, 201)

    async def _carry_out(
        self, request: Request, decision: Eviction, pod: Obj, options: Obj
    ) -> None:
        if decision.budget is not None:
            await self._spend(decision)
        whole = _whole(request)
        if "deletionTimestamp" not in pod["metadata"]:
            await self._mark(whole, decision, pod)
        try:
            await self._deleter.delete(whole, options)
        except Conflict as error:
            raise (still_processed(decision.budget_name) if decision.exact else error) from None

    async def _spend(self, decision: Eviction) -> None:
        """Write the budget first: a pod that goes without being counted would be one too many."""
        budget = copy(decision.budget)
        metadata = budget["metadata"]
        key = Key(_BUDGETS, metadata["namespace"], metadata["name"])
        try:
            await self._writer.put(key, budget, int(metadata["resourceVersion"]))
        except ConflictError:
            raise still_processed(metadata["name"]) from None

    async def _mark(self, request: Request, decision: Eviction, pod: Obj) -> None:
        uid = pod["metadata"]["uid"]

        def mark(live: Obj) -> Obj:
            if live["metadata"]["uid"] != uid:
                raise conflict("pods", "", request.target.name, "the pod was replaced")
            return {**live, "status": copy(decision.pod["status"])}

        await self._updater.change_directly(request, mark)

    # -- namespaces -------------------------------------------------------------------------------

    async def _finalize(self, request: Request, value: Obj) -> ConnectReply:
        check_write_options(request, "UpdateOptions")

        sent = self._decoded(value, "core", "Namespace")
        name = request.target.name

        def finalize(old: Obj) -> Obj:
            changed = finalized(old, sent)
            problems = list(validate_finalizers(changed))
            if problems:
                raise invalid("Namespace", "", name, problems)
            return changed

        result = await self._updater.change_directly(_whole(request), finalize)
        return ConnectReply({"kind": "Namespace", "apiVersion": "v1", **result.obj})


def _scale(obj: Obj) -> Obj:
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", **scale_of(obj)}


def _whole(request: Request) -> Request:
    """Return the same request for the object itself."""
    target = request.target
    plain = Target(target.resource, target.version, target.namespace, target.name)
    return Request(request.user, plain, request.options, request.user_agent)


def _check_uid(target: Target, pod: Obj, options: Obj) -> None:
    wanted = (options.get("preconditions") or {}).get("uid")
    actual = pod["metadata"]["uid"]
    if wanted is not None and wanted != actual:
        raise conflict(
            "Pod",
            "",
            target.name,
            f"the UID in the precondition ({wanted}) does not match the UID in record ({actual})."
            " The object might have been deleted and then recreated",
        )
