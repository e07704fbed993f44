"""Subresources with verbs of their own: scale, binding, eviction, finalize.

What they do to an object is decided by pure functions beside the kinds (api/); here they are
fetched, asked and committed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sully.api.apps.scale import apply_scale, scale_of
from sully.api.core.namespaces import finalized, validate_finalizers
from sully.api.core.pods.binding import BINDING, bind_pod, check_binding
from sully.api.policy.eviction import (
    Eviction,
    check_eviction,
    decide_eviction,
    marked,
    still_processed,
)
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
        if request.target.resource.kind == BINDING:
            request = self._to_pod(request, body)
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

    def _to_pod(self, request: Request, body: Body | None) -> Request:
        """Return a request for the binding endpoint of the pod that a posted binding names."""
        pods = self._writer.objects.scheme.find("", "v1", "pods")
        if body is None or pods is None:
            raise method_not_allowed()
        target = Target(pods, "v1", request.target.namespace, body.name, "binding")
        return Request(request.user, target, request.options, request.user_agent)

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
        options = eviction.get("deleteOptions") or {}
        dry_run = is_dry_run(request) or "All" in (options.get("dryRun") or ())
        while True:
            page = await self._writer.store.list(_BUDGETS, request.target.namespace)
            budgets = [self._writer.objects.live(budget) for budget in page.records]
            pod = self._writer.objects.live(self._writer.newest(request.target))
            _check(request.target, pod, options.get("preconditions") or {})
            decision = decide_eviction(pod, budgets, self._writer.context(request))
            if dry_run or await self._carry_out(request, decision, pod, options):
                return ConnectReply(SUCCESS, 201)

    async def _carry_out(
        self, request: Request, decision: Eviction, pod: Obj, options: Obj
    ) -> bool:
        """Do what was decided; return whether it was, for the pod may have changed meanwhile."""
        given, looked_at = options.get("preconditions") or {}, pod["metadata"]
        names = ("uid", "resourceVersion") if decision.exact else ("uid",)
        wanted = {name: looked_at[name] for name in names} | given
        if decision.budget is not None:
            await self._spend(decision)
        try:
            if "deletionTimestamp" not in looked_at:
                wanted = await self._mark(request, wanted)
            await self._deleter.delete(_whole(request), {**options, "preconditions": wanted})
        except Conflict:
            if not decision.exact or "resourceVersion" in given:
                raise
            if decision.budget_name:
                raise still_processed(decision.budget_name) from None
            return False
        return True

    async def _spend(self, decision: Eviction) -> None:
        """Write the budget first: a pod that goes without being counted would be one too many."""
        budget = copy(decision.budget)
        metadata = budget["metadata"]
        key = Key(_BUDGETS, metadata["namespace"], metadata["name"])
        try:
            await self._writer.put(key, budget, int(metadata["resourceVersion"]))
        except ConflictError:
            raise still_processed(metadata["name"]) from None

    async def _mark(self, request: Request, wanted: Obj) -> Obj:
        """Say of a pod why it goes, if it is the one; return what the marked one must be."""
        now = self._writer.context(request).now

        def mark(live: Obj) -> Obj:
            _check(request.target, live, wanted)
            return marked(live, now)

        result = await self._updater.change_directly(_whole(request), mark)
        return {name: result.obj["metadata"][name] for name in wanted}

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


def _check(target: Target, pod: Obj, wanted: Obj) -> None:
    for name, word, what in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        given, actual = wanted.get(name), pod["metadata"][name]
        if given is not None and given != actual:
            why = f"the {word} in the precondition ({given}) does not match the {word} in record"
            text = f"{why} ({actual}). The object might have been {what}"
            raise conflict("Pod", "", target.name, text)
