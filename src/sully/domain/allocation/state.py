"""What an attempt has allocated so far: devices, shares of capacity, counters, constraints.

The search (`search.py`) takes and gives back in the order of a stack; whether a device may be
taken is decided here.
"""

from __future__ import annotations

from collections import Counter

from sully.domain.allocation.candidates import Slot
from sully.domain.allocation.constraints import Constraint
from sully.domain.allocation.plans import RequestPlan
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.usage.counters import Balance
from sully.domain.allocation.usage.ledger import InUse, PoolUse
from sully.domain.allocation.verdicts import RejectionReason
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.machinery.compat import Compat

_NOTHING: dict[str, int] = {}


class AllocationState:
    """The devices of one attempt."""

    def __init__(self, demand: Demand, use: InUse, compat: Compat = Compat.SULLY) -> None:
        self.use = use
        self.budget = demand.budget
        self.chosen: list[list[tuple[RequestPlan, Slot]]] = [[] for _ in demand.claims]
        self.constraints = [
            [Constraint(constraint) for constraint in claim.constraints] for claim in demand.claims
        ]
        self._compat = compat
        self._held: dict[EffectiveDevice, list[int]] = {}
        """Which claims of this attempt have a device that is not shared."""
        self._shares: dict[EffectiveDevice, Counter[str]] = {}
        self._share_counts: dict[EffectiveDevice, int] = {}
        self._balances: dict[PoolId, Balance] = {}

    def is_held(self, device: EffectiveDevice) -> bool:
        """Report whether this attempt has a device or a share of it already."""
        return bool(self._held.get(device)) or device in self._share_counts

    def is_busy(self, plan: RequestPlan, slot: Slot, held: PoolUse | None) -> bool:
        """Report whether a device is in use; `held` is what others have of its pool.

        With admin access only devices of the same claim are in use.
        """
        mine = self._held.get(slot.device)
        if plan.alternative.admin_access:
            return bool(mine) and plan.claim in (mine or ())
        return bool(mine) or (held is not None and self._is_taken(slot, held))

    def _is_taken(self, slot: Slot, held: PoolUse) -> bool:
        if slot.name in held.devices:
            return True
        # Its driver no longer allows sharing, but shares of it are allocated. Kubernetes only
        # checks whole devices.
        if slot.is_shareable or slot.name not in held.shares:
            return False
        return self._compat.keeps_shared_devices

    def take(self, plan: RequestPlan, slot: Slot, held: PoolUse | None) -> RejectionReason | None:
        """Take a device that is not busy; return why not if it cannot be taken."""
        charged = self._charges(plan)
        if charged and not self._has_capacity(slot, held):
            return RejectionReason.CAPACITY
        if charged and self._draws(slot, held) and not self._balance(slot).take(slot.draws):
            return RejectionReason.COUNTERS
        if not self._add_to_constraints(plan, slot):
            if charged and self._draws(slot, held):
                self._balance(slot).give(slot.draws)
            return RejectionReason.CONSTRAINT
        self._hold(plan, slot, charged=charged)
        return None

    def give(self, plan: RequestPlan, slot: Slot, held: PoolUse | None) -> None:
        """Give back the device that was taken last."""
        self.chosen[plan.claim].pop()
        charged = self._charges(plan)
        if slot.is_shareable and charged:
            self._unshare(slot)
        elif not slot.is_shareable:
            self._held[slot.device].pop()
        for constraint in self.constraints[plan.claim]:
            if constraint.covers(plan.alternative):
                constraint.remove(slot.content)
        if charged and self._draws(slot, held):
            self._balance(slot).give(slot.draws)

    def lacks(self, plan: RequestPlan, slot: Slot, held: PoolUse | None) -> RejectionReason | None:
        """Return what there is too little of to take a device; None if there is enough."""
        if not self._charges(plan):
            return None
        if not self._has_capacity(slot, held):
            return RejectionReason.CAPACITY
        if self._draws(slot, held) and not self._balance(slot).allows(slot.draws):
            return RejectionReason.COUNTERS
        return None

    def _charges(self, plan: RequestPlan) -> bool:
        # Admin access consumes nothing. Kubernetes counts it, and so rejects admin access to
        # devices that are fully used.
        return not (plan.alternative.admin_access and self._compat.admin_access_is_free)

    def _has_capacity(self, slot: Slot, held: PoolUse | None) -> bool:
        need = slot.need
        if need is None:
            return True
        others = held.amounts.get(slot.name, _NOTHING) if held is not None else _NOTHING
        mine = self._shares.get(slot.device)
        if not mine:
            return need.fits_into(others)
        return need.fits_into({name: others.get(name, 0) + mine[name] for name in need.amounts})

    def _draws(self, slot: Slot, held: PoolUse | None) -> bool:
        """Report whether taking a device draws on counters; only its first share does."""
        if not slot.draws:
            return False
        shared = slot.device in self._share_counts or (
            held is not None and slot.name in held.shares
        )
        return not (slot.is_shareable and shared)

    def _balance(self, slot: Slot) -> Balance:
        balance = self._balances.get(slot.pool)
        if balance is None:
            held = self.use.get(slot.pool)
            totals, draws = slot.counters
            in_use = [of for name, of in draws.items() if held is not None and name in held]
            balance = self._balances[slot.pool] = Balance(totals, in_use)
        return balance

    def _add_to_constraints(self, plan: RequestPlan, slot: Slot) -> bool:
        constraints = self.constraints[plan.claim]
        for index, constraint in enumerate(constraints):
            if constraint.covers(plan.alternative) and not constraint.add(slot.content):
                for before in constraints[:index]:
                    if before.covers(plan.alternative):
                        before.remove(slot.content)
                return False
        return True

    def _hold(self, plan: RequestPlan, slot: Slot, *, charged: bool) -> None:
        self.chosen[plan.claim].append((plan, slot))
        if not slot.is_shareable:
            self._held.setdefault(slot.device, []).append(plan.claim)
        elif charged:
            self._share_counts[slot.device] = self._share_counts.get(slot.device, 0) + 1
            if slot.need is not None:
                self._shares.setdefault(slot.device, Counter()).update(slot.need.amounts)

    def _unshare(self, slot: Slot) -> None:
        self._share_counts[slot.device] -= 1
        if not self._share_counts[slot.device]:
            del self._share_counts[slot.device]
        if slot.need is not None:
            self._shares[slot.device].subtract(slot.need.amounts)
