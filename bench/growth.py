"""Measures whether a pod costs the same in a small and in a large cluster, and draws it.

    python bench/growth.py [--nodes 100,500,1000,2000,5000] [--pods 1000,5000,10000,15000,20000]
                           [--turns 5] [--plot FILE]

The first panel is the processor time of the server for a scheduled pod, by the number of nodes of
8 devices; the second by the number of pods that are there already. Both should be flat. Each figure
is the median of several batches.
"""

import argparse
import statistics
from pathlib import Path

import devices
import recording
import shapes
import uvloop
from harness import Server
from paired import used
from plots import Panel, picture

DEVICES = 8
BATCH = 200
"""Pods that are created together, and so measured together."""


class Cluster:
    """A control plane that gets more and more pods."""

    def __init__(self) -> None:
        self._server = Server("sqlite")
        self._pods = self._batches = 0

    async def set_up(self, nodes: int) -> None:
        """Create the nodes with their devices."""
        await devices.set_up(self._server, shapes.Shape(nodes, DEVICES, 0))

    async def fill(self, pods: int) -> None:
        """Create pods until there are so many."""
        while self._pods < pods:
            await self.add(min(1000, pods - self._pods))

    async def add(self, pods: int) -> float:
        """Create pods and wait until they are bound; return the milliseconds that each took."""
        self._batches += 1
        prefix = f"pod-{self._batches:03d}-"
        load = [(shapes.PODS, shapes.pod(f"{prefix}{number:04d}")) for number in range(pods)]
        before = used(self._server)
        await devices.bind(self._server, prefix, load)
        await devices.quiet(self._server)
        self._pods += pods
        return (used(self._server) - before) / pods

    async def cost(self, turns: int) -> float:
        """Return the median cost of a pod."""
        return statistics.median([await self.add(BATCH) for _ in range(turns)])

    def stop(self) -> None:
        """End it."""
        self._server.stop()


async def by_nodes(nodes: int, turns: int) -> float:
    """Return what a pod costs on so many nodes, in milliseconds."""
    cluster = Cluster()
    try:
        await cluster.set_up(nodes)
        # The first pods fill caches.
        await cluster.fill(100)
        return await cluster.cost(min(turns, (nodes * DEVICES - 100) // BATCH))
    finally:
        cluster.stop()


async def by_pods(counts: list[int], turns: int) -> list[float]:
    """Return what a pod costs where so many pods are, in milliseconds."""
    cluster = Cluster()
    costs: list[float] = []
    try:
        await cluster.set_up((max(counts) + BATCH * turns) // DEVICES + 1)
        for count in counts:
            await cluster.fill(count)
            costs.append(await cluster.cost(turns))
        return costs
    finally:
        cluster.stop()


async def measure(nodes: list[int], pods: list[int], turns: int) -> str:
    """Print and record the figures; return the picture."""
    figures: dict[str, float] = {}
    for count in nodes:
        figures[f"{count} nodes, CPU ms/pod"] = cost = await by_nodes(count, turns)
        print(f"{count:6} nodes  {cost:.2f} ms/pod", flush=True)
    for count, cost in zip(pods, costs := await by_pods(pods, turns), strict=True):
        figures[f"{count} pods, CPU ms/pod"] = cost
        print(f"{count:6} pods   {cost:.2f} ms/pod", flush=True)
    print("\n".join(recording.record("growth", figures)))
    name = "processor time of a scheduled pod (ms)"
    return picture(
        "What a pod costs as a cluster grows",
        [
            Panel(f"{name}, by nodes", nodes, list(figures.values())[: len(nodes)], "nodes", True),
            Panel(f"{name}, by pods that are there", pods, costs, "pods", True),
        ],
    )


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", default="100,500,1000,2000,5000")
    parser.add_argument("--pods", default="1000,5000,10000,15000,20000")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--plot", type=Path, default=recording.FOLDER / "growth.svg")
    options = parser.parse_args()
    nodes, pods = ([int(n) for n in text.split(",")] for text in (options.nodes, options.pods))
    drawn = uvloop.run(measure(nodes, pods, options.turns))
    options.plot.write_text(drawn)
    print(f"drawn in {options.plot}")


if __name__ == "__main__":
    main()
