"""Runs the loads against one server, one after the other, and prints what others noticed."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hostile.loads import LOADS, Codes, Load, prepare
from hostile.target import Target
from sully.testing.cluster import process

SETTLED = 20.0
"""MiB above the memory before a load that count as given back."""
PATIENCE = 60.0
"""Seconds in which memory and descriptors must be given back."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one load did."""

    name: str
    before: float
    peak: float
    after: float
    descriptors: tuple[int, int, int]
    delay: float
    took: float
    codes: Codes
    failures: list[str]

    def problems(self) -> list[str]:
        """Return what should not have happened."""
        problems = [
            f"{count} answers with {code}" for code, count in self.codes.items() if code > 499
        ]
        if self.after - self.before > SETTLED:
            problems.append(f"{self.after - self.before:.0f} MiB not released")
        if self.descriptors[2] > self.descriptors[0] + 5:
            problems.append(f"{self.descriptors[2] - self.descriptors[0]} descriptors stay open")
        return problems + self.failures[:4]


def run() -> int:
    """Attack a server with every load; 0 if nothing was wrong."""
    with (
        tempfile.TemporaryDirectory(prefix="sully-hostile-") as scratch,
        process("--log-level", "error", data_dir=Path(scratch) / "data") as up,
    ):
        target = Target(up, Path(scratch))
        prepare(target)
        heads = ("memory MiB", "descriptors", "delay", "took"), "answers"
        units = ("before peak after", "before most after", "ms", "s"), ""
        for name, (columns, last) in {"load": heads, "": units}.items():
            print(f"  {name:28} {_columns(*columns)}  {last}")
        bad = 0
        for name, load in LOADS.items():
            # What runs now is seen before it is over.
            print(f"  {name:28} ", end="", flush=True)
            bad += _show(_measured(target, name, load))
        failed = server_errors(target)
        print(f"  answers with 5xx, by the server's own metrics: {failed}", flush=True)
    return 1 if bad or failed else 0


def _measured(target: Target, name: str, load: Load) -> Row:
    began = time.monotonic()
    target.forget_peak()
    before, open_before = target.memory(), target.descriptors()
    codes, failures = Codes(), []
    with target.bystander() as delays:
        try:
            codes = load(target)
        except (AssertionError, OSError) as error:
            # The other loads are still reported.
            failures.append(f"the load failed: {error!r}")
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if target.memory() - before < SETTLED and target.descriptors() <= open_before + 5:
            break
        time.sleep(0.2)
    return Row(
        name,
        before,
        target.peak_memory(),
        target.memory(),
        (open_before, delays.descriptors, target.descriptors()),
        delays.longest,
        time.monotonic() - began,
        codes,
        failures + [f"bystander: {text}" for text in delays.failures],
    )


def _show(row: Row) -> int:
    memory = f"{row.before:.0f} {row.peak:.0f} {row.after:.0f}"
    descriptors = " ".join(map(str, row.descriptors))
    codes = ", ".join(f"{count} × {code or 'closed'}" for code, count in sorted(row.codes.items()))
    columns = _columns(memory, descriptors, f"{row.delay * 1000:.0f}", f"{row.took:.1f}")
    print(f"{columns}  {codes}", flush=True)
    for problem in row.problems():
        print(f"  PROBLEM {row.name}: {problem}", flush=True)
    return len(row.problems())


def _columns(memory: str, descriptors: str, delay: str, took: str) -> str:
    return f"{memory:>18} {descriptors:>18} {delay:>6} {took:>6}"


def server_errors(target: Target) -> int:
    """Count the answers with 5xx that the server itself counted."""
    text = target.admin.get("/metrics").body.decode()
    counts = re.findall(r'^apiserver_request_total\{[^}]*code="5\d\d"[^}]*\} (\S+)$', text, re.M)
    return int(sum(map(float, counts)))
