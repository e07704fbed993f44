"""Prints the results of a run; as JSON for tests."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from replicas.comparing import FAILOVER_SECONDS
from replicas.figures import Figures
from replicas.rounds import Rounds


def run(pods: int, faults: int, seed: int, file: Path | None) -> int:
    """Run and report; 0 if there was no problem."""
    began = time.monotonic()

    def progress(line: str) -> None:
        text = f"  {time.monotonic() - began:4.0f} s  {line}"
        print(f"\r{text:<100}" if sys.stdout.isatty() else text, flush=True)

    folder = Path(tempfile.mkdtemp(prefix="sully-replicas-"))
    rounds = Rounds(folder, pods, faults, seed)
    asyncio.run(rounds.run(progress))
    report(rounds.figures)
    if rounds.figures.problems:
        print(f"  logs of the replicas and the last state: {folder}")
    else:
        shutil.rmtree(folder)
    if file is not None:
        content = asdict(rounds.figures) | {"failovers": rounds.figures.failovers}
        file.write_text(json.dumps(content, indent=1))
    return 1 if rounds.figures.problems else 0


def report(figures: Figures) -> None:
    """Print all of it."""
    print(f"  {'fault':<52} {'on':<3} {'lasted':>7}  {'answered':>8}  next to act")
    for result in figures.results:
        after = "" if result.after is None else f"{result.took_over} after {result.after:.1f} s"
        row = f"{result.name:<52} {result.machine:<3} {result.lasted:>5.1f} s"
        print(f"  {row}  {result.acknowledged:>8}  {after}")
    rows = {
        "pods bound, evicted, recorded": f"{figures.bound}, {figures.evicted}, {figures.records}",
        "counted and read at any replica": f"{figures.writes} writes, {figures.reads} reads",
        "changes reported by each watch": f"{figures.changes}, over {figures.moves} moves in all",
        "requests sent to another replica": f"{figures.elsewhere}",
        "terms of leaders": f"{figures.terms}",
        "writes in flight as one ended": f"{figures.in_flight}",
        "controllers of another act": f"{figures.summary()} (at most {FAILOVER_SECONDS:.1f} s)",
        "took": f"{figures.seconds:.0f} s",
        "problems": f"{len(figures.problems)}",
    }
    for name, value in rows.items():
        print(f"  {name:<34}{value}")
    for problem in figures.problems[:30]:
        print(f"  PROBLEM {problem}")
