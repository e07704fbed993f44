"""Prints what a run amounts to, for people; as JSON for tests."""

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


def run(pods: int, troubles: int, seed: int, file: Path | None) -> int:
    """Do a run and tell; 0 if nothing was wrong."""
    began = time.monotonic()

    def progress(line: str) -> None:
        text = f"  {time.monotonic() - began:4.0f} s  {line}"
        print(f"\r{text:<100}" if sys.stdout.isatty() else text, flush=True)

    folder = Path(tempfile.mkdtemp(prefix="sully-replicas-"))
    rounds = Rounds(folder, pods, troubles, seed)
    asyncio.run(rounds.run(progress))
    report(rounds.figures)
    if rounds.figures.problems:
        print(f"  what replicas said and how it was in the end: {folder}")
    else:
        shutil.rmtree(folder)
    if file is not None:
        content = asdict(rounds.figures) | {"failovers": rounds.figures.failovers}
        file.write_text(json.dumps(content, indent=1))
    return 1 if rounds.figures.problems else 0


def report(figures: Figures) -> None:
    """Print all of it."""
    print(f"  {'trouble':<52} {'on':<3} {'lasted':>7}  {'answered':>8}  next to act")
    for each in figures.happened:
        after = "" if each.after is None else f"{each.took_over} after {each.after:.1f} s"
        row = f"{each.name:<52} {each.machine:<3} {each.lasted:>5.1f} s"
        print(f"  {row}  {each.acknowledged:>8}  {after}")
    rows = {
        "pods bound, evicted, recorded": f"{figures.bound}, {figures.evicted}, {figures.records}",
        "counted and read at any replica": f"{figures.writes} writes, {figures.reads} reads",
        "changes told by each watch": f"{figures.changes}, over {figures.moves} moves in all",
        "requests that went elsewhere": f"{figures.elsewhere}",
        "terms of leaders": f"{figures.terms}",
        "writes on their way as one ended": f"{figures.in_flight}",
        "controllers of another act": f"{figures.summary()} (at most {FAILOVER_SECONDS:.1f} s)",
        "took": f"{figures.seconds:.0f} s",
        "problems": f"{len(figures.problems)}",
    }
    for name, value in rows.items():
        print(f"  {name:<34}{value}")
    for problem in figures.problems[:30]:
        print(f"  PROBLEM {problem}")
