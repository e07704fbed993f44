"""The scheduler of a rehearsal: the queue, the memory and the judge of the real one.

What the real one writes and then sees come back is put into the world at once. Follows
`controllers/scheduling/controller.py`, which says why things are done in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

import msgspec

from sully.api.resource.claim_types import AllocationResult, DeviceToleration, ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.judging import Judge, Placed, Refused
from sully.controllers.scheduling.news import News
from sully.controllers.scheduling.outbox import Outbox
from sully.controllers.scheduling.questions import told_of
from sully.controllers.scheduling.queue import Queue, Rank
from sully.controllers.scheduling.readiness import Readiness, readiness
from sully.controllers.scheduling.wishes import claim_keys, resolve, unallocated
from sully.domain.allocation.requests import for_good
from sully.domain.allocation.results import with_share_ids
from sully.domain.claims.lifecycle import EXTENDED
from sully.domain.claims.reservations import reserved_for
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import untolerated
from sully.domain.planning.objects import PlannedPod
from sully.domain.planning.replacing import MARK, Replacement
from sully.domain.scheduling.account import Account
from sully.domain.scheduling.decisions import Concern
from sully.domain.scheduling.extended import Backings, Extension, generated_name
from sully.domain.scheduling.objects import ExtendedClaimStatus
from sully.planning.lines import Lines
from sully.planning.world import World


class Seat(msgspec.Struct, frozen=True):
    """Where a pod was put."""

    at: datetime
    node: str
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod was put nowhere, as of the last time it was looked at."""

    why: str
    account: Account | None = None


class Seating:
    """Gives waiting pods a node."""

    def __init__(self, world: World, on_seat: Callable[[PlannedPod], None]) -> None:
        self._world = world
        self._on_seat = on_seat
        self.seats: dict[str, Seat] = {}
        """By uid, of all pods that got a node in this rehearsal."""
        self.refusals: dict[str, Refusal] = {}
        self._tolerations: dict[DeviceToleration, None] = {}
        """What any claim tolerates that waits for devices, or ever did, for however long."""
        self.devices = Devices(world.inventory)
        self._cluster = Cluster()
        self._queue = Queue(world.timeline.monotonic)
        backings = Backings()
        self._judge = Judge(
            devices=self.devices,
            cluster=self._cluster,
            backings=backings,
            clock=world.timeline,
            options=world.settings.scheduling,
        )
        news = News(
            devices=self.devices,
            cluster=self._cluster,
            backings=backings,
            queue=self._queue,
            outbox=Outbox(),
        )
        world.nodes.on_change(news.node_changed)
        self._news = news
        world.claims.on_change(self._claim_changed)
        world.classes.on_change(news.class_changed)
        world.inventory.on_change(news.devices_changed)
        world.pods.on_change(news.pod_changed)
        self._lines = Lines(self._step_forward)
        self._absent: dict[Key, Replacement] = {}
        """New pods that wait behind others: as long as they do, it is as if they were not there."""
        self._entering: list[Key] = []
        world.pods.on_change(self._pod_changed)
        self._briefly = True
        """A refusal is explained the first time and at the end; in between nobody asks why."""

    def _pod_changed(self, old: PlannedPod | None, new: PlannedPod | None) -> None:
        """Let a pod that waits no more make way for the next that asks the same."""
        if self._lines and old is not None and (new is None or not new.waits):
            self._lines.leave(key_of(old))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Take a change of a claim, and wake nobody for devices that are of no use to anyone.

        Of a thousand pods that leave tainted devices each would wake all that wait.
        """
        if new is not None and new.status.allocation is None:
            self._tolerations.update(dict.fromkeys(_tolerations(new)))
        if old is not None and new is None and self._is_useless(old):
            self.devices.claim_changed(old, None)
        else:
            self._news.claim_changed(old, new)

    def _is_useless(self, claim: ResourceClaim) -> bool:
        """Say whether nobody who waits, or may come to, has a use for a claim's devices."""
        allocation = claim.status.allocation
        if allocation is None or claim.metadata.annotations.get(EXTENDED) == "true":
            return False
        return all(
            self._is_unwanted(DeviceId(each.driver, each.pool, each.device))
            for each in allocation.devices.results
        )

    def _is_unwanted(self, device: DeviceId) -> bool:
        """Say whether nobody tolerates what is on a device, and no other one comes free with it."""
        published = self._world.inventory.published(device)
        if published is not None and published.device.consumes_counters:
            return False
        return bool(untolerated(self.devices.taints(device), tuple(self._tolerations)))

    def receive(self, fresh: Iterable[Replacement]) -> None:
        """Take new pods and look at them, in the order in which the queue would.

        So that of a thousand that ask the same only the first has to come.
        """
        ranked: list[tuple[Rank, Replacement]] = []
        for made in fresh:
            if made.pod.waits:
                ranked.append((self._queue.expect(key_of(made.pod), made.pod), made))
            else:
                self._enter(made)
        for rank, made in sorted(ranked, key=itemgetter(0)):
            if not self._stays_behind(rank, made):
                if not self._walks_in(rank, made):
                    self._enter(made)
                self.settle(rank)

    def _stays_behind(self, rank: Rank, made: Replacement) -> bool:
        """Let a pod wait outside if one that comes before it asks the same in vain."""
        if not self._lines or not _brings_all(made):
            return False
        question = self._judge.question(made.pod, made.claims)
        first = self._lines.first(question) if question else None
        if first is None or first[0] > rank or not self._queue.is_parked(first[1]):
            return False
        key = key_of(made.pod)
        self._lines.join(question, rank, key)
        self._absent[key] = made
        return True

    def _walks_in(self, rank: Rank, made: Replacement) -> bool:
        """Give a pod its node before it comes, if it is its turn and there is one.

        It is looked at in the same state of the world, and comes once instead of coming, waiting
        and being changed: most of those that leave are replaced so.
        """
        if self._entering or not self._queue.is_idle(rank) or not _brings_all(made):
            return False
        found = self._judge.judge(made.pod, made.claims, briefly=self._briefly)
        if not isinstance(found, Placed):
            return False
        self._queue.excuse(key_of(made.pod))
        for claim in made.claims:
            self._tolerations.update(dict.fromkeys(_tolerations(claim)))
        self._place(made.pod, made.claims, found)
        return True

    def _step_forward(self, key: Key) -> None:
        if key in self._absent:
            # Not now: it is someone else's change that brought us here.
            self._entering.append(key)
        else:
            self._queue.touch(key)

    def _enter(self, made: Replacement) -> None:
        for claim in made.claims:
            self._world.put(self._world.claims, claim)
        self._world.put(self._world.pods, made.pod)

    def settle(self, until: Rank | None = None) -> None:
        """Look at all pods that are worth a look, the most important first; or only up to one."""
        while (key := self._next(until)) is not None:
            pod = self._world.pods.get(key)
            if pod is not None and pod.waits:
                self._look(key, pod)

    def _next(self, until: Rank | None) -> Key | None:
        while self._entering:
            self._enter(self._absent.pop(self._entering.pop()))
        return self._queue.pop(until)

    def look_again(self) -> None:
        """Look at all pods that wait, so that their refusals tell how things are by now."""
        self._briefly = False
        self._queue.wake(~Concern.NOTHING)
        self.settle()
        self._briefly = True
        for key, first in self._lines.behind():
            self._tell_as(key, first)

    def _tell_as(self, key: Key, first: Key) -> None:
        """Tell a pod that waits behind another what that one was told."""
        absent, other = self._absent.get(key), self._world.pods.get(first)
        pod = absent.pod if absent is not None else self._world.pods.get(key)
        if pod is None or other is None:
            return
        told = self.refusals[other.metadata.uid]
        account = told.account
        claims = absent.claims if absent is not None else resolve(pod, self._world.claims.get)
        if account is not None and not isinstance(claims, str):
            names = [str(each) for each in claim_keys(other)]
            account = told_of(account, names, claims)
        self.refusals[pod.metadata.uid] = Refusal(told.why, account)

    def _look(self, key: Key, pod: PlannedPod) -> None:
        claims = resolve(pod, self._world.claims.get)
        if isinstance(claims, str):
            self.refusals[pod.metadata.uid] = Refusal(claims)
            self._lines.leave(key)
            return
        mine = [each for each in claims if reserved_for(each, uid=pod.metadata.uid)]
        if readiness(mine) is not Readiness.READY:
            # What becomes of it is in the hands of a driver, and nobody is evicted meanwhile.
            self.refusals[pod.metadata.uid] = Refusal("its driver has not made its devices ready")
            self._lines.leave(key)
            return
        found = self._judge.judge(pod, claims, briefly=self._briefly)
        if isinstance(found, Placed):
            self._place(pod, claims, found)
            return
        self._refuse(key, pod, found)

    def _refuse(self, key: Key, pod: PlannedPod, found: Refused) -> None:
        self.refusals[pod.metadata.uid] = Refusal(found.why.message, found.account)
        self._queue.park(key, found.why.concern)
        rank = self._queue.rank(key)
        if not found.question or rank is None:
            self._lines.leave(key)
        elif (behind := self._lines.join(found.question, rank, key)) is not None:
            self._queue.park(behind, Concern.NOTHING)
        if found.deallocate is not None:
            self._world.deallocate(found.deallocate)

    def _place(self, pod: PlannedPod, claims: Iterable[ResourceClaim], placed: Placed) -> None:
        allocated, uid = placed.place.allocated, pod.metadata.uid
        if allocated.shares:
            ids = (f"{uid}{MARK}{place}" for place, _ in enumerate(allocated.shares))
            allocated = with_share_ids(allocated, ids)
        given = list(allocated.allocations)
        if placed.extension is not None:
            pod = self._extend(pod, placed.extension, given.pop())
        claims = list(claims)
        fresh = {
            each.metadata.uid: allocation
            for each, allocation in zip(unallocated(claims), given, strict=True)
        }
        for claim in claims:
            allocation = fresh.get(claim.metadata.uid)
            if allocation is None:
                self._world.reserve(claim, pod)
            else:
                self._world.reserve(claim, pod, allocation=allocation)
        node = placed.place.node
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        devices = tuple(each.id for devices in allocated.devices for each in devices)
        self.refusals.pop(uid, None)
        self.seats[uid] = Seat(self._world.timeline.now(), node, devices)
        self._on_seat(self._world.put(self._world.pods, msgspec.structs.replace(pod, spec=spec)))

    def _extend(
        self, pod: PlannedPod, extension: Extension, allocation: AllocationResult
    ) -> PlannedPod:
        """Make the claim for the extended resources of a pod."""
        name = generated_name(extension.claim, MARK)
        metadata = msgspec.structs.replace(
            extension.claim.metadata, name=name, uid=f"{pod.metadata.uid}{MARK}"
        )
        claim = msgspec.structs.replace(extension.claim, metadata=metadata)
        self._world.reserve(claim, pod, allocation=allocation)
        status = msgspec.structs.replace(
            pod.status,
            extended_resource_claim_status=ExtendedClaimStatus(resource_claim_name=name),
        )
        return msgspec.structs.replace(pod, status=status)


def _brings_all(made: Replacement) -> bool:
    """Say whether what a new pod asks depends on no claim that was there before it."""
    return not made.missing and len(made.claims) == len(made.pod.spec.resource_claims)


def _tolerations(claim: ResourceClaim) -> Iterator[DeviceToleration]:
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield from for_good(request.exactly.tolerations)
        for each in request.first_available:
            yield from for_good(each.tolerations)
