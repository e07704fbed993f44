"""Pods and the taints on their devices: inventory.py and usage.py, joined.

Has what the evictor needs of a pod (`judge`), and the status of a rule needs of all pods (`counts`,
`preview`). A rule also selects devices that are no longer published, so the allocations of claims
are read, not only published devices.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from sully.api.resource.annotations import pause_reason
from sully.api.resource.eviction_rate import EvictionRate
from sully.api.resource.types import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
)
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import DeviceId, device_of_result
from sully.domain.devices.rules import (
    Choice,
    choose_by_content,
    needs_content,
    recorded,
    rule_rate,
    sourced,
)
from sully.domain.devices.selectors import Content
from sully.domain.devices.taints import NO_EXECUTE, Origin, SourcedTaint
from sully.domain.eviction.judge import (
    DEFAULT_POLICY,
    KEEP,
    EvictionPolicy,
    Exposure,
    Verdict,
    eviction_delay,
    eviction_time,
    judge,
)
from sully.domain.eviction.preview import (
    SELECTED_BY_CRITERIA,
    Preview,
    PreviewedPod,
    selection_notice,
)
from sully.domain.eviction.status import Counts, count_pods
from sully.machinery.cel import SLICE, CostBudget
from sully.runtime.clock import Clock
from sully.views.devices.changes import InventoryChange, RuleChange
from sully.views.devices.inventory import Inventory
from sully.views.devices.name_index import Names, names_in
from sully.views.devices.usage import AllocatedDevice, Usage

MAX_DESCRIBED = 10_000
"""Devices of a rule whose pods are counted while it is written: hundredths of a second."""
MAX_EVICTED = 5000
"""How many evicted pods are cached; far more than are evicted before a cache catches up."""


class Problem(msgspec.Struct, frozen=True):
    """A device on which the selector of a rule cannot be evaluated."""

    device: DeviceId
    choice: Choice


class Exposures:
    """The pods on tainted devices."""

    def __init__(
        self,
        inventory: Inventory,
        usage: Usage,
        *,
        clock: Clock,
        policy: EvictionPolicy = DEFAULT_POLICY,
        pauses: bool = True,
        rates: bool = True,
    ) -> None:
        self.inventory = inventory
        self.usage = usage
        self.policy = policy
        self._clock = clock
        self._pauses, self._rates = pauses, rates
        self._evicted: OrderedDict[str, None] = OrderedDict()

    def now(self) -> datetime:
        """Return the time of the clock."""
        return self._clock.now()

    def note_evicted(self, uid: str) -> None:
        """Note that a pod was evicted; the cache may show it as running for a moment."""
        self._evicted[uid] = None
        if len(self._evicted) > MAX_EVICTED:
            self._evicted.popitem(last=False)

    def was_evicted(self, pod: Pod) -> bool:
        """Report whether a pod was evicted by this process."""
        return pod.metadata.uid in self._evicted

    def counts_as_running(self, pod: Pod) -> bool:
        """Report whether a pod is one that can be evicted.

        Kubernetes ignores the phase; a finished pod then counts until its claims are released.
        """
        ignored = pod.is_terminal and self.policy.compat.ignores_finished_pods
        return bool(pod.spec.node_name) and not ignored

    def judge(self, pod: Pod, now: datetime) -> Verdict:
        """Decide whether and when a pod is evicted."""
        return self._judge(self._exposures(pod), now)

    def judge_claim(self, claim: ResourceClaim, now: datetime) -> Verdict:
        """Decide whether and when a pod that starts to use a claim would be evicted."""
        return self._judge(self._exposures_of(claim), now)

    def _judge(self, candidates: Iterable[Exposure], now: datetime) -> Verdict:
        # A device without taints evicts no pod.
        exposures = [exposure for exposure in candidates if exposure.taints]
        if not exposures:
            return KEEP
        if not self._pauses:
            return judge(exposures, now=now, policy=self.policy)
        return judge(exposures, now=now, policy=self.policy, paused=self._is_paused)

    def is_tainted(self, pod: Pod) -> bool:
        """Report whether a taint that evicts pods is on a device of a pod, tolerated or not."""
        effects = self.policy.effects
        for exposure in self._exposures(pod):
            for taint in exposure.taints:
                if taint.taint.effect in effects:
                    return True
        return False

    def pause_reason(self, rule: DeviceTaintRule) -> str | None:
        """Return why a rule is paused, or None when it is not."""
        return pause_reason(rule.metadata.annotations) if self._pauses else None

    def rate(self, rule: DeviceTaintRule) -> EvictionRate | None:
        """Return how fast a rule evicts pods here; None: no limit of its own."""
        return rule_rate(rule) if self._rates else None

    def _is_paused(self, origin: Origin) -> bool:
        if origin.kind != "DeviceTaintRule":
            return False
        rule = self.inventory.rule(origin.name)
        return rule is not None and self.pause_reason(rule) is not None

    def of(self, pod: Pod) -> tuple[Exposure, ...]:
        """Return a pod's devices with the taints on them."""
        return tuple(self._exposures(pod))

    def _exposures(self, pod: Pod) -> list[Exposure]:
        exposures: list[Exposure] = []
        if self.counts_as_running(pod):
            for claim in self.usage.claims_of(pod):
                exposures += self._exposures_of(claim)
        return exposures

    def _exposures_of(self, claim: ResourceClaim) -> list[Exposure]:
        allocation = claim.status.allocation
        if allocation is None:
            return []
        devices = [
            (device_of_result(result), result.tolerations) for result in allocation.devices.results
        ]
        return [
            Exposure(device, self._taints(claim, device), tolerations)
            for device, tolerations in devices
        ]

    def _taints(self, claim: ResourceClaim, device: DeviceId) -> tuple[SourcedTaint, ...]:
        published = self.inventory.device(device)
        if published is not None:
            return published.taints
        content = recorded(claim.metadata.annotations).get(str(device))
        return tuple(sourced(rule) for rule in self.inventory.rules_for(device, content))

    def affected_pods(self, change: InventoryChange) -> Iterator[Key]:
        """Yield the pods whose verdict may change because of a change of the inventory."""
        if not change.rules:
            for pool, devices in change.pools.items():
                yield from self.usage.pods_on(pool, devices)
        for allocated in self._allocated_by_changed(change.rules):
            yield from map(key_of, self.usage.pods_with(key_of(allocated.claim)))

    def affected_claims(self, change: InventoryChange) -> Iterator[Key]:
        """Yield the claims with devices whose taints may have changed."""
        if not change.rules:
            for pool, devices in change.pools.items():
                yield from self.usage.claims_on(pool, devices)
        for allocated in self._allocated_by_changed(change.rules):
            yield key_of(allocated.claim)

    def _allocated_by_changed(self, changes: Iterable[RuleChange]) -> Iterator[AllocatedDevice]:
        """Yield the allocated devices that rules with an evicting effect select by their names."""
        for change in changes:
            rules = [rule for rule in (change.old, change.new) if rule is not None]
            if not any(rule.spec.taint.effect in self.policy.effects for rule in rules):
                continue
            for rule in rules:
                selector = self.inventory.selector_of(rule)
                if selector is not None:
                    yield from self.usage.allocated(names_in(selector))

    def counts(self, rule: DeviceTaintRule, *, evicted: int) -> Counts:
        """Count what a rule selects, and the pods it evicts, or would if its effect did so."""
        taint = self.as_evicting(rule.spec.taint)
        devices = 0
        evicted_pods: set[tuple[str, str]] = set()
        for allocated in self._allocated_by(rule):
            devices += 1
            if eviction_delay(taint, allocated.result.tolerations, self.policy) is not None:
                evicted_pods.update(key_of(pod) for pod in self.running(allocated.claim))
        pods, namespaces = count_pods(evicted_pods)
        return Counts(
            published=self.published(rule),
            allocated=devices,
            pods=pods,
            namespaces=namespaces,
            evicted=evicted,
        )

    def preview(self, rule: DeviceTaintRule) -> Preview:
        """Return what would happen if a rule started to evict now."""
        now, devices = self._clock.now(), 0
        # A rule whose effect changes gets a new timeAdded.
        taint = msgspec.structs.replace(self.as_evicting(rule.spec.taint), time_added=now)
        evictions: dict[Key, PreviewedPod] = {}
        for allocated in self._allocated_by(rule):
            devices += 1
            due = eviction_time(taint, allocated.result.tolerations, now=now, policy=self.policy)
            if due is None:
                continue
            after = int((due - now).total_seconds())
            for pod in self.running(allocated.claim):
                key = key_of(pod)
                if key not in evictions or after < evictions[key].after:
                    evictions[key] = PreviewedPod(*key, owner_of(pod), after)
        return Preview(
            published=self.published(rule), allocated=devices, evictions=tuple(evictions.values())
        )

    def describe(self, rule: DeviceTaintRule) -> str:
        """Describe what a rule that is about to be written selects and evicts.

        Bounded: what costs more is evaluated and counted only for the status of the rule.
        """
        selector = self.inventory.selector_of(rule)
        paused, evicts = self.pause_reason(rule) is not None, self._evicts(rule)
        if selector is None or not needs_content(selector):
            published = self.published(rule)
            counted = not evicts or published <= MAX_DESCRIBED
            counts = (
                self.counts(rule, evicted=0) if evicts and counted else Counts(published=published)
            )
            return selection_notice(counts, evicts=evicts, paused=paused, counted=counted)
        selected = self._selected_within_budget(selector)
        if selected is None:
            return SELECTED_BY_CRITERIA
        counts = self._counts_of(rule, selected) if evicts else Counts(published=len(selected))
        return selection_notice(counts, evicts=evicts, paused=paused, counted=True)

    def _evicts(self, rule: DeviceTaintRule) -> bool:
        return rule.spec.taint.effect in self.policy.effects

    def _selected_within_budget(self, selector: DeviceTaintSelector) -> set[DeviceId] | None:
        """Return the published devices that criteria select; None if that would take long."""
        if self.inventory.count_named(selector) > MAX_DESCRIBED:
            return None
        selected, budget = set(), CostBudget(SLICE)
        for device in self.inventory.named(selector):
            effective = self.inventory.device(device)
            if effective is None:
                continue
            choice = choose_by_content(selector, effective.content, self.inventory.class_, budget)
            if choice.over_budget:
                return None
            if choice.selected:
                selected.add(device)
        return selected

    def _counts_of(self, rule: DeviceTaintRule, selected: set[DeviceId]) -> Counts:
        """Count the pods on published devices that a new rule would evict."""
        pods = {
            key_of(pod)
            for allocated in self.usage.allocated(Names())
            if allocated.device in selected and self._applies(rule, allocated)
            for pod in self.running(allocated.claim)
        }
        number, namespaces = count_pods(pods)
        return Counts(published=len(selected), pods=number, namespaces=namespaces)

    def _applies(self, rule: DeviceTaintRule, allocated: AllocatedDevice) -> bool:
        tolerations = allocated.result.tolerations
        return eviction_delay(rule.spec.taint, tolerations, self.policy) is not None

    def due(self, rule: DeviceTaintRule) -> dict[Key, datetime]:
        """Return when each pod that a rule evicts is due, as if the rule were alone."""
        due: dict[Key, datetime] = {}
        for allocated, time in self.not_tolerated(rule):
            for pod in self.running(allocated.claim):
                key = key_of(pod)
                due[key] = min(time, due.get(key, time))
        return due

    def terminating(self, rule: DeviceTaintRule) -> dict[Key, datetime]:
        """Return the terminating pods that a rule evicts, and when their grace period ends.

        They may have been deleted for another reason as well: objects do not show that.
        """
        now = self._clock.now()
        terminating: dict[Key, datetime] = {}
        for allocated, time in self.not_tolerated(rule):
            for pod in self.usage.consumers(allocated.claim) if time <= now else ():
                end = pod.metadata.deletion_timestamp
                if end is not None and self.counts_as_running(pod):
                    terminating[key_of(pod)] = end
        return terminating

    def not_tolerated(self, rule: DeviceTaintRule) -> Iterator[tuple[AllocatedDevice, datetime]]:
        """Yield the allocated devices whose claims do not tolerate a rule, and from when on."""
        now = self._clock.now()
        for allocated in self._allocated_by(rule):
            time = eviction_time(
                rule.spec.taint, allocated.result.tolerations, now=now, policy=self.policy
            )
            if time is not None:
                yield allocated, time

    def as_evicting(self, taint: DeviceTaint) -> DeviceTaint:
        """Return a taint with an effect that evicts: its own, or else NoExecute."""
        if taint.effect in self.policy.effects:
            return taint
        return msgspec.structs.replace(taint, effect=NO_EXECUTE)

    def running(self, claim: ResourceClaim) -> Iterator[Pod]:
        """Yield the pods that a claim is reserved for and that are not terminating."""
        for pod in self.usage.pods_with(key_of(claim)):
            if (
                not pod.is_terminating
                and not self.was_evicted(pod)
                and self.counts_as_running(pod)
                and self.usage.uses(pod, claim)
            ):
                yield pod

    def problems(self, rule: DeviceTaintRule) -> Iterator[Problem]:
        """Yield the devices on which the selector of a rule cannot be evaluated."""
        selector = self.inventory.selector_of(rule)
        if selector is None or not needs_content(selector):
            return
        for device in self.inventory.named(selector):
            choice = self.inventory.choose(rule, device)
            if choice.problem:
                yield Problem(device, choice)
        for allocated in self.usage.allocated(names_in(selector)):
            if self.inventory.published(allocated.device) is None:
                choice = self.inventory.choose(rule, allocated.device, _recorded(allocated))
                if choice.problem:
                    yield Problem(allocated.device, choice)

    def _allocated_by(self, rule: DeviceTaintRule) -> Iterator[AllocatedDevice]:
        selector = self.inventory.selector_of(rule)
        if selector is None:
            return
        plain = not needs_content(selector)
        for allocated in self.usage.allocated(names_in(selector)):
            if (
                plain
                or self.inventory.choose(rule, allocated.device, _recorded(allocated)).selected
            ):
                yield allocated

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
    """Return kind and name of the controller of a pod, or of the pod if it has none."""
    owner = pod.metadata.controller()
    return f"Pod/{pod.metadata.name}" if owner is None else f"{owner.kind}/{owner.name}"


def _recorded(allocated: AllocatedDevice) -> Content | None:
    return recorded(allocated.claim.metadata.annotations).get(str(allocated.device))
