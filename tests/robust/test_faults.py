"""A server lives through faults of its disk, process and clock. `make robust` injects more."""

import asyncio
import sys
from pathlib import Path

import pytest

from crashes.server import DiedError, Server, connected
from faults.contending import Contention
from faults.layer import LayerError
from faults.planes import plane
from faults.report import table
from faults.rounds import Figures, Rounds
from sully.store.compaction import Retention
from sully.testing.cluster import in_process
from sully.testing.patience import PATIENCE
from sully.testing.running_clock import RunningClock

FAULTS = 10
SEED = 20261117
FORGOTTEN_AFTER = Retention().seconds + 2 * Retention().interval


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


@pytest.mark.slow
def test_rounds_that_no_watch_can_follow_are_counted(tmp_path: Path) -> None:
    try:
        short = plane("sqlite", tmp_path.resolve() / "plane")
    except LayerError as error:
        pytest.skip(str(error))
    short.history = 0

    figures = asyncio.run(Rounds(short, SEED).run(4, lambda _: None))

    assert figures.rounds == figures.too_long >= 2
    assert figures.problems == [
        f"watches cannot follow {figures.rounds} of {figures.rounds} rounds"
    ]


async def test_the_history_of_shared_objects_begins_with_the_round() -> None:
    clock, contention = RunningClock(), Contention()
    async with in_process(clock=clock) as up, connected(up.kubeconfig) as connection:
        await contention.create(connection)
        await clock.advance(FORGOTTEN_AFTER)
        await contention.begin(connection)

        assert await contention.check(connection) == []


async def test_a_watch_of_shared_objects_that_is_refused_is_a_problem() -> None:
    clock, contention = RunningClock(), Contention()
    async with in_process(clock=clock) as up, connected(up.kubeconfig) as connection:
        await contention.create(connection)
        await contention.begin(connection)
        await clock.advance(FORGOTTEN_AFTER)

        with pytest.raises(DiedError, match=r"was refused.*too old resource version"):
            await contention.check(connection)


async def test_a_server_never_waits_for_a_user_who_reads_its_output(tmp_path: Path) -> None:
    prints = "print('ready after', flush=True); print('x\\n' * 500_000); print('the end')"
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", prints, stdout=pipe)
    server = Server(child, tmp_path, 0.0)
    await server.ready()

    async with asyncio.timeout(PATIENCE):
        await child.wait()

    await server.kill()
    assert server.output[-1] == "the end\n"


def test_the_table_has_every_fault_and_every_store() -> None:
    one, two = Figures("SQLite"), Figures("etcd")
    one.faults["power failure"] = 3
    two.faults["network: cut"] = 4
    one.counts["acknowledged"] = 70
    one.counts["rounds too long"] = 2
    two.problems.append("LOST")

    lines = table([one, two])

    assert "| power failure | 3 | - |" in lines
    assert "| network: cut | - | 4 |" in lines
    assert "| **faults** | 3 | 4 |" in lines
    assert "| acknowledged writes checked | 70 | 0 |" in lines
    assert "| rounds that no watch can follow: only lists compared | 2 | 0 |" in lines
    assert "| violations | 0 | 1 |" in lines
