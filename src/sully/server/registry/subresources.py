"""Subresources with verbs of their own: binding, eviction, finalize, and scale (scale.py).

Pure functions of the kinds (api/) decide what they do to an object; here they are
read, called and committed.
"""

from collections.abc import Callable

from msgspec.structs import replace

from sully.api.core.namespaces import FINALIZE, finalized
from sully.api.core.pods.updates.binding import BINDING, bind_pod, check_binding
from sully.api.policy.eviction import (
    Eviction,
    check_eviction,
    decide_eviction,
    still_processed,
    with_disruption_target,
)
from sully.machinery.errors import (
    ApiError,
    BadRequest,
    Conflict,
    conflict,
    method_not_allowed,
    not_found,
)
from sully.machinery.serialization.codec import copy
from sully.machinery.strategy import Obj
from sully.server.registry.bodies.body import Body
from sully.server.registry.bodies.decoding import Decoded, decode_part
from sully.server.registry.bodies.kinds import check_part_kind
from sully.server.registry.deletes import Deleter, check_options
from sully.server.registry.metadata import check_namespace
from sully.server.registry.options import check_write_options
from sully.server.registry.replies import ConnectReply, parent_request
from sully.server.registry.scale import Scaling
from sully.server.registry.updates import Updater, check_name
from sully.server.registry.writes import ObjectWriter, is_dry_run, set_managed
from sully.server.requests import Request, Target
from sully.server.storage.reads import Reader
from sully.store.base import StoreKey
from sully.store.errors import ConflictError

SUCCESS: Obj = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_PART_VERSIONS = {
    "Binding": ("v1",),
    "Eviction": ("policy/v1", "policy/v1beta1"),
    "Namespace": ("v1",),
}
_BUDGETS = "policy/poddisruptionbudgets"
_SERVER = "kube-apiserver"
"""The field manager of what the server changes itself."""


Handler = Callable[[Request, Body], ConnectReply]


class Connector:
    """Handles the subresources other than status."""

    def __init__(
        self, writer: ObjectWriter, updater: Updater, deleter: Deleter, reader: Reader
    ) -> None:
        self._writer = writer
        self._updater = updater
        self._deleter = deleter
        self._reader = reader
        self._scaling = Scaling(writer, updater, reader)
        self._handlers: dict[tuple[str, str], Handler] = {}

    def over(self, writer: ObjectWriter, updater: Updater, deleter: Deleter) -> "Connector":
        """Return the same for the writes of a transaction."""
        other = Connector(writer, updater, deleter, self._reader)
        other._handlers = self._handlers
        return other

    def add(self, resource: str, subresource: str, handler: Handler) -> None:
        """Register the handler of POST to a subresource."""
        self._handlers[resource, subresource] = handler

    async def call(
        self, request: Request, method: str, patch_type: str, body: Body | None
    ) -> ConnectReply:
        """Run one request on a subresource."""
        await self._writer.catch_up()
        if request.target.resource.kind == BINDING:
            request = self._pod_request(request, body)
        namespace = request.target.namespace if method == "POST" else ""
        if namespace and self._writer.lookup("namespaces", "", namespace) is None:
            raise not_found("namespaces", "", namespace)
        if method == "POST" and body is not None:
            obj = body.value if isinstance(body.value, dict) else None
            self._writer.validate_admission(request, "connect", obj)
        handler = self._handlers.get((request.target.resource.plural, request.target.subresource))
        if handler is not None and method == "POST" and body is not None:
            return handler(request, body)
        content = body or Body({})
        match request.target.subresource, method:
            case "scale", _:
                return await self._scaling.call(request, method, patch_type, content)
            case "binding", "POST":
                check_write_options(request, "CreateOptions")
                decoded = self._decoded(request, content, "core", "Binding")
                decoded.warnings.extend(self._writer.review(request, "CREATE", decoded.obj))
                check_namespace(request.target, decoded.obj)
                try:
                    reply = await self._bind(request, decoded.obj)
                except ApiError as error:
                    error.warnings[:0] = decoded.warnings
                    raise
            case "eviction", "POST":
                check_write_options(request, "CreateOptions")
                decoded = self._decoded(request, content, "policy", "Eviction")
                decoded.warnings.extend(self._writer.review(request, "CREATE", decoded.obj))
                check_namespace(request.target, decoded.obj)
                try:
                    reply = await self._evict(request, decoded.obj)
                except ApiError as error:
                    error.warnings[:0] = decoded.warnings
                    raise
            case "finalize", "PUT":
                decoded = self._decoded(request, content, "core", "Namespace")
                reply = await self._finalize(request, decoded.obj)
            case _:
                raise method_not_allowed()
        reply.warnings[:0] = decoded.warnings
        return reply

    def _decoded(self, request: Request, body: Body, group: str, kind: str) -> Decoded:
        """Read the body of a kind that is never stored."""
        check_part_kind(self._writer.objects, body, (f"{group}.{kind}", _PART_VERSIONS[kind]))
        tables = self._writer.objects.scheme.tables
        return decode_part(request, tables.get(f"io.k8s.api.{group}.v1", kind), body)

    # -- pods -------------------------------------------------------------------------------------

    def _pod_request(self, request: Request, body: Body | None) -> Request:
        """Return a request for the binding endpoint of the pod that a posted binding names."""
        pods = self._writer.objects.scheme.find("", "v1", "pods")
        if body is None or pods is None:
            raise method_not_allowed()
        if not body.name:
            raise BadRequest("Name parameter required.")
        target = Target(pods, "v1", request.target.namespace, body.name, "binding")
        return Request(request.user, target, request.options, request.user_agent)

    async def _bind(self, request: Request, binding: Obj) -> ConnectReply:
        ctx = self._writer.context(request)
        check_binding(request.target.name, binding, ctx)
        # The validation of updates would reject what a binding changes.
        await self._updater.change_directly(
            parent_request(request), lambda pod: bind_pod(pod, binding, ctx)
        )
        return ConnectReply(SUCCESS, 201)

    async def _evict(self, request: Request, eviction: Obj) -> ConnectReply:
        check_eviction(request.target.name, eviction)
        options = eviction.get("deleteOptions") or {}
        dry_run = is_dry_run(request) or "All" in (options.get("dryRun") or ())
        while True:
            page = await self._writer.store.list(_BUDGETS, request.target.namespace)
            budgets = [self._writer.objects.live(budget) for budget in page.records]
            pod = self._writer.objects.live(self._writer.newest(request.target))
            check_options(options)
            _check(request.target, pod, options.get("preconditions") or {})
            decision = decide_eviction(pod, budgets, self._writer.context(request))
            if dry_run or await self._execute(request, decision, pod, options):
                return ConnectReply(SUCCESS, 201)

    async def _execute(self, request: Request, decision: Eviction, pod: Obj, options: Obj) -> bool:
        """Commit a decision; return False if the pod changed meanwhile."""
        requested, metadata = options.get("preconditions") or {}, pod["metadata"]
        names = ("uid", "resourceVersion") if decision.exact else ("uid",)
        preconditions = {name: metadata[name] for name in names} | requested
        if decision.budget is not None:
            await self._charge_budget(request, decision.budget)
        try:
            if "deletionTimestamp" not in metadata:
                preconditions = await self._set_condition(request, preconditions)
            await self._deleter.delete(
                parent_request(request), {**options, "preconditions": preconditions}
            )
        except Conflict:
            if not decision.exact or "resourceVersion" in requested:
                raise
            if decision.budget_name:
                raise still_processed(decision.budget_name) from None
            return False
        return True

    async def _charge_budget(self, request: Request, decided: Obj) -> None:
        """Update the budget before the eviction, so that each eviction is counted."""
        budget = copy(decided)
        metadata = budget["metadata"]
        set_managed(budget, self._managed_by_server(request, budget))
        key = StoreKey(_BUDGETS, metadata["namespace"], metadata["name"])
        try:
            await self._writer.put(key, budget, int(metadata["resourceVersion"]))
        except ConflictError:
            raise still_processed(metadata["name"]) from None

    def _managed_by_server(self, request: Request, budget: Obj) -> list[Obj]:
        """Return managedFields of a budget after the server itself changed its status."""
        metadata, scheme = budget["metadata"], self._writer.objects.scheme
        resource = scheme.stored(_BUDGETS)
        if resource is None:
            raise AssertionError(f"{_BUDGETS} are served")
        target = Target(resource, "v1", metadata["namespace"], metadata["name"], "status")
        own = replace(request, target=target, options={}, user_agent=_SERVER)
        live = self._writer.objects.live(self._writer.newest(target))
        strategy, context = self._writer.strategy(target), self._writer.context(own)
        return self._writer.track(own, live, budget, strategy, context)

    async def _set_condition(self, request: Request, preconditions: Obj) -> Obj:
        """Add the DisruptionTarget condition to a pod; return the preconditions of its deletion."""
        now = self._writer.context(request).now

        def mark(live: Obj) -> Obj:
            _check(request.target, live, preconditions)
            return with_disruption_target(live, now)

        result = await self._updater.change_directly(parent_request(request), mark)
        return {name: result.obj["metadata"][name] for name in preconditions}

    # -- namespaces -------------------------------------------------------------------------------

    async def _finalize(self, request: Request, namespace: Obj) -> ConnectReply:
        check_write_options(request, "UpdateOptions")
        check_name(request.target, namespace)
        result = await self._updater.modify(
            request, lambda old: finalized(old, namespace), strategy=FINALIZE
        )
        return ConnectReply({"kind": "Namespace", "apiVersion": "v1", **result.obj})


def _check(target: Target, pod: Obj, preconditions: Obj) -> None:
    for name, word, what in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        requested, actual = preconditions.get(name), pod["metadata"][name]
        if requested is not None and requested != actual:
            reason = (
                f"the {word} in the precondition ({requested}) does not match the {word} in record"
            )
            text = f"{reason} ({actual}). The object might have been {what}"
            raise conflict("Pod", "", target.name, text)
