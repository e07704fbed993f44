"""Measures what a pod costs this checkout beside another one, where other jobs share the machine.

    python bench/paired.py OTHER [--turns 24] [--pods 150] [--nodes 500]

Two servers run together, one of each checkout, and get pods in turn. Other load affects both, so
only the ratio of two neighbouring turns is meaningful. OTHER is the folder of a
checkout (`git worktree add ../before HEAD~1`); both use the packages installed here.
"""

import argparse
import os
import random
import statistics
import sys
from pathlib import Path

import devices
import shapes
import uvloop
from harness import Server

HERE = Path(__file__).resolve().parent.parent
DRAWS = 2000


def used(server: Server) -> float:
    """Return the milliseconds of processor time so far, all threads, to the nanosecond."""
    tasks = Path(f"/proc/{server.child.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


async def turn(server: Server, number: int, pods: int) -> float:
    """Bind pods; return what each cost."""
    prefix = f"pod-{number:03d}-"
    load = [(shapes.PODS, shapes.pod(f"{prefix}{number:04d}")) for number in range(pods)]
    before = used(server)
    await devices.bind(server, prefix, load)
    await devices.quiet(server)
    return (used(server) - before) / pods


def start(checkout: Path) -> Server:
    """Start a server of a checkout."""
    os.environ["PYTHONPATH"] = str(checkout / "src")
    return Server("sqlite")


async def measure(other: Path, turns: int, pods: int, nodes: int) -> None:
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
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--pods", type=int, default=150)
    parser.add_argument("--nodes", type=int, default=500)
    options = parser.parse_args()
    if not (options.other / "src/sully").is_dir():
        sys.exit(f"{options.other} is not a checkout")
    uvloop.run(measure(options.other.resolve(), options.turns, options.pods, options.nodes))


if __name__ == "__main__":
    main()
