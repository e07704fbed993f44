"""Turns further conditions of clusters into taints, as ClusterTaintPolicies say.

Reads clusters and policies; writes taints, together with an annotation that says which of them are
the policies' own, so that no taint of anybody else is ever taken away, also after a restart. The
decision is `domain/clusters/policies.py`; their status is in policy_status.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sully.api.cluster.policy_taints import OWNED, read_taint_ids, write_taint_ids
from sully.api.cluster.types import ManagedCluster
from sully.api.sully.types import ClusterTaintPolicy
from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import POLICING
from sully.controllers.clusters.writing import written_taints
from sully.controllers.conditions import same
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.clusters.policies import PolicyVerdict, policy_taints
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import CLUSTERS


class Rewritten:
    """Tells of policies that say something else than before: a source like an informer.

    The status of a policy follows the clusters; it must not send us to all clusters again.
    """

    def __init__(self, policies: Informer[ClusterTaintPolicy]) -> None:
        self._policies = policies

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[ClusterTaintPolicy], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that each change touches."""

        def handle(old: ClusterTaintPolicy | None, new: ClusterTaintPolicy | None) -> None:
            policy = new or old
            if policy is None or (old is not None and new is not None and _same(old, new)):
                return
            for key in to_keys(policy):
                add(key)

        return self._policies.on_change(handle)


def _same(old: ClusterTaintPolicy, new: ClusterTaintPolicy) -> bool:
    leaving = old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
    return leaving and old.spec == new.spec


class PolicyTaintController:
    """Taints clusters after policies."""

    name = POLICING

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        policies: Informer[ClusterTaintPolicy],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._policies = policies
        self._transport = transport
        self._clock = clock
        self._options = WriteOptions(field_manager=POLICING)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters; a policy may be for any of them."""
        yield Watch(self._clusters, own_key)
        yield Watch(Rewritten(self._policies), lambda _: list(self._clusters.keys()))

    async def reconcile(self, key: Key) -> Result:
        """Bring the taints of a cluster to what the policies say, and come back in time."""
        cluster = self._clusters.get(key)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            return DONE
        owned = read_taint_ids(cluster.metadata.annotations.get(OWNED, ""))
        if not owned and not self._policies.keys():
            return DONE
        now = self._clock.now()
        verdict = policy_taints(cluster, self._policies.values(), owned, now)
        if verdict.taints != cluster.spec.taints or verdict.owned != owned:
            await self._write(key, cluster, verdict)
        return Result(requeue_after=verdict.look_at - now) if verdict.look_at else DONE

    async def _write(self, key: Key, cluster: ManagedCluster, verdict: PolicyVerdict) -> None:
        patch = same(cluster.metadata)
        patch["metadata"]["annotations"] = {OWNED: write_taint_ids(verdict.owned) or None}
        patch["spec"] = {"taints": written_taints(verdict.taints)}
        await self._transport.patch(CLUSTERS, key, patch, options=self._options)
