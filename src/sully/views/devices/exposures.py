"""Pods and the taints on their devices: the inventory and its use, joined.

What eviction asks about a pod (`of`), and what the status of a rule says about all pods
(`counts`, `preview`). A rule also hits devices that no slice has any more, so results of claims are
looked at, not only published devices.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import msgspec

from sully.api.resource.annotations import pause_reason
from sully.api.resource.types import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    ResourceClaim,
)
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import Choice, needs_content, recorded, sourced
from sully.domain.devices.selectors import Content
from sully.domain.devices.taints import NO_EXECUTE, Origin, SourcedTaint
from sully.domain.eviction.judge import (
    DEFAULT_POLICY,
    KEEP,
    EvictionPolicy,
    Exposure,
    Verdict,
    eviction_time,
    judge,
)
from sully.domain.eviction.preview import Preview, PreviewedPod
from sully.domain.eviction.status import Counts, count_pods
from sully.runtime.clock import Clock
from sully.views.devices.changes import Change
from sully.views.devices.inventory import Inventory
from sully.views.devices.name_index import names_in
from sully.views.devices.usage import Held, Usage

REMEMBERED = 5000
"""How many evicted pods are remembered; far more than are evicted before a cache catches up."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A device of which a rule cannot tell whether it selects it."""

    device: DeviceId
    choice: Choice


class Exposures:
    """Who is on which tainted device."""

    def __init__(
        self,
        inventory: Inventory,
        usage: Usage,
        *,
        clock: Clock,
        policy: EvictionPolicy = DEFAULT_POLICY,
        pauses: bool = True,
    ) -> None:
        self.inventory = inventory
        self.usage = usage
        self.policy = policy
        self._clock = clock
        self._pauses = pauses
        self._evicted: OrderedDict[str, None] = OrderedDict()

    def now(self) -> datetime:
        """Return the moment as of which questions are answered."""
        return self._clock.now()

    def note_evicted(self, uid: str) -> None:
        """Note that a pod was evicted; the cache may show it as running for a moment."""
        self._evicted[uid] = None
        if len(self._evicted) > REMEMBERED:
            self._evicted.popitem(last=False)

    def was_evicted(self, pod: Pod) -> bool:
        """Report whether a pod was evicted by this process."""
        return pod.metadata.uid in self._evicted

    def counts_as_running(self, pod: Pod) -> bool:
        """Report whether a pod is one that can be evicted.

        Kubernetes does not look at the phase; a finished pod then counts until it is released.
        """
        ignored = pod.finished and self.policy.compat.ignores_finished_pods
        return bool(pod.spec.node_name) and not ignored

    def judge(self, pod: Pod, now: datetime) -> Verdict:
        """Decide whether and when a pod is to be evicted."""
        # A device without taints evicts no pod.
        exposures = [exposure for exposure in self._exposures(pod) if exposure.taints]
        if not exposures:
            return KEEP
        if not self._pauses:
            return judge(exposures, now=now, policy=self.policy)
        return judge(exposures, now=now, policy=self.policy, paused=self._is_paused)

    def is_tainted(self, pod: Pod) -> bool:
        """Report whether a taint that evicts pods is on a device of a pod, tolerated or not."""
        effects = self.policy.effects
        return any(
            taint.taint.effect in effects
            for exposure in self._exposures(pod)
            for taint in exposure.taints
        )

    def pause_reason(self, rule: DeviceTaintRule) -> str | None:
        """Return why a rule is paused, or None when it is not."""
        return pause_reason(rule.metadata.annotations) if self._pauses else None

    def _is_paused(self, origin: Origin) -> bool:
        if origin.kind != "DeviceTaintRule":
            return False
        rule = self.inventory.rule(origin.name)
        return rule is not None and self.pause_reason(rule) is not None

    def of(self, pod: Pod) -> tuple[Exposure, ...]:
        """Return a pod's devices with the taints on them."""
        return tuple(self._exposures(pod))

    def _exposures(self, pod: Pod) -> Iterator[Exposure]:
        if not self.counts_as_running(pod):
            return
        for claim in self.usage.claims_of(pod):
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                device = _device(result)
                yield Exposure(device, self._taints(claim, device), result.tolerations)

    def _taints(self, claim: ResourceClaim, device: DeviceId) -> tuple[SourcedTaint, ...]:
        published = self.inventory.device(device)
        if published is not None:
            return published.taints
        content = recorded(claim.metadata.annotations).get(str(device))
        return tuple(sourced(rule) for rule in self.inventory.rules_for(device, content))

    def touched_by(self, change: Change) -> Iterator[Key]:
        """Yield the pods for which a change of the inventory may change the verdict."""
        if not change.rules:
            for pool, devices in change.pools.items():
                yield from self.usage.pods_on(pool, devices)
        for each in change.rules:
            rules = [rule for rule in (each.old, each.new) if rule is not None]
            if any(rule.spec.taint.effect in self.policy.effects for rule in rules):
                yield from self._pods_under(rules)

    def _pods_under(self, rules: Iterable[DeviceTaintRule]) -> Iterator[Key]:
        for rule in rules:
            selector = self.inventory.selector_of(rule)
            if selector is not None:
                for held in self.usage.held(names_in(selector)):
                    yield from (key_of(pod) for pod in self.usage.users(key_of(held.claim)))

    def counts(self, rule: DeviceTaintRule, *, evicted: int) -> Counts:
        """Count what a rule selects, and the pods it evicts, or would if its effect did so."""
        taint = self._evicting(rule)
        now, allocated = self._clock.now(), 0
        leaving: set[tuple[str, str]] = set()
        for held in self._held_by(rule):
            allocated += 1
            if (
                eviction_time(taint, held.result.tolerations, now=now, policy=self.policy)
                is not None
            ):
                leaving.update(key_of(pod) for pod in self.running(held.claim))
        pods, namespaces = count_pods(leaving)
        return Counts(
            published=self.published(rule),
            allocated=allocated,
            pods=pods,
            namespaces=namespaces,
            evicted=evicted,
        )

    def preview(self, rule: DeviceTaintRule) -> Preview:
        """Return what would happen if a rule started to evict now."""
        now, allocated = self._clock.now(), 0
        # A rule whose effect changes gets a new timeAdded.
        taint = msgspec.structs.replace(self._evicting(rule), time_added=now)
        evictions: dict[Key, PreviewedPod] = {}
        for held in self._held_by(rule):
            allocated += 1
            due = eviction_time(taint, held.result.tolerations, now=now, policy=self.policy)
            if due is None:
                continue
            after = int((due - now).total_seconds())
            for pod in self.running(held.claim):
                key = key_of(pod)
                if key not in evictions or after < evictions[key].after:
                    evictions[key] = PreviewedPod(*key, owner_of(pod), after)
        return Preview(
            published=self.published(rule), allocated=allocated, evictions=tuple(evictions.values())
        )

    def due(self, rule: DeviceTaintRule) -> dict[Key, datetime]:
        """Return when each pod that a rule evicts is due, as if the rule were alone."""
        found: dict[Key, datetime] = {}
        for held, at in self.unwelcome(rule):
            for pod in self.running(held.claim):
                key = key_of(pod)
                found[key] = min(at, found.get(key, at))
        return found

    def leaving(self, rule: DeviceTaintRule) -> dict[Key, datetime]:
        """Return the terminating pods that a rule evicts, and when their grace period ends.

        Whoever deleted them: that a pod had to go for a rule as well is all that objects tell.
        """
        now = self._clock.now()
        found: dict[Key, datetime] = {}
        for held, at in self.unwelcome(rule):
            for pod in self.usage.holders(held.claim) if at <= now else ():
                end = pod.metadata.deletion_timestamp
                if end is not None and self.counts_as_running(pod):
                    found[key_of(pod)] = end
        return found

    def unwelcome(self, rule: DeviceTaintRule) -> Iterator[tuple[Held, datetime]]:
        """Yield what claims hold although they do not tolerate a rule, and until when."""
        now = self._clock.now()
        for held in self._held_by(rule):
            at = eviction_time(
                rule.spec.taint, held.result.tolerations, now=now, policy=self.policy
            )
            if at is not None:
                yield held, at

    def _evicting(self, rule: DeviceTaintRule) -> DeviceTaint:
        taint = rule.spec.taint
        if taint.effect in self.policy.effects:
            return taint
        return msgspec.structs.replace(taint, effect=NO_EXECUTE)

    def running(self, claim: ResourceClaim) -> Iterator[Pod]:
        """Yield the pods that hold a claim and are not terminating."""
        for pod in self.usage.holders(claim):
            if self.counts_as_running(pod) and not pod.is_terminating and not self.was_evicted(pod):
                yield pod

    def problems(self, rule: DeviceTaintRule) -> Iterator[Problem]:
        """Yield the devices of which a rule cannot tell whether it selects them."""
        selector = self.inventory.selector_of(rule)
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
        selector = self.inventory.selector_of(rule)
        if selector is None:
            return
        plain = not needs_content(selector)
        for held in self.usage.held(names_in(selector)):
            if plain or self.inventory.choose(rule, held.device, _recorded(held)).selected:
                yield held

    def published(self, rule: DeviceTaintRule) -> int:
        """Count the devices in slices that a rule selects."""
        selector = self.inventory.selector_of(rule)
        if selector is None:
            return 0
        if not needs_content(selector):
            return self.inventory.count_named(selector)
        devices = self.inventory.named(selector)
        return sum(self.inventory.choose(rule, device).selected for device in devices)


def owner_of(pod: Pod) -> str:
    """Name who manages a pod, or the pod itself if nobody does."""
    owner = pod.metadata.controller()
    return f"Pod/{pod.metadata.name}" if owner is None else f"{owner.kind}/{owner.name}"


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)


def _recorded(held: Held) -> Content | None:
    return recorded(held.claim.metadata.annotations).get(str(held.device))
