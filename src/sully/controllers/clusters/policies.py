"""Taints clusters by their conditions, as ClusterTaintPolicies specify, and reports on policies.

`PolicyTaintController` writes taints, and an annotation with those that the policies own, so that
it never removes a taint of others, also after a restart. Another annotation has what policies
store. `PolicyStatusController` reports how many clusters a policy selects and how many it
taints. The decisions are domain/clusters/policies.py, policy_limits.py and policy_status.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from sully.api.cluster.taints.policy_states import STATES, read_states, write_states
from sully.api.cluster.taints.policy_taints import OWNED, TaintId, read_taint_ids, write_taint_ids
from sully.api.cluster.types import ManagedCluster
from sully.api.sully.types import ClusterTaintPolicy
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.clusters.names import POLICY_CONTROLLER
from sully.controllers.clusters.taint_times import ClusterTaintWriter
from sully.controllers.framework.conditions import write_conditions
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Filtered
from sully.domain.clusters.policies import PolicyVerdict, policy_taints
from sully.domain.clusters.policy_limits import Member, policy_budget
from sully.domain.clusters.policy_status import policy_findings
from sully.domain.devicepolicies.limits import UnavailabilityBudget
from sully.runtime.clock import Clock
from sully.views.fleet_kinds import POLICIES


class PolicyTaintController:
    """Taints clusters as policies specify."""

    name = POLICY_CONTROLLER

    def __init__(
        self,
        *,
        clusters: Informer[ManagedCluster],
        policies: Informer[ClusterTaintPolicy],
        times: ClusterTaintWriter,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._policies = policies
        self._times = times
        self._transport = transport
        self._clock = clock
        self._options = WriteOptions(field_manager=POLICY_CONTROLLER)
        self._held: set[Key] = set()
        """Clusters whose taint waits for a limit."""
        self._budgets: dict[str, UnavailabilityBudget | None] = {}
        """The clusters of policies as counted last: a storm does not count them for each."""
        self._written: dict[Key, tuple[str, frozenset[TaintId]]] = {}
        """Taints that were written, by the version they replaced: the informer may lack them.

        Limits count it from before the write on: another worker may decide meanwhile.
        """

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for clusters; a policy may select any of them.

        A new status of a policy must not enqueue all clusters: it follows from them.
        """
        yield Watch(self._clusters, own_key)
        policies = Filtered(self._policies, _has_new_spec)
        yield Watch(policies, lambda _: self._recount(self._clusters.keys()))
        counted = Filtered(self._clusters, _counts_otherwise)
        yield Watch(counted, lambda _: self._recount(self._held))

    def _recount(self, keys: Iterable[Key]) -> list[Key]:
        self._budgets.clear()
        return list(keys)

    async def reconcile(self, key: Key) -> Result:
        """Write the taints of a cluster, and requeue it for when they change next."""
        cluster = self._clusters.get(key)
        self._held.discard(key)
        if cluster is None or cluster.metadata.deletion_timestamp is not None:
            self._written.pop(key, None)
            return DONE
        self._check_written(key, cluster)
        annotations = cluster.metadata.annotations
        owned, text = read_taint_ids(annotations.get(OWNED, "")), annotations.get(STATES, "")
        if not owned and not text and not self._policies.keys():
            return DONE
        now, states = self._clock.now(), read_states(text)
        verdict = policy_taints(
            cluster,
            self._policies.values(),
            owned,
            now,
            states=states,
            refusal=lambda policy: self._refusal(policy, key),
        )
        requeue_at = verdict.requeue_at
        if any(state.held_back for state in verdict.states):
            self._held.add(key)
            requeue_at = min(requeue_at or now + RECOUNT, now + RECOUNT)
        changed = verdict.taints != cluster.spec.taints or verdict.owned != owned
        if changed or write_states(verdict.states) != text:
            await self._write(key, cluster, verdict)
        return Result(requeue_after=requeue_at - now) if requeue_at else DONE

    def _check_written(self, key: Key, cluster: ManagedCluster) -> None:
        """Forget a write that the informer has; count again, because one may have failed."""
        if key in self._written:
            self._budgets.clear()
            if self._written[key][0] != cluster.metadata.resource_version:
                del self._written[key]

    def _refusal(self, policy: ClusterTaintPolicy, key: Key) -> str:
        name = policy.metadata.name
        if name not in self._budgets:
            self._budgets[name] = policy_budget(policy, self._members(key))
        budget = self._budgets[name]
        return budget.spend(key.name) if budget is not None else ""

    def _members(self, own: Key) -> Iterator[Member]:
        """Yield all clusters, with what was written to the others last: a write may have failed."""
        for cluster in self._clusters.values():
            key = key_of(cluster)
            replaced, owned = self._written.get(key, ("", frozenset()))
            if key == own or replaced != cluster.metadata.resource_version:
                owned = read_taint_ids(cluster.metadata.annotations.get(OWNED, ""))
            yield Member(key.name, cluster.metadata.labels, owned)

    async def _write(self, key: Key, cluster: ManagedCluster, verdict: PolicyVerdict) -> None:
        if verdict.owned != read_taint_ids(cluster.metadata.annotations.get(OWNED, "")):
            self._budgets.clear()
            self._written[key] = (cluster.metadata.resource_version, verdict.owned)
        await self._times.write(
            self._transport,
            cluster,
            verdict.taints,
            self._options,
            annotations={
                OWNED: write_taint_ids(verdict.owned) or None,
                STATES: write_states(verdict.states) or None,
            },
        )


RECOUNT = timedelta(minutes=1)
"""How long a cluster waits at most until its limit is checked again, if no change is seen."""
INTERVAL = timedelta(seconds=1)
"""The least time between two reports on a policy: many clusters change together."""


class PolicyStatusController:
    """Reports how many clusters policies select."""

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
        self._due: dict[Key, datetime] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for policies, and for clusters, which any policy may select."""
        yield Watch(self._policies, own_key)
        yield Watch(self._clusters, lambda _: list(self._policies.keys()))

    async def reconcile(self, key: Key) -> Result:
        """Count, and write what has changed."""
        policy, now = self._policies.get(key), self._clock.now()
        if policy is None or policy.metadata.deletion_timestamp is not None:
            self._due.pop(key, None)
            return DONE
        due = self._due.get(key, now)
        if now < due:
            return Result(requeue_after=due - now)
        self._due[key] = now + INTERVAL
        findings = policy_findings(policy, self._clusters.values())
        await write_conditions(
            self._transport, POLICIES, policy, findings, now=now, field_manager=POLICY_CONTROLLER
        )
        return DONE


def _has_new_spec(old: ClusterTaintPolicy | None, new: ClusterTaintPolicy | None) -> bool:
    if old is None or new is None:
        return True
    deleted = old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
    return deleted or old.spec != new.spec


def _counts_otherwise(old: ManagedCluster | None, new: ManagedCluster | None) -> bool:
    """Report whether limits may count a cluster in another way than before."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    owned = before.annotations.get(OWNED) != after.annotations.get(OWNED)
    return owned or before.labels != after.labels
