"""Runs the faults on each store, and prints a table of what was done and found."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.layer import LayerError
from faults.planes import plane
from faults.releases import EARLIER, Release, ReleaseError
from faults.rounds import Figures, Rounds

SHARES = {"sqlite": 0.7, "etcd": 0.3}
"""How many of the faults are for each store: those of a disk take less time."""


def run(faults: int, seed: int, figures: Path | None, only: str | None = None) -> int:
    """Inject so many faults, perhaps in one store only; 0 if there was no violation."""
    results = []
    for store, share in {only: 1.0}.items() if only else SHARES.items():
        try:
            results.append(_run(store, round(faults * share), seed))
        except LayerError as error:
            print(f"  PROBLEM {error}")
            return 1
    for line in table(results):
        print(f"  {line}")
    if figures is not None:
        figures.parent.mkdir(parents=True, exist_ok=True)
        figures.write_text(json.dumps([summary(result) for result in results], indent=2) + "\n")
    return 1 if any(result.problems for result in results) else 0


def _run(store: str, faults: int, seed: int) -> Figures:
    def progress(figures: Figures) -> None:
        line = f"{figures.total}/{faults} faults, {figures.checked} operations checked"
        print(f"  {figures.store}: {line}, {figures.seconds:.0f} s", flush=True)

    with tempfile.TemporaryDirectory(prefix="sully-robust-") as folder:
        rounds = Rounds(plane(store, Path(folder).resolve() / "plane"), seed, _earlier())
        figures = asyncio.run(rounds.run(faults, progress))
    for problem in figures.problems:
        print(f"  VIOLATION {problem}", flush=True)
    return figures


def _earlier() -> Sequence[Release]:
    try:
        for release in EARLIER:
            release.prepare()
    except ReleaseError as error:
        print(f"  no upgrades and downgrades: {error}", flush=True)
        return ()
    return EARLIER


def summary(figures: Figures) -> dict[str, object]:
    """Return what a run amounts to."""
    ready = figures.ready or [0.0]
    return {
        "store": figures.store,
        "faults": dict(sorted(figures.faults.items())),
        "injected": figures.total,
        "acknowledged writes": figures.counts["acknowledged"],
        "writes in doubt": figures.counts["in doubt"],
        "events compared": figures.counts["events replayed"],
        "operations on shared objects": figures.operations,
        "rounds": figures.rounds,
        "rounds too long": figures.too_long,
        "violations": len(figures.problems),
        "start to ready, median seconds": round(statistics.median(ready), 2),
        "seconds": round(figures.seconds),
    }


_ROWS = (
    ("acknowledged writes checked", "acknowledged writes"),
    ("writes in doubt checked", "writes in doubt"),
    ("watch events compared", "events compared"),
    ("operations on shared objects checked", "operations on shared objects"),
    ("rounds", "rounds"),
    ("rounds that no watch can follow: only lists compared", "rounds too long"),
    ("violations", "violations"),
    ("seconds", "seconds"),
)


def table(results: Sequence[Figures]) -> list[str]:
    """Return a Markdown table with a column for each store."""
    kinds = sorted({kind for result in results for kind in result.faults})
    rows: list[list[object]] = [
        [kind, *(result.faults[kind] or "-" for result in results)] for kind in kinds
    ]
    rows.append(["**faults**", *(result.total for result in results)])
    for title, key in _ROWS:
        rows.append([title, *(summary(result)[key] for result in results)])
    header: list[object] = ["what", *(result.store for result in results)]
    lines: list[list[object]] = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
