"""How much of a device a request consumes: the requested amounts, rounded up by its policy.

A device that may be allocated several times is shared by capacity: each share takes the rounded
amounts out of the total. A device for one user only must be large enough. A driver may leave out
its own domain in names, and so may a request, so amounts are compared under full names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from sully.api.resource.types import CapacityRequestPolicy, CapacityRequestPolicyRange
from sully.api.resource.types import DeviceCapacity as Capacity
from sully.domain.devices.selectors import Content
from sully.machinery.formats.quantity import Quantity, parse_quantity


class Need(msgspec.Struct, frozen=True):
    """What one allocation consumes of one device."""

    amounts: Mapping[str, int]
    """Nano units by full name."""
    totals: Mapping[str, int]
    """What the device has, likewise."""
    texts: Mapping[str, str]
    """The amounts under the names that the driver uses, as an allocation shows them."""

    def fits_into(self, used: Mapping[str, int]) -> bool:
        """Report whether the device has this much left."""
        totals = self.totals
        return all(
            used.get(name, 0) + amount <= totals[name] for name, amount in self.amounts.items()
        )


def full_name(name: str, driver: str) -> str:
    """Write a name with its domain, which is the driver's where none is given."""
    return name if "/" in name else f"{driver}/{name}"


def need_of(requests: Mapping[str, str], content: Content) -> Need | None:
    """Return what a request consumes of a device, or None if the device never has enough."""
    requested = _requested(requests, content.driver)
    capacities = _capacities(content)
    if requested is None or not requested.keys() <= capacities.keys():
        return None
    amounts: dict[str, int] = {}
    totals: dict[str, int] = {}
    texts: dict[str, str] = {}
    for name, (published, capacity) in capacities.items():
        amount = consumption(requested.get(name), capacity)
        total = parse_quantity(capacity.value)
        if amount > total or amount.sign() < 0 or _violates(amount, capacity.request_policy):
            return None
        amounts[name], totals[name], texts[published] = amount.nanos, total.nanos, str(amount)
    return Need(amounts, totals, texts)


def taken_of(shares: Iterable[Mapping[str, str]], driver: str) -> Counter[str]:
    """Add up what shares of a device take: nano units by full name."""
    taken: Counter[str] = Counter()
    for amounts in shares:
        for name, text in amounts.items():
            taken[full_name(name, driver)] += parse_quantity(text).nanos
    return taken


def left_of(content: Content, taken: Mapping[str, int]) -> dict[str, Quantity]:
    """Return what is left of each capacity, under the names that the driver uses."""
    left: dict[str, Quantity] = {}
    for name, (published, capacity) in _capacities(content).items():
        total = parse_quantity(capacity.value)
        left[published] = Quantity(total.nanos - taken.get(name, 0), total.style)
    return left


def is_used_up(capacity: Capacity, left: Quantity) -> bool:
    """Report whether even the smallest share would take more than is left."""
    policy = capacity.request_policy
    allowed: tuple[str | None, ...] = ()
    if policy is not None and policy.valid_range is not None:
        allowed = (policy.valid_range.minimum,)
    elif policy is not None:
        allowed = policy.valid_values
    least = min((parse_quantity(value) for value in allowed if value is not None), default=None)
    if least is not None:
        return left < least
    # Of a capacity of zero, a share takes nothing.
    return left.sign() < 0 or (not left.sign() and parse_quantity(capacity.value).sign() > 0)


def consumption(requested: Quantity | None, capacity: Capacity) -> Quantity:
    """Return the amount that is consumed: the default, or the requested one, rounded up."""
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return parse_quantity(capacity.value if default is None else default)
    if policy is None:
        return requested
    if policy.valid_range is not None:
        return _round_in_range(requested, policy.valid_range)
    values = (parse_quantity(value) for value in policy.valid_values)
    return next((value for value in values if requested <= value), requested)


def _requested(requests: Mapping[str, str], driver: str) -> dict[str, Quantity] | None:
    requested = {full_name(name, driver): parse_quantity(text) for name, text in requests.items()}
    # With the same capacity under both names the amount is ambiguous.
    return requested if len(requested) == len(requests) else None


def _capacities(content: Content) -> dict[str, tuple[str, Capacity]]:
    """Return the capacities by full name; one with a domain wins over its short form."""
    capacities: dict[str, tuple[str, Capacity]] = {}
    for name in sorted(content.capacity, key=lambda name: "/" not in name):
        capacities.setdefault(full_name(name, content.driver), (name, content.capacity[name]))
    return capacities


def _round_in_range(requested: Quantity, valid: CapacityRequestPolicyRange) -> Quantity:
    if valid.minimum is None:
        return requested
    minimum = parse_quantity(valid.minimum)
    if requested < minimum:
        return minimum
    if valid.step is None:
        return requested
    step = parse_quantity(valid.step)
    steps = -(-(requested.nanos - minimum.nanos) // step.nanos)
    return Quantity(minimum.nanos + steps * step.nanos, step.style)


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    """Report whether a policy does not allow an amount."""
    if policy is None:
        return False
    if policy.default is not None and amount == parse_quantity(policy.default):
        return False
    if policy.valid_range is not None:
        return _is_out_of_range(amount, policy.valid_range)
    values = policy.valid_values
    return bool(values) and all(amount != parse_quantity(value) for value in values)


def _is_out_of_range(amount: Quantity, valid: CapacityRequestPolicyRange) -> bool:
    if valid.maximum is not None and amount > parse_quantity(valid.maximum):
        return True
    if valid.step is None:
        return False
    minimum = parse_quantity(valid.minimum).nanos if valid.minimum is not None else 0
    return (amount.nanos - minimum) % parse_quantity(valid.step).nanos != 0
