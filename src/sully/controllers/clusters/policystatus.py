"""Says in the status of a ClusterTaintPolicy how many clusters it is for, and how many it taints.

Reads policies and clusters; writes a condition when it changes, at most once a second for each
policy, because clusters change in crowds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.api.sully.types import ClusterTaintPolicy
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Transport
from sully.controllers.clusters.kinds import POLICIES, POLICING
from sully.controllers.conditions import write_conditions
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.clusters.policy_status import policy_finding
from sully.runtime.clock import Clock

INTERVAL = timedelta(seconds=1)


class PolicyStatusController:
    """Says how far policies reach."""

    name = "cluster-taint-policy-status"

    def __init__(
        self,
        *,
        policies: Informer[ClusterTaintPolicy],
        clusters: Informer[ManagedCluster],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._policies = policies
        self._clusters = clusters
        self._transport = transport
        self._clock = clock
        self._look_at: dict[Key, datetime] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for policies, and for clusters, which may be those of any policy."""
        yield Watch(self._policies, own_key)
        yield Watch(self._clusters, lambda _: list(self._policies.keys()))

    async def reconcile(self, key: Key) -> Result:
        """Count, and write what is news."""
        policy, now = self._policies.get(key), self._clock.now()
        if policy is None or policy.metadata.deletion_timestamp is not None:
            self._look_at.pop(key, None)
            return DONE
        look_at = self._look_at.get(key, now)
        if now < look_at:
            return Result(requeue_after=look_at - now)
        self._look_at[key] = now + INTERVAL
        found = [policy_finding(policy, self._clusters.values())]
        await write_conditions(self._transport, POLICIES, policy, found, now=now, by=POLICING)
        return DONE
