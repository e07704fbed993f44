"""Accepts clusters: a namespace and permissions for the agent of each accepted cluster.

`AcceptanceController` follows `hubAcceptsClient`, `CleanupController` removes the permissions when
a cluster is deleted. They are two, because a cluster can be accepted even if it cannot be changed,
not even by a finalizer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.client.events import Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.names import ACCEPTANCE_CONTROLLER
from sully.controllers.clusters.permissions import AgentPermissions
from sully.controllers.framework.conditions import preconditions, write_conditions
from sully.controllers.framework.controller import DONE, REQUEUE, ControllerEnv, Result, Watch
from sully.domain.clusters.hub import ADMITTED, DENIED, FINALIZER, acceptance_error, is_accepted
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.errors import NotFound
from sully.views.fleet_kinds import CLUSTERS


class AcceptanceController:
    """Grants and restricts the permissions of agents."""

    name = ACCEPTANCE_CONTROLLER

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        permissions: AgentPermissions,
        env: ControllerEnv,
    ) -> None:
        self._clusters = clusters
        self._permissions = permissions
        self._transport, self._recorder, self._clock = env

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters, and for the objects that belong to them."""
        yield Watch(self._clusters, own_key)
        yield from self._permissions.watches()

    async def reconcile(self, key: Key) -> Result:
        """Accept or deny a cluster; one that was never accepted is ignored."""
        cluster = self._clusters.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            return DONE
        if cluster.spec.hub_accepts_client:
            return await self._accept(cluster)
        # The agent can write the status, so the condition alone does not decide.
        if is_accepted(cluster) or self._permissions.is_granted(key.name):
            await self._permissions.restrict(key.name)
            if await self._write_condition(cluster, DENIED):
                self._record_event(key.name, "ManagedClusterDenied", "denied")
        return DONE

    async def _accept(self, cluster: ManagedCluster) -> Result:
        name = cluster.metadata.name
        errors = await self._permissions.grant(name)
        # Others may have changed the new cluster in the meantime.
        cluster = self._clusters.get(Key("", name)) or cluster
        if errors:
            await self._write_condition(cluster, acceptance_error(errors))
            return REQUEUE
        if await self._write_condition(cluster, ADMITTED):
            self._record_event(name, "ManagedClusterAccepted", "accepted")
        return DONE

    async def _write_condition(self, cluster: ManagedCluster, finding: PlacementCondition) -> bool:
        return await write_conditions(
            self._transport,
            CLUSTERS,
            cluster,
            [finding],
            now=self._clock.now(),
            field_manager=self.name,
        )

    def _record_event(self, cluster: str, reason: str, verb: str) -> None:
        about = Reference(CLUSTERS.api_version, CLUSTERS.kind, Key(cluster, cluster))
        text = f"managed cluster {cluster} is {verb} by hub cluster admin"
        self._recorder.event(about, "Normal", reason, text)


class CleanupController:
    """Keeps a deleted cluster until the permissions of its agent are removed."""

    name = "managed-cluster-cleanup"

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        permissions: AgentPermissions,
        transport: Transport,
    ) -> None:
        self._clusters = clusters
        self._permissions = permissions
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters."""
        yield Watch(self._clusters, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Add our finalizer to a cluster; remove it when a deleted one is cleaned up."""
        cluster = self._clusters.get(key)
        if cluster is None:
            return DONE
        has_finalizer = FINALIZER in cluster.metadata.finalizers
        if cluster.metadata.deletion_timestamp is None:
            if not has_finalizer:
                await self._write(cluster, (*cluster.metadata.finalizers, FINALIZER))
        elif has_finalizer:
            await self._permissions.revoke(key.name)
            others = (name for name in cluster.metadata.finalizers if name != FINALIZER)
            await self._write(cluster, others)
        return DONE

    async def _write(self, cluster: ManagedCluster, finalizers: Iterable[str]) -> None:
        patch = preconditions(cluster.metadata)
        patch["metadata"]["finalizers"] = list(finalizers)
        options = WriteOptions(field_manager=ACCEPTANCE_CONTROLLER)
        key = Key("", cluster.metadata.name)
        try:
            await self._transport.patch(CLUSTERS, key, patch, options=options)
        except NotFound:
            return
