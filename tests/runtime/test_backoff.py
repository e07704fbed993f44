from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.runtime.backoff import Backoff


@dataclass(frozen=True)
class Case:
    failures: int
    want: float


CASES = {
    "no failure": Case(0, 0.0),
    "the first": Case(1, 1.0),
    "the second": Case(2, 2.0),
    "the fourth": Case(4, 8.0),
    "just below the cap": Case(6, 32.0),
    "at the cap": Case(7, 60.0),
    "far beyond the cap": Case(100_000, 60.0),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_delays_double_up_to_the_cap(case: Case) -> None:
    backoff = Backoff(base=1.0, cap=60.0, jitter=0.0)

    assert backoff.delay(case.failures) == pytest.approx(case.want)


@given(failures=st.integers(1, 1000), jitter=st.floats(0, 1))
def test_jitter_only_adds_and_only_so_much(failures: int, jitter: float) -> None:
    plain = Backoff(jitter=0.0).delay(failures)

    got = Backoff(jitter=jitter).delay(failures)

    assert plain <= got <= plain * (1 + jitter)


def test_a_cap_below_the_base_holds() -> None:
    assert Backoff(base=5.0, cap=1.0, jitter=0.0).delay(3) == 1.0
