"""Runs the simulation on Sully with a planted fault, in a process of its own for each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from simulator.mutations import Mutation, mutations, plant

PROGRAM = Path(__file__).resolve().parent.parent / "simulate.py"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"
HEADING = "## Planted faults"
MAX_SEEDS = 200
"""A fault that so many seeds do not find is not detected."""


class Detection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which seed found a fault, after how many steps, and by which promise."""

    seed: int
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
    for seed in range(1, seeds + 1):
        outcome = run(plan(seed))
        if outcome.violations:
            violation = outcome.violations[0]
            detection = Detection(seed, outcome.steps, violation.promise, violation.text[:200])
            break
    print(msgspec.json.encode(detection).decode())
    return 1 if detection.promise else 0


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
    where = f"seed {detection.seed}, step {detection.steps}: " if detection.promise else "MISSED "
    return f"{name:52} {where}{detection.promise} {detection.text[:90]}"


def with_table(page: str, found: Mapping[str, Detection]) -> str:
    """Return the page about the simulation with a row for each fault."""
    before, heading, section = page.partition(f"{HEADING}\n")
    intro = section.partition("\n| ")[0]
    rows = ["| planted fault | seed | steps | promise |", "|---|---|---|---|"]
    rows += [
        f"| {name} | {detection.seed} | {detection.steps} | {detection.promise or 'NOT FOUND'} |"
        for name, detection in found.items()
    ]
    return f"{before}{heading}{intro}\n" + "\n".join(rows) + "\n"
