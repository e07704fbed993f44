"""How many devices a policy may make unavailable, and when many faults are a storm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from sully.domain.devicepolicies.settings import Limit, PolicySettings
from sully.domain.devicepolicies.states import DeviceState
from sully.domain.workloads.percentages import scaled


class LimitGroup(NamedTuple):
    """Devices that are counted together."""

    limit: int
    """Index of the limit."""
    value: str = ""
    """The pool, node, class or value of the attribute."""


class Groups(msgspec.Struct, frozen=True):
    """The devices of a policy: how many there are, and which are counted together."""

    total: int = 0
    sizes: Mapping[LimitGroup, int] = msgspec.field(default_factory=dict)
    of: Mapping[str, tuple[LimitGroup, ...]] = msgspec.field(default_factory=dict)
    """The groups of a device, by its name `driver/pool/device`."""


class UnavailabilityBudget:
    """The devices that a policy makes unavailable, counted by limit."""

    def __init__(
        self,
        limits: tuple[Limit, ...],
        groups: Groups,
        unavailable: Iterable[str],
        *,
        noun: str = "devices",
    ) -> None:
        self._noun = noun
        self._limits = limits
        self._groups = groups
        self._used = Counter(group for device in unavailable for group in self._of(device))

    def spend(self, device: str) -> str:
        """Count another device as unavailable, or return which limit is reached."""
        for group in self._of(device):
            limit = self._limits[group.limit]
            used = self._used[group]
            # Devices that are not published are not part of the size.
            size = max(self._groups.sizes.get(group, 0), used + 1)
            most = scaled(limit.max_unavailable, size, up=True)
            if used >= most:
                count = f"{used} of {most} {self._noun}"
                return f"{count} of {_text(limit, group)} unavailable"
        self._used.update(self._of(device))
        return ""

    def _of(self, device: str) -> tuple[LimitGroup, ...]:
        """Return the groups of a device.

        One that is not published counts for every limit: it may be of a class, and those whose node
        or attribute is not known are counted together.
        """
        groups = self._groups.of.get(device)
        if groups is not None:
            return groups
        pool = device.rpartition("/")[0]
        return tuple(
            LimitGroup(index, {"Pool": pool, "Class": limit.name}.get(limit.scope, ""))
            for index, limit in enumerate(self._limits)
        )


def _text(limit: Limit, group: LimitGroup) -> str:
    match limit.scope:
        case "Fleet":
            return "the policy"
        case "Attribute":
            return f"{limit.name}={group.value}"
        case "Node" if not group.value:
            return "no known node"
        case _:
            return f"{limit.scope.lower()} {group.value}"


def storm_start(
    settings: PolicySettings,
    states: Collection[DeviceState],
    groups: Groups,
    resumed_at: datetime | None,
    now: datetime,
) -> datetime | None:
    """Return now if so many devices have new faults that it is a storm.

    Faults from before a user resumed the policy do not count.
    """
    storm = settings.storm
    if storm is None:
        return None
    begun = sum(
        state.since is not None
        and now - state.since < storm.within
        and (resumed_at is None or state.since > resumed_at)
        for state in states
    )
    return now if begun >= max(1, scaled(storm.devices, groups.total, up=True)) else None
