"""The devices of one policy: which it selects, how they are counted, and what is wrong with them.

Kept up to date pool by pool, so that an event costs what it affects. Only devices with a fault, or
with a source that cannot be evaluated, are stored one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec.structs import replace

from sully.api.resource.types import DeviceTaint
from sully.api.sully.types import DeviceTaintPolicy
from sully.domain.devicepolicies.limits import Groups, LimitGroup
from sully.domain.devicepolicies.partitions import (
    BOTH,
    TO_PARTITIONS,
    TO_WHOLE,
    consumption_of,
    propagated,
)
from sully.domain.devicepolicies.selection import PolicySelector, groups_of
from sully.domain.devicepolicies.settings import settings_of
from sully.domain.devicepolicies.sources.evaluation import active_faults
from sully.domain.devicepolicies.sources.prometheus import QueryResult
from sully.domain.devicepolicies.states import Observation
from sully.domain.devicepolicies.suppression import Suppressed, find_suppressed
from sully.domain.devices.pools import DeviceId, PoolId, device_id
from sully.domain.devices.rules import names_match
from sully.views.devicepolicies.facts import FactsView, node_name
from sully.views.devices.exact_device import exact_device_expression
from sully.views.devices.pools.pending import PendingPools


class PolicyDevices:
    """The devices of one generation of a policy."""

    def __init__(self, policy: DeviceTaintPolicy, facts: FactsView) -> None:
        self._policy = policy
        self._facts = facts
        self._limits = settings_of(policy).limits
        self._selector = PolicySelector(policy)
        self._pools: dict[PoolId, dict[str, tuple[LimitGroup, ...]]] = {}
        """The selected devices of each pool."""
        self._observed: dict[str, Observation] = {}
        """Those that are not simply healthy."""
        self.problems: dict[str, str] = {}
        """Why a device cannot be judged."""
        self.suppressed: dict[str, tuple[Suppressed, ...]] = {}
        """Taints of drivers that the policy suppresses, by device; some may be over."""
        self._noted: dict[PoolId, set[str]] = {}
        """The devices of each pool that are in one of these."""
        self._sizes: Counter[LimitGroup] = Counter()
        self._total = 0
        self._pending = PendingPools(self._selector.names)
        self._queries: Mapping[str, QueryResult] = {}
        self.changed(facts.pools())

    def changed(self, pools: Iterable[PoolId]) -> bool:
        """Queue pools to evaluate again; report whether there is one that was not known."""
        return self._pending.add(pools)

    def queried(self, results: Mapping[str, QueryResult]) -> None:
        """Take the results of queries, by source; if they differ, evaluate all devices again."""
        if results != self._queries:
            self._queries = dict(results)
            self.changed(self._facts.pools())

    def update(self, now: datetime) -> None:
        """Evaluate what may have changed."""
        for pool in self._pending.take():
            self._forget(pool)
            selected = {
                device.device: groups
                for device in self._facts.devices(pool)
                if (groups := self._evaluate(device, now)) is not None
            }
            self._propagate(pool, selected)
            if selected:
                self._pools[pool] = selected
                self._total += len(selected)
                self._sizes.update(group for groups in selected.values() for group in groups)

    def _propagate(self, pool: PoolId, selected: Iterable[str]) -> None:
        """Pass faults on between devices that share counters, if the policy wants that."""
        direction = self._policy.spec.partitions
        if direction not in (TO_PARTITIONS, TO_WHOLE, BOTH):
            return
        devices = self._facts.inventory.devices(pool)
        consumptions = {
            str(DeviceId(*pool, name)): consumption_of(devices[name].published.device)
            for name in selected
            if name in devices and devices[name].published.device.consumes_counters
        }
        observed = {name: self._observed[name] for name in consumptions if name in self._observed}
        for device, seen in propagated(direction, consumptions, observed).items():
            identity = seen.identity or self._identity(device)
            self._note(device_id(device), replace(seen, identity=identity))

    def _forget(self, pool: PoolId) -> None:
        selected = self._pools.pop(pool, {})
        self._total -= len(selected)
        self._sizes.subtract(group for groups in selected.values() for group in groups)
        for device in self._noted.pop(pool, ()):
            self._observed.pop(device, None)
            self.problems.pop(device, None)
            self.suppressed.pop(device, None)

    def _note(self, id_: DeviceId, seen: Observation, problem: str = "") -> None:
        """Store a device that is not simply healthy."""
        device = str(id_)
        self._noted.setdefault(id_.pool_id, set()).add(device)
        self._observed[device] = seen
        if problem:
            self.problems[device] = problem

    def _evaluate(self, id_: DeviceId, now: datetime) -> tuple[LimitGroup, ...] | None:
        """Evaluate one device; return its groups if the policy is for it."""
        facts = self._facts.facts(id_, now)
        device = self._facts.inventory.device(id_)
        if facts.content is None or device is None:
            self._unpublished(id_, now)
            return None
        choice = self._selector.choose(id_, facts.content, facts.node, self._facts.inventory.class_)
        if choice.problem:
            self._note(id_, Observation(known=False), choice.problem)
        if not choice.selected:
            return None
        groups, unlimited = groups_of(
            self._limits, id_, facts.content, node_name(device), self._facts.inventory.class_
        )
        faults, problems = active_faults(self._policy.spec.sources, facts, self._queries)
        unjudged = self._suppress(id_, facts.slice_taints)
        problem = "; ".join((*problems, *unjudged, *unlimited))
        if faults or problems:
            identity = self._selector.identity(facts.content)
            seen = Observation(faults=faults, known=not problems, identity=identity)
            self._note(id_, seen, problem)
        elif problem:
            self.problems[str(id_)] = problem
            self._noted.setdefault(id_.pool_id, set()).add(str(id_))
        return groups

    def _suppress(self, id_: DeviceId, taints: Iterable[DeviceTaint]) -> tuple[str, ...]:
        """Store which taints of a device are suppressed; return what could not be judged."""
        if not self._policy.spec.suppress:
            return ()
        suppressed, problems = find_suppressed(self._policy.spec.suppress, taints)
        if suppressed:
            self.suppressed[str(id_)] = suppressed
            self._noted.setdefault(id_.pool_id, set()).add(str(id_))
        return problems

    def _unpublished(self, id_: DeviceId, now: datetime) -> None:
        """Evaluate a device that is allocated, but not published: only names can be compared."""
        names = self._selector.names
        if not names_match(names, id_):
            return
        faults, _ = active_faults(
            self._policy.spec.sources, self._facts.facts(id_, now), self._queries
        )
        if faults and not self._needs_content():
            self._note(id_, Observation(faults=faults, known=False))

    def _needs_content(self) -> bool:
        selector = self._policy.spec.selector
        return bool(
            selector.device_class_name
            or selector.selectors
            or selector.identities
            or selector.node_selector is not None
        )

    def observations(self, devices: Iterable[str]) -> dict[str, Observation]:
        """Return what is observed of faulty devices and of these; of missing ones nothing.

        A device that the policy is not for any more is left out, too: see `is_selected`.
        """
        seen = dict(self._observed)
        for device in devices:
            if device not in seen and self.is_selected(device):
                seen[device] = Observation(identity=self._identity(device))
        return seen

    def _identity(self, device: str) -> str:
        effective = self._facts.inventory.device(device_id(device))
        return self._selector.identity(effective.content) if effective is not None else ""

    def exact_expression(self, device: str) -> str:
        """Return what selects exactly this device in a claim, or raise NotSelectableError."""
        attribute = self._policy.spec.identity_attribute or "uuid"
        return exact_device_expression(self._facts.inventory, device_id(device), attribute)

    def is_selected(self, device: str) -> bool:
        """Report whether the policy is for a published device."""
        id_ = device_id(device)
        return id_.device in self._pools.get(id_.pool_id, {})

    def is_excluded(self, device: str) -> bool:
        """Report whether a device is published, and the policy certainly not for it."""
        published = self._facts.inventory.device(device_id(device)) is not None
        return published and not self.is_selected(device) and device not in self.problems

    def groups(self, devices: Iterable[str]) -> Groups:
        """Return how the devices are counted, with the groups of these."""
        return Groups(self._total, self._sizes, self._groups_of(devices))

    def _groups_of(self, devices: Iterable[str]) -> Mapping[str, tuple[LimitGroup, ...]]:
        by_device: dict[str, tuple[LimitGroup, ...]] = {}
        for device in devices:
            id_ = device_id(device)
            groups = self._pools.get(id_.pool_id, {}).get(id_.device)
            if groups is not None:
                by_device[device] = groups
        return by_device
