"""Measures decisions: `PYTHONPATH=tests python tests/server/authorization/bench_authorizer.py`.

A user with 50 bindings, beside a thousand bindings of others, in the worst cases: nothing grants
it, and something else is written between any two questions.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from server.authorization.world import World, ask, person, rule, user
from sully.server.authorization.attributes import Attributes
from sully.store.base import Put, StoreKey

ROUNDS = 4000
REPEATS = 5


def best_of(run: Callable[[], object]) -> float:
    """Return how many microseconds one run takes, in the best of a few rounds."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        for _ in range(ROUNDS):
            run()
        best = min(best, time.perf_counter() - begin)
    return best / ROUNDS * 1e6


async def with_writes(world: World, name: str, asked: Attributes) -> float:
    """Return what a question takes when the store has changed since the last one."""
    spent, who = 0.0, person(name)
    for number in range(ROUNDS):
        await world.store.commit([Put(StoreKey("configmaps", "default", f"n{number}"), b"{}")])
        begin = time.perf_counter()
        world.authorize(who, asked)
        spent += time.perf_counter() - begin
    return spent / ROUNDS * 1e6


async def measure() -> dict[str, float]:
    """Measure the cases, by name."""
    rules = [rule("get list watch", f"kind{number}", "example.com") for number in range(5)]
    get, delete = ask("get", "pods", "default", "x"), ask("delete", "pods", "default", "x")
    async with World.running() as world:
        await world.role("reader", *rules)
        await world.role("pods", rule("get", "pods"))
        for number in range(50):
            await world.bind(f"b{number}", "ClusterRole/reader", [user("many")])
        for number in range(1000):
            await world.bind(f"o{number}", "ClusterRole/reader", [user(f"other{number}")])
        await world.bind("zz", "ClusterRole/pods", [user("many")])
        many, nobody = person("many"), person("nobody")
        return {
            "51 bindings, the last one grants": best_of(lambda: world.authorize(many, get)),
            "51 bindings, none grants": best_of(lambda: world.authorize(many, delete)),
            "only what everybody has": best_of(lambda: world.authorize(nobody, get)),
            "51 bindings, after a write": await with_writes(world, "many", delete),
        }


def main() -> None:
    for name, micros in asyncio.run(measure()).items():
        sys.stdout.write(f"{name:34} {micros:6.1f} us\n")


if __name__ == "__main__":
    main()
