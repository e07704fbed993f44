"""The simulation finds planted faults; `make simulate ARGS=mutations` runs all of them."""

from __future__ import annotations

import pytest

from simulator.mutating import detect
from simulator.mutations import Mutation, MutationError, check, mutations

ALL = {mutation.name: mutation for mutation in mutations()}
QUICK = (
    "acknowledge before the flush",
    "do not flush",
    "drop an event of a watch",
    "ignore tolerations",
)
"""Few seeds find these, so they cost little."""


@pytest.mark.parametrize("mutation", ALL.values(), ids=ALL)
def test_a_planted_fault_fits_the_code(mutation: Mutation) -> None:
    check(mutation)


def test_there_are_many() -> None:
    assert len(ALL) == len(mutations())
    assert len(ALL) >= 20


def test_a_fault_that_does_not_fit_is_reported() -> None:
    stale = Mutation("stale", "sully.store.sqlite.database", "no such line\n", "")

    with pytest.raises(MutationError, match="0 times, not once"):
        check(stale)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_planted_fault_is_found(name: str) -> None:
    detection = detect(ALL[name], seeds=10)

    assert detection.promise, detection.text
