"""Keeps the figures of a benchmark as JSON, with facts about the machine, and compares them.

`build/bench/NAME.json` has the runs of a benchmark, oldest first. A new run is compared with the
last one that has the same figure: a ratio over 1 is more than last time, whether or not that is
better. Runs on different machines, or under a different load, are only orders of magnitude apart.
"""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build/bench"
MAX_RUNS = 50
Run = dict[str, Any]


def machine() -> dict[str, Any]:
    """Return what decides how fast this machine is, and how busy it is."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip()


def record(name: str, figures: Mapping[str, float], folder: Path = FOLDER) -> list[str]:
    """Add a run to those of a benchmark; return how it compares, one line for each figure."""
    path = folder / f"{name}.json"
    runs: list[Run] = json.loads(path.read_text()) if path.exists() else []
    run = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": machine(),
        "figures": {figure: round(value, 4) for figure, value in figures.items()},
    }
    lines = comparison(runs, run)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([*runs, run][-MAX_RUNS:], indent=1) + "\n")
    return [f"recorded in {path}", *lines]


def comparison(runs: list[Run], run: Run) -> list[str]:
    """Return the ratio of each figure to the last run that has it."""
    lines: list[str] = []
    for figure, value in run["figures"].items():
        last = next((old for old in reversed(runs) if old["figures"].get(figure)), None)
        if last is not None:
            before = last["figures"][figure]
            lines.append(
                f"{figure:44}{before:>12g} -> {value:<12g}{value / before:6.2f}x"
                f"  since {last['commit']}, load {last['machine']['load'][0]:g}"
                f" -> {run['machine']['load'][0]:g}"
            )
    return lines
