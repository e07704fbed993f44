"""Runs the simulation on Sully with a planted fault, in a process of its own for each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from simulator.mutations import Mutation, mutations, plant

PROGRAM = Path(__file__).resolve().parent.parent / "simulate.py"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"
HEADING = "## Planted faults"
SHORT_SCALE, SHORT_ONES = 0.04, 5
MAX_SEEDS = 200
"""A fault that so many long histories, and the short ones between them, do not find is missed."""


class Detection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which seed found a fault, after how many steps, and by which promise."""

    seed: int
    scale: float = 1.0
    steps: int = 0
    promise: str = ""
    """Empty if no seed has found it."""
    text: str = ""


def detect(mutation: Mutation, *, seeds: int = MAX_SEEDS) -> Detection:
    """Run seeds until one of them finds the fault."""
    command = [sys.executable, str(PROGRAM), "planted", "--only", mutation.name]
    command += ["--seeds", str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return Detection(0, text=done.stderr.strip().rpartition("\n")[2])
    return msgspec.json.decode(done.stdout, type=Detection)


def planted(name: str, seeds: int) -> int:
    """Plant a fault in this process, and run seeds; 1 when it was found, 0 if it was not."""
    plant(name)
    from simulator.operations import plan
    from simulator.world import run

    detection = Detection(seeds, text=f"not found by {seeds} seeds")
    for seed, scale in _histories(seeds):
        outcome = run(plan(seed, scale=scale))
        if outcome.violations:
            first = outcome.violations[0]
            detection = Detection(seed, scale, outcome.steps, first.promise, first.text[:200])
            break
    print(msgspec.json.encode(detection).decode())
    return 1 if detection.promise else 0


def _histories(seeds: int) -> Iterator[tuple[int, float]]:
    """Yield seeds and scales: each long history after some short ones, which cost as much."""
    for seed in range(1, seeds + 1):
        for short in range(seed * SHORT_ONES - SHORT_ONES, seed * SHORT_ONES):
            yield short + 1, SHORT_SCALE
        yield seed, 1.0


def run_all(only: str, *, jobs: int, seeds: int = MAX_SEEDS) -> int:
    """Run all mutations, or those with a word in their name; 0 if all were found.

    All of them are also listed on the page about the simulation.
    """
    chosen = [mutation for mutation in mutations() if only in mutation.name]
    found: dict[str, Detection] = {}
    with ThreadPoolExecutor(jobs) as pool:
        detections = pool.map(lambda mutation: detect(mutation, seeds=seeds), chosen)
        for mutation, detection in zip(chosen, detections, strict=True):
            found[mutation.name] = detection
            print(f"  {_line(mutation.name, detection)}", flush=True)
    missed = [name for name, detection in found.items() if not detection.promise]
    print(f"  detected {len(found) - len(missed)} of {len(found)} planted faults")
    if len(found) == len(mutations()):
        PAGE.write_text(with_table(PAGE.read_text(), found))
    return 1 if missed else 0


def _line(name: str, detection: Detection) -> str:
    where = f"seed {_seed(detection)}, step {detection.steps}: " if detection.promise else "MISSED "
    return f"{name:52} {where}{detection.promise} {detection.text[:90]}"


def _seed(detection: Detection) -> str:
    """Return a seed as the arguments that repeat it."""
    return f"{detection.seed}{'' if detection.scale == 1.0 else f' --scale {detection.scale}'}"


def with_table(page: str, found: Mapping[str, Detection]) -> str:
    """Return the page about the simulation with a row for each fault."""
    before, heading, section = page.partition(f"{HEADING}\n")
    intro = section.partition("\n| ")[0]
    rows = ["| planted fault | seed | steps | promise |", "|---|---|---|---|"]
    rows += [
        f"| {name} | {_seed(detection)} | {detection.steps} | {detection.promise or 'NOT FOUND'} |"
        for name, detection in found.items()
    ]
    return f"{before}{heading}{intro}\n" + "\n".join(rows) + "\n"
