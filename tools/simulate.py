"""Simulates whole control planes with faults, one per seed. `make simulate` runs it.

    python tools/simulate.py [seeds|mutations|planted] [--seeds 10000] [--first 1] [--scale 1.0]
        [--jobs 2] [--only NAME]

A failing seed prints a short history that breaks the same promise. The same seed is the same run:
`--seeds 1 --first 4711` repeats one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

_PROGRAM = "python tools/simulate.py"
_HASH_SEED = "PYTHONHASHSEED"


def main() -> int:
    """Run the selected part; 0 if every promise was kept."""
    if os.environ.get(_HASH_SEED) != "0":
        # The order of sets of strings is part of what a seed decides.
        os.environ[_HASH_SEED] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    options = _parser().parse_args()
    if options.what == "mutations":
        from simulator.mutating import run_all

        return run_all(options.only, jobs=options.jobs)
    if options.what == "planted":
        from simulator.mutating import planted

        return planted(options.only, options.seeds)
    return _seeds(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "what", nargs="?", default="seeds", choices=("seeds", "mutations", "planted")
    )
    parser.add_argument("--seeds", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="length of histories (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", default="", help="mutations with this in their name")
    return parser


@dataclass(frozen=True, slots=True)
class Figures:
    """What one seed has shown, small enough to be sent between processes."""

    seed: int
    seconds: float
    steps: int
    writes: int
    evictions: int
    faults: int
    promise: str


def one(seed: int, scale: float) -> Figures:
    """Run one seed."""
    from simulator.operations import plan
    from simulator.world import run

    outcome = run(plan(seed, scale=scale))
    return Figures(
        seed=seed,
        seconds=outcome.seconds,
        steps=outcome.steps,
        writes=outcome.revision,
        evictions=outcome.evictions,
        faults=outcome.faults,
        promise=outcome.violations[0].promise if outcome.violations else "",
    )


def _seeds(options: argparse.Namespace) -> int:
    began = time.monotonic()
    seeds = range(options.first, options.first + options.seeds)
    total: Counter[str] = Counter()
    failed: list[Figures] = []
    work = partial(one, scale=options.scale)
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, figures in enumerate(pool.map(work, seeds, chunksize=5), 1):
            for name in ("seconds", "steps", "writes", "evictions", "faults"):
                total[name] += round(getattr(figures, name))
            if figures.promise:
                failed.append(figures)
                print(f"  seed {figures.seed} broke a promise: {figures.promise}", flush=True)
            if number % 100 == 0:
                print(f"  {number} of {len(seeds)} seeds, {_took(began)}", flush=True)
    print(f"  seeds                    {len(seeds)}, {_took(began)}")
    print(f"  simulated time           {total['seconds'] / 86400:.1f} days")
    print(f"  steps of tasks           {total['steps']}")
    print(f"  writes, pods evicted     {total['writes']}, {total['evictions']}")
    print(f"  faults                   {total['faults']}")
    print(f"  seeds with a violation   {len(failed)}")
    for figures in failed[:3]:
        _show(figures.seed, options.scale)
    return 1 if failed else 0


def _took(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


def _show(seed: int, scale: float) -> None:
    """Print a short history that breaks the same promise as a seed."""
    from simulator.operations import plan
    from simulator.shrinking import shrink
    from simulator.world import run

    whole = run(plan(seed, scale=scale))
    if not whole.violations:
        print(f"seed {seed}: kept every promise when it was repeated: it is not deterministic")
        return
    short = shrink(whole)
    left = len(short.plan.operations)
    print(f"\nseed {seed}: {left} of {len(whole.plan.operations)} operations are enough")
    for operation in short.plan.operations:
        print(f"  {operation}")
    for violation in short.violations[:3]:
        print(f"  VIOLATION {violation}")
    print(f"  again: {_PROGRAM} --seeds 1 --first {seed} --scale {scale}")


if __name__ == "__main__":
    sys.exit(main())
