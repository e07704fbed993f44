"""Measures what a pod costs this checkout beside another one, where other jobs share the machine.

    python bench/paired.py OTHER [--what bind|evict] [--turns 24] [--pods 150] [--nodes 500]

Two servers run together, one of each checkout, and bind or evict pods in turn. Other load affects
both, so only the ratio of two neighbouring turns is meaningful. OTHER is the folder of a
checkout (`git worktree add ../before HEAD~1`); both use the packages installed here.
"""

import argparse
import os
import random
import statistics
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import devices
import shapes
import uvloop
from harness import Server, Watch

HERE = Path(__file__).resolve().parent.parent
DRAWS = 2000
ALL_DEVICES = {"driver": shapes.DRIVER}


def used(server: Server) -> float:
    """Return the milliseconds of processor time so far, all threads, to the nanosecond."""
    tasks = Path(f"/proc/{server.child.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


async def bind(server: Server, number: int, pods: int) -> float:
    """Bind pods; return what each cost."""
    prefix = f"pod-{number:03d}-"
    load = [(shapes.PODS, shapes.pod(f"{prefix}{number:04d}")) for number in range(pods)]
    before = used(server)
    await devices.bind(server, prefix, load)
    await devices.quiet(server)
    return (used(server) - before) / pods


async def evict(server: Server, number: int, pods: int) -> float:
    """Evict pods with one rule, and remove them; return what each eviction cost."""
    await bind(server, number, pods)
    tally = devices.Tally(f"pod-{number:03d}-", pods, devices.is_marked)
    watch = await Watch.open(server, shapes.PODS, tally.take)
    async with server.connect() as connection:
        before = used(server)
        await connection.create(shapes.RULES, shapes.rule("evict", ALL_DEVICES, "NoExecute"))
        await tally.last()
        await devices.quiet(server)
        cost = (used(server) - before) / pods
        watch.close()
        await connection.call("DELETE", f"{shapes.RULES}/evict")
        for name in tally.seen:
            await connection.call("DELETE", f"{shapes.PODS}/{name}?gracePeriodSeconds=0")
    await devices.quiet(server)
    return cost


Turn = Callable[[Server, int, int], Awaitable[float]]
TURNS: dict[str, Turn] = {"bind": bind, "evict": evict}


def start(checkout: Path) -> Server:
    """Start a server of a checkout."""
    os.environ["PYTHONPATH"] = str(checkout / "src")
    return Server("sqlite")


async def measure(turn: Turn, other: Path, turns: int, pods: int, nodes: int) -> None:
    """Run both, in an order that changes with each turn, and print what came out."""
    servers = [start(other), start(HERE)]
    costs: list[list[float]] = [[], []]
    try:
        for server in servers:
            await devices.set_up(server, shapes.Shape(nodes, 8, 0))
        for number in range(turns):
            for which in (0, 1) if number % 2 else (1, 0):
                costs[which].append(await turn(servers[which], number, pods))
    finally:
        for server in servers:
            server.stop()
    ratios = [here / there for there, here in zip(*costs, strict=True)]
    draws = sorted(statistics.median(random.choices(ratios, k=turns)) for _ in range(DRAWS))
    for name, each in zip(("other", "here"), costs, strict=True):
        print(
            f"{name:6} {min(each):.2f} to {max(each):.2f} ms/pod, median of {turns}"
            f" {statistics.median(each):.2f}"
        )
    print(
        f"ratio  {statistics.median(ratios):.3f}, with 95 % certainty"
        f" {draws[DRAWS // 40]:.3f} to {draws[-DRAWS // 40]:.3f}"
    )


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path)
    parser.add_argument("--what", choices=TURNS, default="bind")
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--pods", type=int, default=150)
    parser.add_argument("--nodes", type=int, default=500)
    options = parser.parse_args()
    if not (options.other / "src/sully").is_dir():
        sys.exit(f"{options.other} is not a checkout")
    turn, other = TURNS[options.what], options.other.resolve()
    uvloop.run(measure(turn, other, options.turns, options.pods, options.nodes))


if __name__ == "__main__":
    main()
