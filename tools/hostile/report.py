"""Runs the loads against one server, one after the other, and prints what others noticed."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hostile.loads import LOADS, Codes, prepare
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
    codes: Codes
    failures: list[str]

    def problems(self) -> list[str]:
        """Return what should not have happened."""
        found = [f"{count} answers with {code}" for code, count in self.codes.items() if code > 499]
        if self.after - self.before > SETTLED:
            found.append(f"{self.after - self.before:.0f} MiB not given back")
        if self.descriptors[2] > self.descriptors[0] + 5:
            found.append(f"{self.descriptors[2] - self.descriptors[0]} descriptors stay open")
        return found + [f"bystander: {text}" for text in self.failures[:3]]


def run() -> int:
    """Attack a server with every load; 0 if nothing was wrong."""
    with (
        tempfile.TemporaryDirectory(prefix="sully-hostile-") as scratch,
        process("--log-level", "error", data_dir=Path(scratch) / "data") as up,
    ):
        target = Target(up, Path(scratch))
        prepare(target)
        print(f"  {'load':28} {'memory MiB':>18} {'descriptors':>16} {'delay':>8}  answers")
        print(f"  {'':28} {'before peak after':>18} {'before most after':>16} {'ms':>8}")
        bad = 0
        for name, load in LOADS.items():
            row = _measured(target, name, load)
            bad += _show(row)
        failed = server_errors(target)
        print(f"  answers with 5xx, by the server's own metrics: {failed}")
    return 1 if bad or failed else 0


def _measured(target: Target, name: str, load: object) -> Row:
    assert callable(load)
    target.forget_peak()
    before, open_before = target.memory(), target.descriptors()
    with target.bystander() as delays:
        codes = load(target)
        most = target.descriptors()
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
        (open_before, most, target.descriptors()),
        delays.longest,
        codes,
        delays.failures,
    )


def _show(row: Row) -> int:
    memory = f"{row.before:.0f} {row.peak:.0f} {row.after:.0f}"
    descriptors = " ".join(map(str, row.descriptors))
    codes = ", ".join(f"{count} × {code or 'closed'}" for code, count in sorted(row.codes.items()))
    print(f"  {row.name:28} {memory:>18} {descriptors:>16} {row.delay * 1000:8.0f}  {codes}")
    for problem in row.problems():
        print(f"  PROBLEM {row.name}: {problem}")
    return len(row.problems())


def server_errors(target: Target) -> int:
    """Count the answers with 5xx that the server itself counted."""
    text = target.admin.get("/metrics").body.decode()
    found = re.findall(r'^apiserver_request_total\{[^}]*code="5\d\d"[^}]*\} (\S+)$', text, re.M)
    return int(sum(map(float, found)))
