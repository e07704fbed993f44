"""Whole control planes with faults keep their promises. `make simulate` runs 10 000 of them."""

from __future__ import annotations

import re

import pytest

from simulation.programs import simulate
from simulator.operations import plan
from simulator.world import run

SEEDS = 50
"""Per test, 200 in all. They are short; `make simulate` runs more, and longer ones."""
SCALE = "0.04"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 201, SEEDS))
def test_seeds_keep_every_promise(first: int) -> None:
    done = simulate("--first", str(first), "--seeds", str(SEEDS), "--scale", SCALE, "--jobs", "1")

    assert done.returncode == 0, done.stdout + done.stderr
    # Else nothing happened that could have broken one.
    assert _figure(r"faults +(\d+)", done.stdout) > SEEDS // 2
    assert _figure(r"pods evicted +\d+, (\d+)", done.stdout) > SEEDS


def test_a_seed_is_the_same_run_every_time() -> None:
    first = run(plan(11, scale=0.3), trace=True)
    second = run(plan(11, scale=0.3), trace=True)

    assert first.violations == []
    assert len(first.trace) > 100
    assert first.trace == second.trace
    assert first.steps == second.steps


@pytest.mark.slow
def test_a_seed_is_the_same_run_in_every_process() -> None:
    first, second = (simulate("--seeds", "1", "--first", "11", "--scale", SCALE) for _ in range(2))

    assert _figure(r"steps of tasks +(\d+)", first.stdout) > 1000
    assert _timeless(first.stdout) == _timeless(second.stdout)


def _timeless(text: str) -> str:
    return re.sub(r"(, \d+|\d+\.\d+) s$", "", text, flags=re.MULTILINE)


def test_seeds_are_different_runs() -> None:
    plans = [plan(seed) for seed in range(1, 40)]

    assert len({str(seed.operations) for seed in plans}) == len(plans)
    assert {operation.name for seed in plans for operation in seed.operations} >= {
        "crash server", "power cut", "io errors", "kill", "cut", "lose messages", "break watches",
        "silence watches", "step clock", "suspend", "create rule", "delete rule",
        "pause rule", "flip health", "create workload", "create pod", "delete pod",
        "scale", "create policy",
    }  # fmt: skip


def _figure(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    assert match is not None, text
    return int(match[1])
