"""The programs under tools/ that have something to get wrong."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from architecture.project import ROOT
from conformance import Outcome, causes, generalised, name_of_floor, read_floors
from replays import SUITES, spread

GENERAL = {
    "an object's place in a list": ("items[3].x: 1, recorded 2", "items[*].x: 1, recorded 2"),
    "this run's token": ("name: 'zq12ab-rule'", "name: 'TOKEN'"),
    "a version": ("metadata.resourceVersion: 10234 is", "metadata.resourceVersion: N is"),
    "a code stays": ("code 500, recorded 400", "code 500, recorded 400"),
}


@pytest.mark.parametrize(("output", "want"), GENERAL.values(), ids=GENERAL.keys())
def test_differences_lose_what_only_one_run_has(output: str, want: str) -> None:
    assert generalised(output) == want


def _different(step: int, text: str) -> dict[str, Any]:
    return {"scenario": "s", "step": step, "equal": False, "differences": [text]}


def test_causes_are_counted_most_frequent_first() -> None:
    results = [
        _different(1, "once"),
        _different(2, "items[0]: twice"),
        _different(3, "items[1]: twice"),
        {"scenario": "s", "step": 4, "equal": True, "differences": []},
    ]

    assert causes(results, 1) == [
        "2 causes of differences:",
        "     2  items[*]: twice",
        "        e.g. s step 2",
        "  and 1 more causes",
    ]


def test_floors_are_read_without_comments(tmp_path: Path) -> None:
    path = tmp_path / "floor.txt"
    path.write_text("# least\napi 594  # of 662\n\nworlds 80\n")

    assert read_floors(path) == {"api": 594, "worlds": 80}


def test_the_committed_floor_can_be_read() -> None:
    assert "api" in read_floors(ROOT / "tests/conformance-floor.txt")


@pytest.mark.parametrize(("folder", "want"), [(".", "api"), ("second", "second/api")])
def test_further_recordings_have_a_floor_of_their_own(
    folder: str, want: str, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    (tmp_path / SUITES["api"].program).touch()

    assert name_of_floor((tmp_path / folder).resolve(), "api") == want


BELOW = {
    "no floor": ((3, 10, 10), 0, 0),
    "on the floor": ((84, 85, 85), 84, 0),
    "above it": ((85, 85, 85), 84, 0),
    "below it": ((82, 85, 85), 84, 2),
    "a part may miss what the whole may miss": ((15, 16, 85), 84, 0),
    "and no more": ((14, 16, 85), 84, 1),
}


@pytest.mark.parametrize(("counts", "floor", "missing"), BELOW.values(), ids=BELOW)
def test_what_is_below_the_floor(counts: tuple[int, int, int], floor: int, missing: int) -> None:
    assert Outcome(*counts).below(floor) == missing


@pytest.mark.parametrize(
    ("number", "chosen"),
    [(1, "a"), (2, "ak"), (3, "afk"), (11, "abcdefghijk"), (99, "abcdefghijk")],
)
def test_a_part_is_spread_over_the_whole(number: int, chosen: str, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.write_text("".join(f"{letter}\n" for letter in "abcdefghijk"))

    assert spread(whole, number, part) == 11
    assert part.read_text().split() == list(chosen)


def test_benchmarks_can_be_imported() -> None:
    # They are not type-checked with the rest: some have the names of test packages.
    names = sorted(path.stem for path in (ROOT / "bench").glob("*.py"))
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("bench", "tests"))

    done = subprocess.run(
        [sys.executable, "-c", f"import {', '.join(names)}"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
