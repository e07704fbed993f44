"""What the gates leave of the settings."""

from __future__ import annotations

import pytest

from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.judge import EvictionPolicy
from sully.evictor.settings import (
    EvictionOptions,
    EvictionSettings,
    eviction_options,
)
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates

GIVEN = EvictionSettings(default_per_second=5, max_per_minute=100)
ALL = EvictionOptions(default_per_second=5, max_per_minute=100, max_staleness=90)

CASES = {
    "as they are": ({}, False, ALL),
    "no rates": (
        {"SullyEvictionRate": False},
        False,
        EvictionOptions(rates=False, max_per_minute=100),
    ),
    "no guards": (
        {"SullyEvictionGuards": False},
        False,
        EvictionOptions(pauses=False, default_per_second=5, max_staleness=None),
    ),
    "budgets": (
        {"SullyNoExecuteWithPodDisruptionBudget": True},
        False,
        EvictionOptions(
            policy=EvictionPolicy(effects=EVICTING_EFFECTS),
            default_per_second=5,
            max_per_minute=100,
        ),
    ),
    "groups": (
        {"DRAWorkloadResourceClaims": True},
        False,
        EvictionOptions(pod_groups=True, default_per_second=5, max_per_minute=100),
    ),
    "Kubernetes, whatever is asked": (
        {"SullyNoExecuteWithPodDisruptionBudget": True},
        True,
        EvictionOptions(
            policy=EvictionPolicy(compat=Compat.KUBERNETES),
            rates=False,
            pauses=False,
            records=False,
            max_staleness=None,
        ),
    ),
}


@pytest.mark.parametrize(("gates", "strict", "want"), CASES.values(), ids=CASES.keys())
def test_options(gates: dict[str, bool], strict: bool, want: EvictionOptions) -> None:
    assert (
        eviction_options(GIVEN, Gates(gates), compat=Compat.KUBERNETES if strict else Compat.SULLY)
        == want
    )


def test_a_server_without_records_gets_none() -> None:
    assert not eviction_options(GIVEN, Gates(), records=False).records
