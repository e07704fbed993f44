"""The programs under tools/ that have something to get wrong."""

from pathlib import Path
from typing import Any

import pytest

from conformance import causes, generalised, read_floors
from house.project import ROOT

GENERAL = {
    "an object's place in a list": ("items[3].x: 1, recorded 2", "items[*].x: 1, recorded 2"),
    "this run's token": ("name: 'zq12ab-rule'", "name: 'TOKEN'"),
    "a version": ("metadata.resourceVersion: 10234 is", "metadata.resourceVersion: N is"),
    "a code stays": ("code 500, recorded 400", "code 500, recorded 400"),
}


@pytest.mark.parametrize(("given", "want"), GENERAL.values(), ids=GENERAL.keys())
def test_differences_lose_what_only_one_run_has(given: str, want: str) -> None:
    assert generalised(given) == want


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
