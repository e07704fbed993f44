"""The pools that a selection of devices, such as a policy, has to evaluate again."""

from __future__ import annotations

from collections.abc import Iterable

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.devices.pools import PoolId
from sully.views.devices.name_index import names_in


class PendingPools:
    """Those that changed, and that a selector may select devices of."""

    def __init__(self, selector: DeviceTaintSelector) -> None:
        self._names = names_in(selector)
        self._pools: set[PoolId] = set()

    def add(self, pools: Iterable[PoolId]) -> bool:
        """Queue pools; report whether there is one that was not known."""
        matching = set(filter(self._names.match_pool, pools))
        fresh = not matching <= self._pools
        self._pools |= matching
        return fresh

    def take(self) -> list[PoolId]:
        """Return the pools in order, and forget them."""
        pools, self._pools = self._pools, set()
        return sorted(pools)
