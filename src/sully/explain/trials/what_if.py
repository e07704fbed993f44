"""Simulates what the scheduler would do with one pod if something were different.

Claims that are deallocated, pods that are removed and nodes that are uncordoned are changed in the
copy of the cluster (scheduler.py) for one trial, and put back after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec.structs import replace

from sully.api.resource.types import DeviceRequest, DeviceTaint, DeviceToleration, ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.requests import claim_key
from sully.domain.scheduling.diagnosis import BlockingTaint, Diagnosis
from sully.domain.scheduling.filters import (
    CORDONED,
    NodeInfo,
    is_cordoned,
    matches_node_affinity,
    run_filters,
    untolerated_taints,
)
from sully.domain.scheduling.objects import Pod, Toleration
from sully.domain.scheduling.resources import requests_of, shortages
from sully.explain.trials.changes import Change, Excess, LargestNode, NodeObstacles, RequestName
from sully.explain.trials.scheduler import SchedulerCopy, ScheduleResult, Stage, Unschedulable
from sully.machinery.formats.quantity import BINARY_SI, DECIMAL_SI, Quantity
from sully.views.kinds import CLAIMS, PATCHES
from sully.views.snapshot.kinds import NODES, PODS

_MAX_NODES: Final = 8
"""Nodes on which changes are tried one by one."""


class PodTrials:
    """Simulates changes for one pod; the `WhatIf` that search.py searches with."""

    def __init__(self, copy: SchedulerCopy, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        self._copy = copy
        self._snapshot = copy.snapshot
        self._usage = copy.snapshot.usage
        self._pod = pod
        self._claims = claims
        self._requests = requests_of(pod)
        self._backed = copy.backings.backed(self._requests)

    # -- questions --------------------------------------------------------------------------------

    def node_for(self, change: Change, only: str = "") -> str:
        obstacles = change.obstacles
        if obstacles is not None and obstacles.unselected:
            # A pod that is changed to match this node need not match others.
            only = obstacles.node
        verdict = self._judge(change, only, diagnose=False)
        return verdict.node if isinstance(verdict, ScheduleResult) else ""

    def diagnosis_after(self, change: Change, only: str = "") -> Diagnosis | None:
        verdict = self._judge(change, only)
        return None if isinstance(verdict, ScheduleResult) else verdict.diagnosis

    def nodes(self) -> list[str]:
        fitting = (
            state.node.metadata.name
            for state in self._copy.states()
            if run_filters(state, self._pod, self._requests, self._backed) is None
        )
        return list(islice(fitting, _MAX_NODES))

    def obstacles(self) -> list[NodeObstacles]:
        known = filter(None, map(self._obstacles_of, self._copy.states()))
        return sorted(known, key=lambda node: (node.full, node.size))[:_MAX_NODES]

    def _obstacles_of(self, state: NodeInfo) -> NodeObstacles | None:
        """Return what must change on a node; None if nothing must, or if it is too small."""
        lacking = list(shortages(self._requests, state.resources, self._backed))
        if run_filters(state, self._pod, self._requests, self._backed) is None:
            return None
        if not all(shortage.could_fit for shortage in lacking):
            return None
        cordoned = is_cordoned(state.node, self._pod)
        return NodeObstacles(
            node=state.node.metadata.name,
            cordoned=cordoned,
            taints=tuple(
                taint
                for taint in untolerated_taints(state.node, self._pod)
                # The taint of a cordon is removed with it.
                if not (cordoned and taint.key == CORDONED.key)
            ),
            unselected=not matches_node_affinity(self._pod, state.target),
            full=bool(lacking),
        )

    def exceeding(self) -> list[Excess]:
        states, excesses = list(self._copy.states()), []
        for name, amount in sorted(self._requests.items()):
            most = max((state.resources.allocatable.get(name, 0) for state in states), default=0)
            if amount > most and name not in self._backed:
                largest = _quantity(name, most) if most else ""
                excesses.append(Excess(name, _quantity(name, amount), largest))
        return excesses

    def reveals(self, taint: BlockingTaint, node: str) -> bool:
        """Report whether a patch hides a taint of the driver, or of a patch with less priority."""
        kind, _, name = taint.origin.partition("/")
        if kind != PATCHES.kind:
            return False
        patches = self._snapshot.of(PATCHES).values()
        others = (
            hidden
            for patch in patches
            if patch.metadata.name != name
            for hidden in patch.spec.devices.taints
        )
        return any(
            (hidden.key, hidden.effect) == (taint.key, taint.effect)
            for hidden in (*others, *self._published(node))
        )

    def _published(self, node: str) -> Iterator[DeviceTaint]:
        """Yield the taints that drivers have put on devices that a node can use."""
        for id_ in self._snapshot.inventory.pools_for(node):
            pool = self._snapshot.inventory.pool(id_)
            for slice_ in pool.slices.values() if pool is not None else ():
                yield from (taint for device in slice_.spec.devices for taint in device.taints)
                yield from (entry.taint for entry in slice_.spec.taints)

    def claims_near(self, node: str) -> list[str]:
        """Return the claims with devices of pools that a node sees, except shared ones."""
        ledger, claims = self._copy.devices.ledger, set[str]()
        for pool in self._snapshot.inventory.pools_for(node):
            use = ledger.get(pool)
            for holders in use.holders.values() if use is not None else ():
                claims.update(holders)
        return sorted(claims - self._in_use)

    @cached_property
    def _sharing(self) -> frozenset[Key]:
        """Return the pods that share claims with the pod: without them it would need devices."""
        holders = self._usage.consumers
        return frozenset(key_of(pod) for claim in self._claims for pod in holders(claim))

    @cached_property
    def _in_use(self) -> frozenset[str]:
        """Return the claims of the pod, and of the pods that share them."""
        pods = filter(None, map(self._usage.pod, self._sharing))
        theirs = (claim for pod in pods for claim in self._usage.claims_of(pod))
        return frozenset(map(claim_key, (*self._claims, *theirs)))

    def pods_on(self, node: str) -> list[str]:
        """Return first the terminating pods, then those with devices, then the largest."""

        def order(pod: Pod) -> tuple[object, ...]:
            requests, user = requests_of(pod), self._usage.pod(key_of(pod))
            takes = [-requests.get(name, 0) for name in sorted(self._requests)]
            holds = user is not None and any(self._usage.claims_of(user))
            return not pod.is_terminating, not (holds and self._claims), takes, pod.label

        pods = (pod for pod in self._copy.pods_on(node) if key_of(pod) not in self._sharing)
        return [pod.label for pod in sorted(pods, key=order)]

    def largest(self) -> Mapping[RequestName, LargestNode]:
        return self._copy.largest(self._pod, self._claims)

    # -- changes ----------------------------------------------------------------------------------

    def _judge(
        self, change: Change, only: str, *, diagnose: bool = True
    ) -> ScheduleResult | Unschedulable:
        stage, obstacles = self._copy.stage(only), change.obstacles
        pod = _adapted(self._pod, obstacles) if obstacles is not None else self._pod
        pods, claims = self._removed(change)
        tolerating = [_tolerating(claim, change) for claim in self._claims]
        with self._without(stage, pods, claims), self._uncordoned(stage, obstacles):
            return stage.algorithm.schedule(
                pod, tolerating, self._copy.snapshot.taken, diagnose=diagnose
            )

    def _removed(self, change: Change) -> tuple[list[Pod], list[ResourceClaim]]:
        """Return the pods that are gone after a change, and the claims that have no devices then.

        A claim is deallocated when all pods that use it are gone, with all their other claims.
        """
        usage, get = self._usage, self._snapshot.get
        named = [claim for name in change.deallocate if (claim := get(CLAIMS, key_from(name)))]
        keys = set(map(key_from, change.remove))
        keys |= {key_of(pod) for claim in named for pod in usage.consumers(claim)}
        freed = {key_of(claim): claim for claim in named}
        for user in filter(None, map(usage.pod, sorted(keys))):
            for claim in usage.claims_of(user):
                if keys.issuperset(map(key_of, usage.consumers(claim))):
                    freed[key_of(claim)] = claim
        pods = [pod for key in sorted(keys) if (pod := get(PODS, key))]
        return pods, list(freed.values())

    @contextmanager
    def _without(
        self, stage: Stage, pods: Sequence[Pod], claims: Sequence[ResourceClaim]
    ) -> Iterator[None]:
        # One node alone does not show which pods are near.
        clusters = dict.fromkeys((stage.cluster, self._copy.every_node))
        vacated = [(x, pod) for x in clusters for pod in pods if x.remove_pod(pod.metadata.uid)]
        devices = self._copy.devices
        for claim in claims:
            devices.claim_changed(claim, None)
        try:
            yield
        finally:
            for claim in claims:
                devices.claim_changed(None, claim)
            for cluster, pod in vacated:
                cluster.add_pod(pod, pod.spec.node_name, requests_of(pod))

    @contextmanager
    def _uncordoned(self, stage: Stage, obstacles: NodeObstacles | None) -> Iterator[None]:
        cordoned = obstacles is not None and obstacles.cordoned
        node = self._snapshot.get(NODES, Key("", obstacles.node)) if obstacles else None
        if node is None or not cordoned:
            yield
            return
        taints = tuple(taint for taint in node.spec.taints if taint.key != CORDONED.key)
        spec = replace(node.spec, unschedulable=False, taints=taints)
        stage.cluster.update_node(replace(node, spec=spec))
        try:
            yield
        finally:
            stage.cluster.update_node(node)


def key_from(name: str) -> Key:
    """Read `namespace/name`."""
    namespace, _, rest = name.partition("/")
    return Key(namespace, rest)


def _quantity(resource: str, amount: int) -> str:
    in_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return str(Quantity(amount, BINARY_SI if in_bytes else DECIMAL_SI))


def _adapted(pod: Pod, obstacles: NodeObstacles) -> Pod:
    """Return a pod that fits a node, as far as that is up to the pod."""
    spec = pod.spec
    more = tuple(
        Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        for taint in obstacles.taints
    )
    spec = replace(spec, tolerations=(*spec.tolerations, *more))
    if obstacles.unselected:
        spec = replace(spec, node_selector={}, affinity=None)
    return replace(pod, spec=spec)


def _tolerating(claim: ResourceClaim, change: Change) -> ResourceClaim:
    """Return a claim that tolerates more, if it is still to be allocated."""
    devices = claim.spec.devices
    if not change.tolerate or claim.status.allocation is not None:
        return claim
    more = tuple(
        DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        for taint in change.tolerate
    )
    names = None
    if change.requests is not None:
        key = claim_key(claim)
        names = {request for of, request in change.requests if of == key}
    requests = tuple(_more_tolerant(request, more, names) for request in devices.requests or ())
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _more_tolerant(
    request: DeviceRequest, more: tuple[DeviceToleration, ...], names: set[str] | None
) -> DeviceRequest:
    exactly = request.exactly
    if exactly is not None and (names is None or request.name in names):
        exactly = replace(exactly, tolerations=(*exactly.tolerations, *more))
    alternatives = tuple(
        replace(choice, tolerations=(*choice.tolerations, *more))
        if names is None or f"{request.name}/{choice.name}" in names
        else choice
        for choice in request.first_available
    )
    return replace(request, exactly=exactly, first_available=alternatives)
