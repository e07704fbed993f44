"""Pods and the taints on their devices: the inventory and its use, joined.

What eviction asks about a pod (`of`), and what the status of a rule says about all pods
(`counts`). A rule also hits devices that no slice has any more, so results of claims are looked at,
not only published devices.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from sully.api.resource.claim_types import DeviceRequestAllocationResult, ResourceClaim
from sully.api.resource.types import DeviceTaintRule
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.eviction import EVICTING, Exposure, leaves_at
from sully.domain.evictionstatus import Counts, count_pods
from sully.domain.pools import DeviceId
from sully.domain.rules import Choice, needs_content, recorded, sourced
from sully.domain.selectors import Content
from sully.domain.taints import NO_EXECUTE, SourcedTaint
from sully.runtime.clock import Clock
from sully.views.changes import Change
from sully.views.inventory import Inventory
from sully.views.kinds import Pod
from sully.views.nameindex import names_in
from sully.views.usage import Held, Usage

REMEMBERED = 5000
"""How many pods that left are remembered; far more than leave before a cache catches up."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A device of which a rule cannot tell whether it selects it."""

    device: DeviceId
    choice: Choice


class Exposures:
    """Who is on which tainted device."""

    def __init__(
        self, inventory: Inventory, usage: Usage, *, clock: Clock, strict: bool = False
    ) -> None:
        self.inventory = inventory
        self.usage = usage
        self._clock = clock
        self._strict = strict
        self._departed: OrderedDict[str, None] = OrderedDict()

    def departed(self, uid: str) -> None:
        """Note that a pod was made to leave; the cache may show it as staying for a moment."""
        self._departed[uid] = None
        if len(self._departed) > REMEMBERED:
            self._departed.popitem(last=False)

    def has_departed(self, pod: Pod) -> bool:
        """Say whether a pod was made to leave by whoever asks."""
        return pod.metadata.uid in self._departed

    def counts_as_running(self, pod: Pod) -> bool:
        """Say whether a pod is one that can be made to leave.

        Kubernetes does not look at the phase; a finished pod then counts until it is released.
        """
        return bool(pod.spec.node_name) and (self._strict or not pod.finished)

    def of(self, pod: Pod) -> tuple[Exposure, ...]:
        """Return a pod's devices with the taints on them."""
        if not self.counts_as_running(pod):
            return ()
        return tuple(
            Exposure(_device(result), self._taints(claim, result), result.tolerations)
            for claim in self.usage.claims_of(pod)
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
        )

    def _taints(
        self, claim: ResourceClaim, result: DeviceRequestAllocationResult
    ) -> tuple[SourcedTaint, ...]:
        device = _device(result)
        published = self.inventory.device(device)
        if published is not None:
            return published.taints
        content = recorded(claim.metadata.annotations).get(str(device))
        return tuple(sourced(rule) for rule in self.inventory.rules_for(device, content))

    def touched_by(self, change: Change) -> Iterator[Key]:
        """Yield the pods for which a change of the inventory may decide otherwise."""
        if not change.rules:
            for pool, devices in change.pools.items():
                yield from self.usage.pods_on(pool, devices)
        for each in change.rules:
            rules = [rule for rule in (each.old, each.new) if rule is not None]
            if any(rule.spec.taint.effect in EVICTING for rule in rules):
                yield from self._pods_under(rules)

    def _pods_under(self, rules: Iterable[DeviceTaintRule]) -> Iterator[Key]:
        for rule in rules:
            selector = rule.spec.device_selector
            if selector is not None:
                for held in self.usage.held(names_in(selector)):
                    yield from (key_of(pod) for pod in self.usage.users(key_of(held.claim)))

    def counts(self, rule: DeviceTaintRule, *, evicted: int) -> Counts:
        """Count what a rule selects, and whom it makes leave, as if its effect was NoExecute."""
        taint = msgspec.structs.replace(rule.spec.taint, effect=NO_EXECUTE)
        now, allocated = self._clock.now(), 0
        leaving: set[tuple[str, str]] = set()
        for held in self._held_by(rule):
            allocated += 1
            if leaves_at(taint, held.result.tolerations, now=now, strict=self._strict) is not None:
                leaving.update(self._running(held.claim))
        pods, namespaces = count_pods(leaving)
        return Counts(
            published=self._published(rule),
            allocated=allocated,
            pods=pods,
            namespaces=namespaces,
            evicted=evicted,
        )

    def _running(self, claim: ResourceClaim) -> Iterator[Key]:
        for pod in self.usage.holders(claim):
            if self.counts_as_running(pod) and not pod.leaving and not self.has_departed(pod):
                yield key_of(pod)

    def problems(self, rule: DeviceTaintRule) -> Iterator[Problem]:
        """Yield the devices of which a rule cannot tell whether it selects them."""
        selector = rule.spec.device_selector
        if selector is None or not needs_content(selector):
            return
        for device in self.inventory.named(selector):
            choice = self.inventory.choose(rule, device)
            if choice.problem:
                yield Problem(device, choice)
        for held in self.usage.held(names_in(selector)):
            if self.inventory.published(held.device) is None:
                choice = self.inventory.choose(rule, held.device, _recorded(held))
                if choice.problem:
                    yield Problem(held.device, choice)

    def _held_by(self, rule: DeviceTaintRule) -> Iterator[Held]:
        selector = rule.spec.device_selector
        if selector is None:
            return
        plain = not needs_content(selector)
        for held in self.usage.held(names_in(selector)):
            if plain or self.inventory.choose(rule, held.device, _recorded(held)).selected:
                yield held

    def _published(self, rule: DeviceTaintRule) -> int:
        selector = rule.spec.device_selector
        if selector is None:
            return 0
        if not needs_content(selector):
            return self.inventory.count_named(selector)
        devices = self.inventory.named(selector)
        return sum(self.inventory.choose(rule, device).selected for device in devices)


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)


def _recorded(held: Held) -> Content | None:
    return recorded(held.claim.metadata.annotations).get(str(held.device))
