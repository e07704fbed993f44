"""Evaluating expressions on clusters within a budget: what exceeds it keeps what it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleets import (
    decision,
    fleet_of,
    later,
    placement,
    predicate,
    put,
)
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.results.outcome import Outcome
from sully.domain.placement.whatif import whatif
from sully.machinery.cel import CostBudget, UnfinishedError
from sully.testing.builders import cluster, cluster_set, set_binding

KEY = ("apps", "p")
NOW = later(0)
PLENTY = 10**12
LABELS = "managedCluster.metadata.labels"
LOOP = f'{LABELS}.exists(key, {LABELS}[key] == "eu")'
"""What it costs depends on the cluster."""


def fleet(regions: str, options: PlacementOptions = OCM, *decided: str) -> Fleet:
    """Return a fleet with a cluster for each letter, in the region eu if it is an e."""
    clusters = [
        cluster(f"c{at}", labels={"region": "eu" if letter == "e" else "us", "more": letter})
        for at, letter in enumerate(regions)
    ]
    desired = placement(predicates=(predicate(LOOP),))
    had = [decision("p", *decided)] if decided else []
    return fleet_of([cluster_set(), set_binding(), *clusters, desired, *had], options)


def finish(made: Fleet, budget: CostBudget) -> Outcome:
    while True:
        try:
            result = decide(made, KEY, NOW, budget)
            assert result is not None
            return result
        except UnfinishedError as unfinished:
            if unfinished.work is not None:
                unfinished.work()
            budget.resume()


REGIONS = st.text("eu", min_size=1, max_size=6)


@given(regions=REGIONS, per_slice=st.integers(1, 200))
def test_slices_change_nothing(regions: str, per_slice: int) -> None:
    sliced = finish(fleet(regions), CostBudget(PLENTY, per_slice=per_slice))

    assert sliced == finish(fleet(regions), CostBudget(PLENTY))


@given(regions=REGIONS, units=st.integers(0, 200))
def test_a_smaller_budget_never_chooses_otherwise(regions: str, units: int) -> None:
    limited = finish(fleet(regions), CostBudget(units))

    if limited.back_off:
        assert limited.clusters == ()
    else:
        assert limited == finish(fleet(regions), CostBudget(PLENTY))


@pytest.mark.parametrize("options", [OCM, PlacementOptions()], ids=["reference", "sully"])
def test_it_keeps_what_it_has_and_reports_why(options: PlacementOptions) -> None:
    got = finish(fleet("eeuu", options, "c1", "c2"), CostBudget(10))

    assert got.clusters == ("c1", "c2")
    assert got.back_off
    placement_misconfigured = {condition.type: condition for condition in got.conditions}[
        "PlacementMisconfigured"
    ]
    assert (placement_misconfigured.status, placement_misconfigured.message) == (
        "True",
        f"Predicate:evaluation exceeds the budget of 10 cost units, at expression {LOOP}",
    )


def test_the_next_pass_gets_further() -> None:
    made = fleet("eeeeee")
    want = finish(fleet("eeeeee"), CostBudget(PLENTY))
    # Compiling is charged to whoever is the first in the process, so only evaluation is measured.
    everything = CostBudget(PLENTY)
    finish(fleet("eeeeee"), everything)
    units = (PLENTY - everything.left) // 2

    tried = [finish(made, CostBudget(units)) for _ in range(3)]

    assert tried[0].back_off
    assert tried[2] == want


def test_only_what_changed_is_evaluated_again() -> None:
    made = fleet("eeeeee")
    everything = CostBudget(PLENTY)
    finish(made, everything)
    put(made, cluster("c0", labels={"region": "us"}))
    again = CostBudget(PLENTY)

    got = finish(made, again)

    assert got.clusters == ("c1", "c2", "c3", "c4", "c5")
    assert 0 < PLENTY - again.left < (PLENTY - everything.left) // 3


def test_a_question_about_the_future_has_one_budget() -> None:
    made = fleet("eeuu", PlacementOptions(), "c0", "c1")

    forecast = whatif(made, (), NOW, budget=CostBudget(10))

    assert forecast.outcomes[KEY].back_off
    assert forecast.outcomes[KEY].clusters == ("c0", "c1")
