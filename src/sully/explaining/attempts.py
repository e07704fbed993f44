"""Tries on a copy what the scheduler would do with a pod, also with something changed.

The judge is the scheduler's own (`controllers/scheduling/judging.py`), filled from a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sully.api.resource.claim_types import (
    DeviceRequest,
    DeviceToleration,
    ResourceClaim,
)
from sully.client.transport import Key
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.judging import Judge, Placed, Refused
from sully.controllers.scheduling.wishes import Options, unallocated
from sully.domain.allocation.accounts import Survey, account_for
from sully.domain.allocation.lapses import AsOf
from sully.domain.allocation.requests import Demand, prepare
from sully.domain.allocation.verdicts import Failed, Reason, Unresolved
from sully.domain.eviction import EVICTING_WITH_BUDGETS, Terms
from sully.domain.explaining.nearest import Largest, Trial
from sully.domain.explaining.waitingfacts import Attempt
from sully.domain.scheduling.account import Account
from sully.domain.scheduling.decisions import ERROR
from sully.domain.scheduling.extended import Backings
from sully.domain.scheduling.filters import rejects
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import requests_of
from sully.explaining.kinds import SEEN_PODS
from sully.views.kinds import CLAIMS, CLASSES
from sully.views.snapshot import Snapshot, StoppedClock
from sully.views.snapshotkinds import NODES

TERMS = Terms(effects=EVICTING_WITH_BUDGETS)
"""An effect that a server does not know was refused when it was written."""

OPTIONS = Options(eviction=TERMS)
_PASSING = (Reason.TAINT, Reason.IN_USE, Reason.COUNTERS, Reason.CONSTRAINT)
"""What speaks against a device that is of the right kind."""


class Attempts:
    """A scheduler that decides and acts on nothing."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._cluster = Cluster()
        self.devices = Devices(snapshot.inventory)
        self._backings = Backings()
        for node in snapshot.of(NODES).values():
            self._cluster.put(node)
        for pod in snapshot.of(SEEN_PODS).values():
            if pod.spec.node_name and not pod.finished:
                self._cluster.occupy(pod.metadata.uid, pod.spec.node_name, requests_of(pod))
        for class_ in snapshot.of(CLASSES).values():
            self._backings.change(None, class_)
        for claim in snapshot.of(CLAIMS).values():
            self.devices.claim_changed(None, claim)
        self._judge = self._judging(self._cluster)
        self._alone: dict[str, Judge] = {}

    def attempt(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Attempt:
        """Return what the scheduler would do with a pod whose claims are all there."""
        nodes = len(self._cluster)
        match self._prepared(claims):
            case Unresolved(message):
                return Attempt(unresolved=message, nodes=nodes)
            case Failed(error):
                return Attempt(error=error, nodes=nodes)
            case _:
                pass
        found = self._judge.judge(pod, claims)
        if isinstance(found, Placed):
            return Attempt(node=found.place.node, nodes=nodes)
        failed = found.why.reason == ERROR
        return Attempt(
            error=found.why.message if failed else "",
            message=found.why.message,
            account=found.account,
            rejections=self._rejections(pod),
            nodes=nodes,
        )

    def _prepared(self, claims: Sequence[ResourceClaim]) -> Demand | Unresolved | Failed:
        wanted, classes = unallocated(claims), self._snapshot.inventory.class_
        as_of = AsOf(self._snapshot.taken, self._snapshot.inventory.times)
        return prepare(wanted, classes, OPTIONS.heed, as_of)

    def tries(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Tries:
        """Return how to try things with a pod."""
        return Tries(self, pod, claims)

    def judge_of(self, node: str) -> Judge:
        """Return a judge who knows one node, or all."""
        if not node:
            return self._judge
        found = self._alone.get(node)
        if found is None:
            found = self._alone[node] = self._judging(self._only(node))
        return found

    def _judging(self, cluster: Cluster) -> Judge:
        return Judge(
            devices=self.devices,
            cluster=cluster,
            backings=self._backings,
            clock=StoppedClock(self._snapshot.taken),
            options=OPTIONS,
        )

    def _only(self, node: str) -> Cluster:
        cluster = Cluster()
        found = self._snapshot.get(NODES, Key("", node))
        if found is not None:
            cluster.put(found)
        for pod in self._snapshot.of(SEEN_PODS).values():
            if pod.spec.node_name == node and not pod.finished:
                cluster.occupy(pod.metadata.uid, node, requests_of(pod))
        return cluster

    def claim(self, name: str) -> ResourceClaim | None:
        """Return a claim by the name that accounts give it."""
        namespace, _, claim = name.partition("/")
        return self._snapshot.get(CLAIMS, Key(namespace, claim))

    def largest(self, pod: Pod, claims: Sequence[ResourceClaim]) -> dict[tuple[str, str], Largest]:
        """Return for each request the node with the most devices that could serve it."""
        demand = self._prepared(claims)
        found: dict[tuple[str, str], Largest] = {}
        if not isinstance(demand, Demand):
            return found
        requests = requests_of(pod)
        for state in self._cluster.by_load():
            if rejects(state, pod, requests) is not None:
                continue
            survey = Survey([self.devices.catalogue.offer(state.place)])
            for each in account_for(demand, survey, self.devices.ledger).requests:
                count = each.available + sum(each.refused.get(why, 0) for why in _PASSING)
                known = found.get((each.claim, each.request))
                if known is None or count > known.devices:
                    found[each.claim, each.request] = Largest(count, state.node.metadata.name)
        return found

    def holders_near(self, node: str) -> set[str]:
        """Return the claims with devices of pools that a node sees."""
        ledger, found = self.devices.ledger, set[str]()
        for pool in self._snapshot.inventory.pools_for(node):
            use = ledger.get(pool)
            for holders in use.holders.values() if use is not None else ():
                found.update(holders)
        return found

    def _rejections(self, pod: Pod) -> dict[str, tuple[str, ...]]:
        requests = requests_of(pod)
        backed = self._backings.backed(requests)
        found: dict[str, list[str]] = {}
        for state in self._cluster.by_load():
            rejection = rejects(state, pod, requests, backed)
            for reason in rejection.reasons if rejection is not None else ():
                found.setdefault(reason, []).append(state.node.metadata.name)
        return {reason: tuple(sorted(names)) for reason, names in found.items()}


class Tries:
    """Tries things with one pod."""

    def __init__(self, attempts: Attempts, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        self._attempts = attempts
        self._pod = pod
        self._claims = claims

    def node_for(self, trial: Trial, only: str = "") -> str:
        """Return where the pod would go with something changed; nothing if it would not."""
        found = self._judge(trial, only)
        return found.place.node if isinstance(found, Placed) else ""

    def account_after(self, trial: Trial) -> Account | None:
        """Return what would speak against devices with something changed."""
        found = self._judge(trial, "")
        return None if isinstance(found, Placed) else found.account

    def _judge(self, trial: Trial, only: str) -> Placed | Refused:
        devices = self._attempts.devices
        freed = [each for each in map(self._attempts.claim, trial.free) if each is not None]
        asking = [_tolerating(each, trial) for each in self._claims]
        for each in freed:
            devices.claim_changed(each, None)
        try:
            return self._attempts.judge_of(only).judge(self._pod, asking)
        finally:
            for each in freed:
                devices.claim_changed(None, each)

    def holders_near(self, node: str) -> set[str]:
        """Return the claims with devices that a node can use."""
        return self._attempts.holders_near(node)

    def largest(self) -> dict[tuple[str, str], Largest]:
        """Return for each request the node with the most devices that could serve it."""
        return self._attempts.largest(self._pod, self._claims)


def _tolerating(claim: ResourceClaim, trial: Trial) -> ResourceClaim:
    """Return a claim that tolerates more, if it is still to be allocated."""
    devices = claim.spec.devices
    if not trial.tolerate or claim.status.allocation is not None:
        return claim
    more = tuple(
        DeviceToleration(key=each.key, operator="Equal", value=each.value, effect=each.effect)
        for each in trial.tolerate
    )
    requests = tuple(_more_tolerant(each, more) for each in devices.requests or ())
    spec = replace(claim.spec, devices=replace(devices, requests=requests))
    return replace(claim, spec=spec)


def _more_tolerant(request: DeviceRequest, more: tuple[DeviceToleration, ...]) -> DeviceRequest:
    exactly = request.exactly
    if exactly is not None:
        exactly = replace(exactly, tolerations=(*exactly.tolerations, *more))
    choices = tuple(
        replace(each, tolerations=(*each.tolerations, *more)) for each in request.first_available
    )
    return replace(request, exactly=exactly, first_available=choices)
