"""Measures the memory of a control plane: idle, and after pods were scheduled.

    python bench/memory.py [--nodes 1000] [--pods 1000,15000]

Each node has 16 devices, and each pod a claim from a template for one of them. Resident memory is
read when the server is quiet; the history of writes is still there, as its retention wants.
"""

import argparse

import devices
import recording
import shapes
import uvloop
from harness import Server

DEVICES = 16


async def measure(nodes: int, counts: list[int]) -> dict[str, float]:
    """Return the resident memory in MiB after each number of pods."""
    server = Server("sqlite")
    try:
        await devices.quiet(server)
        figures = {"idle MiB": server.memory()}
        await devices.set_up(server, shapes.Shape(nodes, DEVICES, 0))
        figures[f"{nodes} nodes MiB"] = server.memory()
        have = 0
        for count in counts:
            names = [f"pod-{number:05d}" for number in range(have, count)]
            await devices.bind(server, "pod-", [(shapes.PODS, shapes.pod(name)) for name in names])
            await devices.quiet(server)
            figures[f"{nodes} nodes {count} pods MiB"] = server.memory()
            have = count
        return figures
    finally:
        server.stop()


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", default="1000,15000")
    options = parser.parse_args()
    counts = sorted(int(count) for count in options.pods.split(","))
    figures = uvloop.run(measure(options.nodes, counts))
    for name, value in figures.items():
        print(f"{name:32}{value:8.0f}")
    print("\n".join(recording.record("memory", figures)))


if __name__ == "__main__":
    main()
