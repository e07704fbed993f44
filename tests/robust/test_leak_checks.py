"""What `make robust` calls a leak: growth after the warm-up, not noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from leaks.rounds import SAMPLES, Sample, leaks

Shape = Callable[[int], Sample]
CASES: dict[str, tuple[Shape, list[str]]] = {
    "flat": (lambda n: Sample(n, 200.0, 40, 9), []),
    "noise": (lambda n: Sample(n, 200.0 + n % 2 * 15, 40 + n % 5, 9 + n % 3), []),
    "memory": (lambda n: Sample(n, 200.0 + 10 * n, 40, 9), ["memory grew from 200 to 280 MiB"]),
    "descriptors": (lambda n: Sample(n, 200.0, 40 + 2 * n, 9), ["descriptors grew from 40 to 56"]),
    "tasks": (lambda n: Sample(n, 200.0, 40, 9, 50 + 2 * n), ["tasks grew from 50 to 66"]),
    "objects": (
        lambda n: Sample(n, 200.0, 40, 9, 50, 800 * n),
        ["objects grew from 0 to 6400"],
    ),
    "records": (
        lambda n: Sample(n, 200.0, 40, 9, 50, 800, 20 * n),
        ["records grew from 0 to 160"],
    ),
    "threads": (lambda n: Sample(n, 200.0, 40, 9 + 2 * n), ["threads grew from 9 to 25"]),
}


@pytest.mark.parametrize(("shape", "want"), CASES.values(), ids=CASES)
def test_leaks(shape: Shape, want: list[str]) -> None:
    samples = [replace(shape(number), evicted=number) for number in range(SAMPLES)]

    assert list(leaks(samples)) == want


def test_a_run_without_evictions_shows_nothing_about_records() -> None:
    samples = [Sample(number, 200.0, 40, 9) for number in range(SAMPLES)]

    assert list(leaks(samples)) == ["no pod was evicted, so there were no records"]
