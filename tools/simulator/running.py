"""Runs many seeds on all processors, with their progress, and continues where a run was stopped.

Processes are forked from one that has loaded everything, run a few seeds and end: so nobody has to
collect what is left of a simulated world.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from simulator.operations import SHORT, plan
from simulator.template import template_image
from simulator.world import run

_ROOT = Path(__file__).resolve().parents[2]
_SUMS = ("seconds", "steps", "writes", "evictions", "faults", "processor")


class Figures(msgspec.Struct, frozen=True):
    """What one seed has shown."""

    seed: int
    seconds: float
    steps: int
    writes: int
    evictions: int
    faults: int
    processor: float
    """Seconds of processor time."""
    promise: str = ""
    """The promise that was broken first."""


class ResumeError(Exception):
    """The results of an earlier run do not belong to this one."""


def one(seed: int, scale: float) -> Figures:
    """Run one seed, in a process that ends soon."""
    began = time.process_time()
    outcome = run(plan(seed, scale=scale), collect=False)
    return Figures(
        seed=seed,
        seconds=outcome.seconds,
        steps=outcome.steps,
        writes=outcome.revision,
        evictions=outcome.evictions,
        faults=outcome.faults,
        processor=time.process_time() - began,
        promise=outcome.violations[0].promise if outcome.violations else "",
    )


def run_seeds(seeds: Sequence[int], *, scale: float, jobs: int, resume: Path | None) -> list[int]:
    """Run seeds, print a summary, and return those that violated a promise."""
    began = time.monotonic()
    results = Results(resume, scale)
    known = [figures for figures in results.known if figures.seed in seeds]
    left = sorted(set(seeds) - {figures.seed for figures in known})
    if known:
        print(f"  {len(known)} of {len(seeds)} seeds were run before", flush=True)
    for number, figures in enumerate(_run(left, scale, jobs), 1):
        results.add(figures)
        known.append(figures)
        if figures.promise:
            print(f"  seed {figures.seed} violated a promise: {figures.promise}", flush=True)
        if number % 100 == 0:
            took = time.monotonic() - began
            rest = took / number * (len(left) - number)
            print(f"  {number} of {len(left)} seeds, {took:.0f} s, {rest:.0f} s left", flush=True)
    _summary(known, time.monotonic() - began)
    return sorted(figures.seed for figures in known if figures.promise)


def _run(seeds: Sequence[int], scale: float, jobs: int) -> Iterator[Figures]:
    if not seeds:
        return
    for nodes, devices in sorted({(p.nodes, p.devices) for p in map(plan, seeds)}):
        # Before the fork, so that every process has them.
        template_image(nodes, devices)
    batch = 10 if scale < SHORT else 4
    batch = max(1, min(batch, len(seeds) // jobs))
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs, _end_on_sigterm, maxtasksperchild=1) as pool:
        yield from pool.imap_unordered(partial(one, scale=scale), seeds, chunksize=batch)


def _end_on_sigterm() -> None:
    # That is how a pool ends its processes, and they inherit the handler of the one that forked.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _summary(results: Sequence[Figures], took: float) -> None:
    total: Counter[str] = Counter()
    for figures in results:
        for name in _SUMS:
            total[name] += getattr(figures, name)
    failed = sum(bool(figures.promise) for figures in results)
    count = max(1, len(results))
    rows = (
        ("seeds", f"{len(results)}, {took:.0f} s"),
        ("processor time per seed", f"{total['processor'] / count:.2f} s"),
        ("simulated time", f"{total['seconds'] / 86400:.1f} days"),
        ("steps of tasks", f"{total['steps']}"),
        ("writes, pods evicted", f"{total['writes']}, {total['evictions']}"),
        ("faults", f"{total['faults']}"),
        ("seeds with a violation", f"{failed}"),
    )
    for name, text in rows:
        print(f"  {name:24} {text}")


class Results:
    """The results of seeds in a file, one line each; the first line names the code they are of."""

    def __init__(self, path: Path | None, scale: float) -> None:
        self._path = path
        self.known: list[Figures] = []
        """What was there already."""
        if path is None:
            return
        version = f"{code_version()} {scale}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{version}\n")
            return
        first, *lines = path.read_text().splitlines()
        if first != version:
            raise ResumeError(
                f"{path} has results of other code or another scale: delete it, or name another"
            )
        self.known = [msgspec.json.decode(line, type=Figures) for line in lines]

    def add(self, figures: Figures) -> None:
        """Append the result of a seed."""
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(figures) + b"\n")


def code_version() -> str:
    """Return a digest of the code that is simulated and of the simulator."""
    digest = hashlib.sha256()
    for folder in ("src/sully", "tools/simulator"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(_ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]
