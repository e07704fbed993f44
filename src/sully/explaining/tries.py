"""Tries what the scheduler would do with one pod if something were different.

What is changed, devices that are given back, pods that leave, nodes that open, is changed for one
question and put back after it; attempts.py has the copy of the cluster that this is done to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec.structs import replace

from sully.api.resource.claim_types import DeviceRequest, DeviceToleration, ResourceClaim
from sully.api.resource.types import DeviceTaint
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.requests import claim_key
from sully.domain.explaining.openings import opening_of, too_much
from sully.domain.explaining.trials import Largest, Opening, TooMuch, Trial, Where
from sully.domain.planning.objects import PlannedPod
from sully.domain.scheduling.diagnosis import Diagnosis, Taint
from sully.domain.scheduling.filters import CORDONED, rejects
from sully.domain.scheduling.objects import Pod, Toleration
from sully.domain.scheduling.resources import requests_of
from sully.explaining.attempts import Attempts, Stage
from sully.explaining.kinds import SEEN_PODS
from sully.scheduler.judge import ScheduleResult, Unschedulable
from sully.views.kinds import CLAIMS, PATCHES
from sully.views.snapshot.kinds import NODES

_MOST_NODES: Final = 8
"""Nodes on which things are tried one by one."""


class Tries:
    """Tries things with one pod."""

    def __init__(self, attempts: Attempts, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        self._attempts = attempts
        self._snapshot = attempts.snapshot
        self._pod = pod
        self._claims = claims
        self._requests = requests_of(pod)
        self._backed = attempts.backings.backed(self._requests)

    # -- questions --------------------------------------------------------------------------------

    def node_for(self, trial: Trial, only: str = "") -> str:
        """Return where the pod would go with something changed; nothing if it would not."""
        opening = trial.opening
        if opening is not None and opening.unchosen:
            # Who makes the pod choose this node does not mean others that it would as well.
            only = opening.node
        found = self._judge(trial, only, diagnose=False)
        return found.node if isinstance(found, ScheduleResult) else ""

    def account_after(self, trial: Trial, only: str = "") -> Diagnosis | None:
        """Return what would speak against devices with something changed."""
        found = self._judge(trial, only)
        return None if isinstance(found, ScheduleResult) else found.diagnosis

    def nodes(self) -> list[str]:
        """Return nodes that take the pod, devices aside; of many, the emptiest."""
        taking = (
            state.node.metadata.name
            for state in self._attempts.states()
            if rejects(state, self._pod, self._requests, self._backed) is None
        )
        return list(islice(taking, _MOST_NODES))

    def openings(self) -> list[Opening]:
        """Return nodes that would take the pod if little changed; of many, the nearest."""
        found = (
            opening_of(state, self._pod, self._requests, self._backed)
            for state in self._attempts.states()
        )
        known = [each for each in found if each is not None]
        return sorted(known, key=lambda each: (each.full, each.size))[:_MOST_NODES]

    def too_much(self) -> list[TooMuch]:
        """Return what the pod asks for that no node has so much of."""
        return list(too_much(self._attempts.states(), self._requests, self._backed))

    def uncovers(self, taint: Taint, node: str) -> bool:
        """Say whether a patch stands before a taint of the driver, or of a patch that is second."""
        kind, _, name = taint.origin.partition("/")
        if kind != PATCHES.kind:
            return False
        like = (taint.key, taint.effect)
        seconds = (x for x in self._snapshot.of(PATCHES).values() if x.metadata.name != name)
        others = (one for each in seconds for one in each.spec.devices.taints)
        return any((one.key, one.effect) == like for one in (*others, *self._published(node)))

    def _published(self, node: str) -> Iterator[DeviceTaint]:
        """Yield the taints that drivers have put on devices that a node can use."""
        for id_ in self._snapshot.inventory.pools_for(node):
            pool = self._snapshot.inventory.pool(id_)
            for slice_ in pool.slices.values() if pool is not None else ():
                yield from (one for each in slice_.spec.devices for one in each.taints)
                yield from (each.taint for each in slice_.spec.taints)

    def holders_near(self, node: str) -> list[str]:
        """Return the claims with devices of pools that a node sees, but for those of partners."""
        ledger, found = self._attempts.devices.ledger, set[str]()
        for pool in self._snapshot.inventory.pools_for(node):
            use = ledger.get(pool)
            for holders in use.holders.values() if use is not None else ():
                found.update(holders)
        return sorted(found - self._kept)

    @cached_property
    def _partners(self) -> frozenset[Key]:
        """Return who uses claims of the pod: without them it would have to get devices anew."""
        holders = self._snapshot.usage.holders
        return frozenset(key_of(pod) for each in self._claims for pod in holders(each))

    @cached_property
    def _kept(self) -> frozenset[str]:
        """Return the claims of the pod, and those of its partners."""
        users = filter(None, map(self._snapshot.usage.pod, self._partners))
        theirs = (each for user in users for each in self._snapshot.usage.claims_of(user))
        return frozenset(claim_key(each) for each in (*self._claims, *theirs))

    def pods_on(self, node: str) -> list[str]:
        """Return who may leave a node: who goes anyway, then who has devices, then the largest."""

        def order(pod: PlannedPod) -> tuple[object, ...]:
            requests, user = requests_of(pod), self._snapshot.usage.pod(key_of(pod))
            takes = [-requests.get(name, 0) for name in sorted(self._requests)]
            holds = user is not None and any(self._snapshot.usage.claims_of(user))
            stays = pod.metadata.deletion_timestamp is None
            return stays, not (holds and self._claims), takes, pod.label

        leaving = (x for x in self._attempts.pods_on(node) if key_of(x) not in self._partners)
        return [each.label for each in sorted(leaving, key=order)]

    def largest(self) -> dict[Where, Largest]:
        """Return for each request the node with the most devices that could serve it."""
        return self._attempts.largest(self._pod, self._claims)

    # -- changes ----------------------------------------------------------------------------------

    def _judge(
        self, trial: Trial, only: str, *, diagnose: bool = True
    ) -> ScheduleResult | Unschedulable:
        stage = self._attempts.stage(only)
        pod = _let_on(self._pod, trial.opening) if trial.opening is not None else self._pod
        leaving, freed = self._gone(trial)
        asking = [_tolerating(each, trial) for each in self._claims]
        with self._without(stage, leaving, freed), self._opened(stage, trial.opening):
            return stage.judge.judge(pod, asking, self._snapshot.taken, diagnose=diagnose)

    def _gone(self, trial: Trial) -> tuple[list[PlannedPod], list[ResourceClaim]]:
        """Return who is gone after a trial, and which claims have no devices then.

        A claim is given back when all who use it leave, and then they leave everything they have.
        """
        usage = self._snapshot.usage
        named = list(filter(None, map(self._claim, trial.free)))
        keys = {_key(each) for each in trial.leave}
        keys |= {key_of(pod) for claim in named for pod in usage.holders(claim)}
        freed = {key_of(each): each for each in named}
        for user in filter(None, map(usage.pod, sorted(keys))):
            for claim in usage.claims_of(user):
                if keys.issuperset(map(key_of, usage.holders(claim))):
                    freed[key_of(claim)] = claim
        pods = (self._snapshot.get(SEEN_PODS, key) for key in sorted(keys))
        return [each for each in pods if each is not None], list(freed.values())

    def _claim(self, name: str) -> ResourceClaim | None:
        return self._snapshot.get(CLAIMS, _key(name))

    @contextmanager
    def _without(
        self, stage: Stage, pods: Sequence[PlannedPod], claims: Sequence[ResourceClaim]
    ) -> Iterator[None]:
        vacated = [each for each in pods if stage.cluster.remove_pod(each.metadata.uid)]
        devices = self._attempts.devices
        for claim in claims:
            devices.claim_changed(claim, None)
        try:
            yield
        finally:
            for claim in claims:
                devices.claim_changed(None, claim)
            for pod in vacated:
                stage.cluster.add_pod(pod.metadata.uid, pod.spec.node_name, requests_of(pod))

    @contextmanager
    def _opened(self, stage: Stage, opening: Opening | None) -> Iterator[None]:
        node = self._snapshot.get(NODES, Key("", opening.node)) if opening is not None else None
        if opening is None or node is None or not opening.cordoned:
            yield
            return
        taints = tuple(each for each in node.spec.taints if each.key != CORDONED.key)
        spec = replace(node.spec, unschedulable=False, taints=taints)
        stage.cluster.update_node(replace(node, spec=spec))
        try:
            yield
        finally:
            stage.cluster.update_node(node)


def _key(name: str) -> Key:
    namespace, _, rest = name.partition("/")
    return Key(namespace, rest)


def _let_on(pod: Pod, opening: Opening) -> Pod:
    """Return a pod that a node takes, as far as that is up to the pod."""
    spec = pod.spec
    more = tuple(
        Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect)
        for each in opening.taints
    )
    spec = replace(spec, tolerations=(*spec.tolerations, *more))
    if opening.unchosen:
        spec = replace(spec, node_selector={}, affinity=None)
    return replace(pod, spec=spec)


def _tolerating(claim: ResourceClaim, trial: Trial) -> ResourceClaim:
    """Return a claim that tolerates more, if it is still to be allocated."""
    devices = claim.spec.devices
    if not trial.tolerate or claim.status.allocation is not None:
        return claim
    more = tuple(
        DeviceToleration(key=each.key, operator="Equal", value=each.value, effect=each.effect)
        for each in trial.tolerate
    )
    name = claim_key(claim)
    where = None if trial.where is None else {of for of in trial.where if of[0] == name}
    requests = tuple(_more_tolerant(each, more, where) for each in devices.requests or ())
    spec = replace(claim.spec, devices=replace(devices, requests=requests))
    return replace(claim, spec=spec)


def _more_tolerant(
    request: DeviceRequest, more: tuple[DeviceToleration, ...], where: set[Where] | None
) -> DeviceRequest:
    named = None if where is None else {name for _, name in where}
    exactly = request.exactly
    if exactly is not None and (named is None or request.name in named):
        exactly = replace(exactly, tolerations=(*exactly.tolerations, *more))
    choices = tuple(
        replace(each, tolerations=(*each.tolerations, *more))
        if named is None or f"{request.name}/{each.name}" in named
        else each
        for each in request.first_available
    )
    return replace(request, exactly=exactly, first_available=choices)
