"""Runs the simulation on Sully with a planted fault, in a process of its own for each."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from simulator.mutations import Mutation, mutations, plant

PROGRAM = Path(__file__).resolve().parent.parent / "simulate.py"
MAX_SEEDS = 200
"""A fault that so many seeds do not find is not detected."""


@dataclass(frozen=True, slots=True)
class Detection:
    """Whether and how a fault was found."""

    mutation: Mutation
    found: bool
    text: str
    seconds: float


def detect(mutation: Mutation, *, seeds: int = MAX_SEEDS) -> Detection:
    """Run seeds until one of them finds the fault."""
    began = time.monotonic()
    command = [sys.executable, str(PROGRAM), "planted", "--only", mutation.name]
    command += ["--seeds", str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2]
    return Detection(mutation, done.returncode == 1, text, time.monotonic() - began)


def planted(name: str, seeds: int) -> int:
    """Plant a fault in this process, and run seeds; 1 when it was found, 0 if it was not."""
    plant(name)
    from simulator.operations import plan
    from simulator.world import run

    for seed in range(1, seeds + 1):
        outcome = run(plan(seed))
        if outcome.violations:
            violation = outcome.violations[0]
            print(f"seed {seed}: {violation.promise}: {violation.text[:200]}")
            return 1
    print(f"not found by {seeds} seeds")
    return 0


def run_all(only: str, *, jobs: int, seeds: int = MAX_SEEDS) -> int:
    """Run all mutations, or those with a word in their name; 0 if all were found."""
    chosen = [mutation for mutation in mutations() if only in mutation.name]
    with ThreadPoolExecutor(jobs) as pool:
        found = _show(pool.map(lambda mutation: detect(mutation, seeds=seeds), chosen))
    print(f"  detected {found} of {len(chosen)} planted faults")
    return 0 if found == len(chosen) else 1


def _show(detections: Iterable[Detection]) -> int:
    found = 0
    for detection in detections:
        found += detection.found
        mark = "found" if detection.found else "MISSED"
        name, text = detection.mutation.name, detection.text
        print(f"  {mark:6} {name:52} {detection.seconds:4.0f} s  {text[:110]}", flush=True)
    return found
