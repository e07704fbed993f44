"""A server lives through faults of its disk, process and clock. `make robust` injects more."""

import asyncio
from pathlib import Path

import pytest

from faults.layer import LayerError
from faults.planes import plane
from faults.report import table
from faults.rounds import Figures, Rounds

FAULTS = 10
SEED = 20261117


@pytest.mark.slow
def test_no_promise_is_broken(tmp_path: Path) -> None:
    try:
        rounds = Rounds(plane("sqlite", tmp_path.resolve() / "plane"), SEED)
    except LayerError as error:
        pytest.skip(str(error))

    figures = asyncio.run(rounds.run(FAULTS, lambda _: None))

    assert figures.problems == []
    assert figures.total >= FAULTS
    # Else it was not at work.
    assert figures.counts["acknowledged"] > 5 * FAULTS
    assert figures.operations > 0


def test_the_table_has_every_fault_and_every_store() -> None:
    one, two = Figures("SQLite"), Figures("etcd")
    one.faults["power failure"] = 3
    two.faults["network: cut"] = 4
    one.counts["acknowledged"] = 70
    two.problems.append("LOST")

    lines = table([one, two])

    assert "| power failure | 3 | - |" in lines
    assert "| network: cut | - | 4 |" in lines
    assert "| **faults** | 3 | 4 |" in lines
    assert "| acknowledged writes checked | 70 | 0 |" in lines
    assert "| violations | 0 | 1 |" in lines
