"""The names, renewals and numbers of simulated clusters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.domain.simulated.clusters import (
    RENEWALS,
    Members,
    cluster_of,
    first_renewal,
    name_of,
    next_renewal,
    number_of,
)

numbers = st.integers(0, 10_000)


@given(numbers)
def test_a_name_has_its_number(number: int) -> None:
    assert number_of(name_of(number)) == number


@pytest.mark.parametrize(
    "name", ["worker-0001", "member-cluster-1", "member-cluster-00001", "member-cluster-000x", ""]
)
def test_no_name_of_ours(name: str) -> None:
    assert number_of(name) is None


@given(numbers, st.integers(0, 10_000), st.integers(1, 3600))
def test_a_renewal_is_late_by_a_quarter_at_most(number: int, turn: int, duration: int) -> None:
    assert duration <= next_renewal(number, turn, duration) <= 1.25 * duration
    assert 0 <= first_renewal(number, duration) < duration


def test_first_renewals_are_spread_over_the_duration() -> None:
    moments = [int(first_renewal(number, 10)) for number in range(1000)]

    assert {moments.count(second) for second in range(10)} <= set(range(90, 111))


DURATIONS = {"few": (Members(20), 60), "many": (Members(10_000), 500), "given": (Members(9, 3), 3)}


@pytest.mark.parametrize(("members", "want"), DURATIONS.values(), ids=DURATIONS)
def test_duration(members: Members, want: int) -> None:
    assert members.duration == want
    assert cluster_of(0, members)["spec"]["leaseDurationSeconds"] == want


@given(st.integers(1, 10_000))
def test_never_too_many_renewals_in_a_second(count: int) -> None:
    assert count / Members(count).duration <= RENEWALS + 1
