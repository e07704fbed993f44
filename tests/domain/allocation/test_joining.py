"""May a pod share a claim whose devices were tainted since they were allocated?"""

from __future__ import annotations

import pytest

from domain.allocation.fixtures import pool_slice
from domain.allocation.test_caches import allocated
from sully.api.resource.types import DeviceToleration
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import (
    EVICTING_EFFECTS,
    NO_EXECUTE_WITH_BUDGET,
    Origin,
    SourcedTaint,
)
from sully.domain.eviction.judge import EvictionPolicy, evicting_taints
from sully.testing.builders import GPU as FIRST
from sully.testing.builders import device, equal, exists, taint
from sully.testing.clock import NOON

JOINING: dict[str, tuple[list[DeviceToleration], bool]] = {
    "nothing tolerated": ([], True),
    "tolerated indefinitely": ([equal()], False),
    "tolerated whatever the effect": ([exists(effect="")], False),
    "tolerated, and its time is not over": ([exists(effect="NoExecute", seconds=61)], False),
    "tolerated, and its time is over": ([exists(effect="NoExecute", seconds=60)], True),
    "only the other effect is tolerated": ([exists(effect="NoSchedule")], True),
}


@pytest.mark.parametrize(("tolerations", "evicted"), JOINING.values(), ids=JOINING.keys())
def test_who_would_be_evicted_immediately_is_not_let_in(
    tolerations: list[DeviceToleration], evicted: bool
) -> None:
    broken = SourcedTaint(taint("NoExecute", after=-60), Origin("DeviceTaintRule", "r"))
    closed = SourcedTaint(taint("NoSchedule"), Origin("DeviceTaintRule", "s"))
    marks: dict[DeviceId, tuple[SourcedTaint, ...]] = {FIRST: (closed, broken)}
    held = allocated([pool_slice(device(FIRST.device))], tolerations=tolerations)

    got = evicting_taints(held, lambda id_: marks.get(id_, ()), now=NOON)

    assert got == (((FIRST, broken),) if evicted else ())


def test_a_taint_that_waits_for_budgets_counts_where_it_evicts() -> None:
    waiting = SourcedTaint(taint(NO_EXECUTE_WITH_BUDGET), Origin("DeviceTaintRule", "r"))
    held = allocated([pool_slice(device(FIRST.device))])

    def got(policy: EvictionPolicy) -> bool:
        return bool(evicting_taints(held, lambda _: (waiting,), now=NOON, policy=policy))

    assert not got(EvictionPolicy())
    assert got(EvictionPolicy(effects=EVICTING_EFFECTS))
