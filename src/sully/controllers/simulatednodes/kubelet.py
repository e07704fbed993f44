"""The kubelets of simulated nodes (like kwok): pods start, run and terminate.

Reads bound pods, simulated nodes and claims; writes the status of pods and deletes terminated ones.
The decision is `domain.simulated.kubelet.next_step`. One queue serves all nodes: a pod costs
nothing between two steps, and a node costs nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim
from sully.client.events import Reference
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.options import DeleteOptions, PatchType, WriteOptions
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.sources import Filtered
from sully.controllers.simulatednodes.nodes import USER_AGENT, SimulatedNode
from sully.domain.claims.reservations import reserved_for
from sully.domain.scheduling.objects import Pod
from sully.domain.simulated import statuses
from sully.domain.simulated.fleet import Fleet, PodDelays, address_of, pod_network
from sully.domain.simulated.kubelet import (
    Create,
    End,
    Remove,
    RequeueAt,
    Rest,
    Run,
    Seen,
    UpdateReadiness,
    next_step,
)
from sully.domain.simulated.pods import EXIT, claim_names, parse_exit
from sully.machinery.errors import NotFound
from sully.views.snapshot.kinds import PODS

WORKERS = 16
_OPTIONS = WriteOptions(field_manager=USER_AGENT)
_NODE, _CLAIM = "simulated/node", "simulated/claim"


class SimulatedKubelet:
    """Simulates the pods of simulated nodes."""

    name = "simulated-kubelet"

    def __init__(
        self,
        *,
        fleet: Fleet,
        pods: Informer[Pod],
        nodes: Informer[SimulatedNode],
        claims: Informer[ResourceClaim],
        env: ControllerEnv,
        delays: PodDelays,
    ) -> None:
        self._fleet = fleet
        self._pods = pods
        self._nodes = nodes
        self._claims = claims
        self._transport, self._recorder, self._clock = env
        self._delays = delays
        self._addresses = Addresses()
        self._seen: dict[str, Seen] = {}
        self._processed: dict[str, str] = {}
        """The last processed resourceVersion of a pod."""
        pods.add_index(_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        pods.add_index(_CLAIM, _claims)
        pods.on_change(self._addresses.pod_changed)
        pods.on_change(self._forget)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pods, for their claims, and for nodes that become simulated."""
        yield Watch(Filtered(self._pods, _has_node), own_key)
        yield Watch(self._claims, self._pods_with)
        yield Watch(self._nodes, self._pods_on)

    async def reconcile(self, key: Key) -> Result:
        """Take the next step with a pod of a simulated node."""
        pod = self._pods.get(key)
        if pod is None or self._nodes.get(Key("", pod.spec.node_name)) is None:
            return DONE
        number = self._fleet.number(pod.spec.node_name)
        if number is None or self._processed.get(pod.metadata.uid) == pod.metadata.resource_version:
            return DONE
        now = self._clock.now()
        step = next_step(pod, self._observe(pod), delays=self._delays, now=now)
        match step:
            case Rest():
                return DONE
            case RequeueAt(at):
                return Result(requeue_after=at - now)
            case Create():
                await self._write(pod, statuses.creating(pod, host=address_of(number), now=now))
            case Run():
                await self._run(pod, number)
            case UpdateReadiness():
                await self._write(pod, statuses.readiness(pod, now=now))
            case End(code, remove):
                await self._write(pod, statuses.ended(pod, code=code, now=now))
                if remove:
                    await self._remove(pod)
            case Remove():
                await self._remove(pod)
        return DONE

    async def _run(self, pod: Pod, number: int) -> None:
        host, uid = address_of(number), pod.metadata.uid
        address = host if pod.spec.host_network else self._addresses.allocate(number, uid)
        exit_ = pod.metadata.annotations.get(EXIT)
        if exit_ is not None and parse_exit(exit_) is None:
            text = f"{EXIT}: invalid value {exit_!r} is ignored (for example 0@5s)"
            about = Reference("v1", "Pod", key_of(pod), uid)
            self._recorder.event(about, "Warning", "InvalidSimulatedExit", text)
        patch = statuses.running(pod, host=host, address=address, now=self._clock.now())
        await self._write(pod, patch)

    async def _write(self, pod: Pod, patch: dict[str, Any]) -> None:
        key = key_of(pod)
        await self._transport.patch(PODS, key, patch, PatchType.STRATEGIC, "status", _OPTIONS)
        self._processed[pod.metadata.uid] = pod.metadata.resource_version

    async def _remove(self, pod: Pod) -> None:
        options = DeleteOptions(grace_period_seconds=0, uid=pod.metadata.uid)
        with suppress(NotFound):
            await self._transport.delete(PODS, key_of(pod), options)
        self._processed[pod.metadata.uid] = pod.metadata.resource_version

    def _observe(self, pod: Pod) -> Seen:
        """Record since when a pod can start, and since when it terminates."""
        seen, now = self._seen.get(pod.metadata.uid, Seen()), self._clock.now()
        if seen.startable is None and self._has_claims(pod):
            seen = replace(seen, startable=now)
        if seen.terminating_since is None and pod.is_terminating:
            seen = replace(seen, terminating_since=now)
        self._seen[pod.metadata.uid] = seen
        return seen

    def _has_claims(self, pod: Pod) -> bool:
        names = claim_names(pod)
        return names is not None and all(self._is_reserved(pod, name) for name in names)

    def _is_reserved(self, pod: Pod, name: str) -> bool:
        claim = self._claims.get(Key(pod.metadata.namespace, name))
        return (
            claim is not None
            and claim.status.allocation is not None
            and reserved_for(claim, uid=pod.metadata.uid, group=pod.group)
        )

    def _forget(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is None:
            self._seen.pop(old.metadata.uid, None)
            self._processed.pop(old.metadata.uid, None)

    def _pods_with(self, claim: ResourceClaim) -> Iterable[Key]:
        return [key_of(pod) for pod in self._pods.by_index(_CLAIM, str(key_of(claim)))]

    def _pods_on(self, node: SimulatedNode) -> Iterable[Key]:
        return [key_of(pod) for pod in self._pods.by_index(_NODE, node.metadata.name)]


def _has_node(_old: Pod | None, new: Pod | None) -> bool:
    """Report whether a pod belongs to a kubelet, not to the scheduler."""
    return new is not None and bool(new.spec.node_name)


def _claims(pod: Pod) -> Iterable[str]:
    if not pod.spec.node_name:
        return ()
    return [str(Key(pod.metadata.namespace, name)) for name in claim_names(pod) or ()]


_MAX_HOST = 254


class Addresses:
    """The addresses of pods, updated by an informer."""

    def __init__(self) -> None:
        self._by_uid: dict[str, str] = {}
        """The address of a pod, by uid."""
        self._taken: set[str] = set()
        self._next: dict[int, int] = {}

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Add the address of a pod, or release it."""
        if old is not None and (new is None or new.is_terminal):
            self._release(old.metadata.uid)
        elif new is not None and _has_own_address(new):
            self._add(new.metadata.uid, new.status.pod_ip)

    def allocate(self, number: int, uid: str) -> str:
        """Return a pod's address on a node; a released one is reused last."""
        if uid in self._by_uid:
            return self._by_uid[uid]
        network, start = pod_network(number), self._next.get(number, 1)
        for step in range(_MAX_HOST):
            last = (start + step - 1) % _MAX_HOST + 1
            address = f"{network}{last}"
            if address not in self._taken:
                self._next[number] = last + 1
                self._add(uid, address)
                return address
        raise RuntimeError(f"no free address in {network}0/24")

    def _add(self, uid: str, address: str) -> None:
        self._by_uid[uid] = address
        self._taken.add(address)

    def _release(self, uid: str) -> None:
        self._taken.discard(self._by_uid.pop(uid, ""))


def _has_own_address(pod: Pod) -> bool:
    return bool(pod.status.pod_ip) and not pod.spec.host_network and not pod.is_terminal
