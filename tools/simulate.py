"""Simulates whole control planes with faults, one per seed. `make simulate` runs it.

    python tools/simulate.py [seeds|mutations|planted] [--seeds 10000] [--first 1] [--scale 1.0]
        [--jobs 2] [--resume FILE] [--only NAME]

A failing seed prints a short history that breaks the same promise. The same seed is the same run:
`--seeds 1 --first 4711` repeats one.
"""

from __future__ import annotations

import argparse
import os
import sys
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
    parser.add_argument(
        "--resume", type=Path, help="a file for results; seeds that are in it are not run again"
    )
    parser.add_argument("--only", default="", help="mutations with this in their name")
    return parser


def _seeds(options: argparse.Namespace) -> int:
    from simulator.running import ResumeError, run_seeds

    seeds = range(options.first, options.first + options.seeds)
    try:
        failed = run_seeds(seeds, scale=options.scale, jobs=options.jobs, resume=options.resume)
    except ResumeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for seed in failed[:3]:
        _show(seed, options.scale)
    return 1 if failed else 0


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
