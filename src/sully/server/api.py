"""The verbs of the API, independent of how a request arrives.

HTTP (http/) and the in-process transport (inprocess.py) both call these, so they share every
check and every error.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy

import msgspec
from msgspec.structs import replace

from sully.api.core.pods.updates.binding import BINDING
from sully.api.tables import META
from sully.machinery.compat import Compat
from sully.machinery.errors import method_not_allowed
from sully.machinery.gates import Gates
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.server.admission.claims import ClaimAdmission
from sully.server.admission.clusters import ClusterAdmission
from sully.server.admission.definitions import DefinitionLifecycle
from sully.server.admission.devices import DeviceAdmission
from sully.server.admission.expressions import compile_ahead
from sully.server.admission.node_restriction import NodeRestriction
from sully.server.admission.plugins import (
    AdmissionChain,
    AdmissionPlugin,
    NamespaceLifecycle,
    SystemPriorityClasses,
)
from sully.server.admission.policies import PolicyAdmission
from sully.server.admission.rule_history import RuleHistory
from sully.server.audit.log import AuditSink
from sully.server.authorization.authorizer import RbacAuthorizer
from sully.server.authorization.enforce import CreateOnUpdateCheck
from sully.server.authorization.escalation import EscalationCheck
from sully.server.authorization.reviews import Reviews
from sully.server.customresources.definitions import ServedDefinitions
from sully.server.registry.bodies.body import Body
from sully.server.registry.creates import Creator
from sully.server.registry.deletes import Deleter, delete_options, orphan_warnings
from sully.server.registry.options import check_write_options
from sully.server.registry.patches import Patcher
from sully.server.registry.staging import StagedWriter
from sully.server.registry.subresources import Connector
from sully.server.registry.updates import Updater
from sully.server.registry.virtual import VirtualResources
from sully.server.registry.writes import ObjectWriter, Result, store_errors
from sully.server.requests import Request
from sully.server.storage.objects import Objects
from sully.server.storage.reads import Listing, Reader
from sully.server.storage.watching import Random, WatchChange, Watcher
from sully.store.base import Record, Store


class Env(msgspec.Struct, frozen=True):
    """The environment: the clock, identifiers, randomness."""

    clock: Clock
    ids: Ids
    random: Random


class Api:
    """One API server over one store."""

    def __init__(
        self,
        *,
        scheme: Scheme,
        store: Store,
        env: Env,
        gates: Gates | None = None,
        compat: Compat = Compat.SULLY,
    ) -> None:
        clock, ids, random = env.clock, env.ids, env.random
        # A copy: definitions add kinds to it.
        scheme = self.scheme = scheme.copy()
        self.store = store
        self.clock = clock
        self.gates = gates or Gates()
        self.compat = compat
        self.objects = Objects(scheme)
        self.writer: ObjectWriter = ObjectWriter(
            store=store,
            objects=self.objects,
            clock=clock,
            ids=ids,
            gates=self.gates,
            compat=compat,
        )
        self.watcher = Watcher(store, self.objects, random, compat=compat)
        self.definitions = ServedDefinitions(store, self.objects, self.watcher)
        self._reader = Reader(store, self.objects, compat)
        self._creator = Creator(self.writer)
        self._updater = Updater(self.writer, self._creator)
        self._patcher = Patcher(self.writer, self._creator, self._updater)
        self._deleter = Deleter(self.writer)
        self._delete_schema = scheme.tables.get(META, "DeleteOptions")
        self._connector = Connector(self.writer, self._updater, self._deleter, self._reader)
        self.virtual = VirtualResources(self.writer)
        self.audit: AuditSink | None = None
        self._unused: list[tuple[Api, StagedWriter]] = []
        """What `staged` yields, while it is free."""
        self.authorizer = self.writer.authorizer = RbacAuthorizer(store, self.objects)
        Reviews(self.authorizer).register(self.virtual)
        self.quotas = self.writer.quotas
        self.priorities = self.writer.priorities
        self.limit_ranges = self.writer.limit_ranges
        self.devices = DeviceAdmission(store, self.objects, compat)
        self.policies = PolicyAdmission(store, self.objects, self.authorizer, self.writer.lookup)
        plugins: tuple[AdmissionPlugin, ...] = (
            NamespaceLifecycle(),
            SystemPriorityClasses(),
            DefinitionLifecycle(self.definitions),
            CreateOnUpdateCheck(self.authorizer),
            EscalationCheck(self.authorizer),
            NodeRestriction(self.authorizer, self.writer.lookup, compat),
            ClaimAdmission(self.authorizer, self.gates),
            ClusterAdmission(self.authorizer, self.writer.lookup, compat),
            self.devices,
            self.policies,
        )
        self.writer.admission = AdmissionChain(plugins)
        self.writer.policies = self.policies
        self.writer.recorders = (RuleHistory(store, self.objects, clock, env.ids),)

    @contextmanager
    def staged(self) -> Iterator[tuple["Api", StagedWriter]]:
        """Yield an API whose writes are committed together, and what commits them."""
        api, writer = self._unused.pop() if self._unused else self._new_staged()
        try:
            yield api, writer
        finally:
            writer.staged.clear()
            # To construct it costs as much as a small write.
            self._unused.append((api, writer))

    def _new_staged(self) -> tuple["Api", StagedWriter]:
        writer, api = StagedWriter(self.writer), copy(self)
        api.writer = writer
        api._creator = Creator(writer)
        api._updater = Updater(writer, api._creator)
        api._patcher = Patcher(writer, api._creator, api._updater)
        api._deleter = Deleter(writer)
        api._connector = self._connector.over(writer, api._updater, api._deleter)
        return api, writer

    async def get(self, request: Request) -> Record:
        """Read one object, or the status of one."""
        self._allow(request, "get")
        with store_errors():
            return await self._reader.get(request)

    async def list(self, request: Request) -> Listing:
        """Read a page of a list."""
        self._allow(request, "list")
        with store_errors():
            return await self._reader.listing(request)

    async def watch(self, request: Request) -> AsyncGenerator[Sequence[WatchChange], None]:
        """Follow a list."""
        self._allow(request, "watch")
        with store_errors():
            return await self.watcher.watch(request)

    def check_create(self, request: Request) -> None:
        """Reject a creation that needs no body for that."""
        self._allow(request, "create")
        check_write_options(request, "CreateOptions")

    async def create(self, request: Request, body: Body) -> Result:
        """Create an object."""
        self.check_create(request)
        if request.target.resource.virtual:
            return self.virtual.create(request, body)
        await compile_ahead(request, body.value, self.gates)
        await self.writer.catch_up()
        return await self._creator.create(request, body)

    def check_update(self, request: Request) -> None:
        """Reject an update that needs no body for that."""
        self._allow(request, "update")
        check_write_options(request, "UpdateOptions")

    async def update(self, request: Request, body: Body) -> Result:
        """Replace an object or its status."""
        self.check_update(request)
        await compile_ahead(request, body.value, self.gates)
        await self.writer.catch_up()
        return await self._updater.update(request, body)

    async def patch(self, request: Request, patch_type: str, body: Body) -> Result:
        """Change an object by a patch, or apply a configuration."""
        self._allow(request, "patch")
        check_write_options(request, "PatchOptions", apply="apply-patch" in patch_type)
        await compile_ahead(request, body.value, self.gates)
        await self.writer.catch_up()
        return await self._patcher.patch(replace(request, verb="patch"), patch_type, body)

    def deletion_warnings(self, request: Request, body: Obj | None) -> Iterator[str]:
        """Yield texts for Warning headers about what a deletion leaves behind."""
        if request.target.resource.orphans_by_default:
            yield from orphan_warnings(delete_options(request, body, self._delete_schema))

    async def delete(self, request: Request, body: Obj | None) -> Result:
        """Delete one object."""
        self._allow(request, "delete")
        options = delete_options(request, body, self._delete_schema)
        await self.writer.catch_up()
        return await self._deleter.delete(with_dry_run(request, options, self.compat), options)

    async def delete_collection(self, request: Request, body: Obj | None) -> Listing:
        """Delete every object that the request selects; return them."""
        self._allow(request, "deletecollection")
        options = delete_options(request, body, self._delete_schema)
        with store_errors():
            return await self._deleter.delete_collection(
                with_dry_run(request, options, self.compat), options, self._reader
            )

    def connects(self, request: Request) -> bool:
        """Report whether a request is for a subresource with verbs of its own."""
        target = request.target
        own = target.subresource in ("", "status") or target.subresource in target.resource.parts
        return not own or target.resource.kind == BINDING

    @property
    def connector(self) -> Connector:
        """Return the handler of scale, binding, eviction and finalize."""
        return self._connector

    def _allow(self, request: Request, verb: str) -> None:
        target = request.target
        if verb not in target.resource.verbs:
            raise method_not_allowed()
        if target.subresource and verb not in ("get", "update", "patch"):
            raise method_not_allowed()
        everywhere = target.resource.namespaced and not target.namespace
        if verb == "deletecollection" and everywhere:
            # Lists span all namespaces; deletions do not.
            raise method_not_allowed()


def with_dry_run(request: Request, options: Obj, compat: Compat) -> Request:
    """Return a deletion whose dry run is that of its body, if it has one."""
    dry_run = "All" if "All" in (options.get("dryRun") or ()) else ""
    if compat.honors_dry_run_of_url:
        dry_run = dry_run or request.option("dryRun")
    if dry_run == request.option("dryRun"):
        return request
    options = {**request.options, "dryRun": dry_run}
    return Request(request.user, request.target, options, request.user_agent)
