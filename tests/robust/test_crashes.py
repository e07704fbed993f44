"""A control plane that is killed at random moments keeps its word. `make robust` kills more."""

import asyncio
from pathlib import Path

import pytest

from crashes.rounds import Rounds

KILLS = 3
SEED = 20261115


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_and_nothing_is_half_there(tmp_path: Path) -> None:
    figures = asyncio.run(Rounds(tmp_path / "data", SEED).run(KILLS, lambda _: None))

    assert figures.problems == []
    assert figures.kills >= KILLS
    # Else the server was never killed at work.
    assert figures.counts["acknowledged"] > 50 * KILLS
    assert figures.counts["in doubt"] > 0
