"""Replays recorded answers of a real Kubernetes against a fresh control plane: `make conformance`.

The recording and the program that compares (`api.jsonl`, `compare.py`) lie in a folder of their
own, which is not part of this project. This starts a control plane in reference mode, lets the
program compare every answer, groups what differs by cause, and holds the result to a floor that
only rises (`tests/conformance-floor.txt`).
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sully.testing.cluster import Process, process

REFERENCE = ("--store", "memory", "--compat", "reference", "--log-level", "warning")


@dataclass(frozen=True, slots=True)
class Suite:
    """One recording, the program that replays it, and what that calls its results."""

    program: str
    recording: str
    flags: tuple[str, ...]
    counted: str


SUITES = {
    "api": Suite("compare.py", "api.jsonl", ("--jobs", "4"), "answers"),
    "worlds": Suite("run_worlds.py", "worlds.jsonl", (), "worlds"),
}


def main() -> int:
    """Run the chosen suites; 0 if each reaches its floor."""
    options = _parser().parse_args()
    # Whoever ends this program ends its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    floors = read_floors(options.floor) if options.floor else {}
    failed = False
    for name in options.suite or ["api"]:
        equal, total = _run(SUITES[name], options)
        floor = 0 if options.only else floors.get(name, 0)
        print(f"{name}: {equal} of {total} {SUITES[name].counted} equal, floor {floor}")
        if equal < floor:
            print(f"{name}: BELOW THE FLOOR by {floor - equal}")
            failed = True
        elif floor and equal > floor:
            print(f"{name}: {equal - floor} above the floor; raise it to {equal}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the recordings and programs are")
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="default: api")
    parser.add_argument("--floor", type=Path, help="file with the least equal answers per suite")
    parser.add_argument("--only", default="", help="only scenarios that match; no floor then")
    parser.add_argument("--verbose", action="store_true", help="show the whole table")
    parser.add_argument("--causes", type=int, default=25, help="how many causes to show")
    return parser


def read_floors(path: Path) -> dict[str, int]:
    """Read lines such as `api 594`; `#` starts a comment."""
    floors = {}
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words:
            floors[words[0]] = int(words[1])
    return floors


def _run(suite: Suite, options: argparse.Namespace) -> tuple[int, int]:
    with tempfile.TemporaryDirectory(prefix="sully-") as scratch:
        report = Path(scratch) / "report.json"
        with process(*REFERENCE) as server:
            output = _replay(suite, options, server, report)
        print(output if options.verbose else _end_of_table(output))
        results = json.loads(report.read_text()) if report.exists() else []
    for line in causes(results, options.causes):
        print(line)
    return _count(output, suite)


def _replay(suite: Suite, options: argparse.Namespace, server: Process, report: Path) -> str:
    folder = options.folder.resolve()
    command = [sys.executable, str(folder / suite.program), str(folder / suite.recording)]
    command += ["--kubeconfig", str(server.kubeconfig), "--report", str(report), *suite.flags]
    if options.only:
        command += ["--only", options.only]
    # The folder belongs to someone else, so nothing is left behind in it.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    return done.stdout


def _end_of_table(output: str) -> str:
    return output[output.rfind("\nTOPIC") :].strip() if "\nTOPIC" in output else output[-2000:]


def _count(output: str, suite: Suite) -> tuple[int, int]:
    found = re.findall(rf"^(\d+) of (\d+) {suite.counted} equal$", output, re.MULTILINE)
    if not found:
        raise SystemExit(f"{suite.program} did not say how many {suite.counted} are equal")
    return int(found[-1][0]), int(found[-1][1])


def causes(results: list[dict[str, Any]], most: int) -> list[str]:
    """Say what differs, most frequent first, with one place to look at for each cause."""
    counts: Counter[str] = Counter()
    example: dict[str, dict[str, Any]] = {}
    for result in results:
        if not result.get("equal", True) and result.get("differences"):
            cause = generalised(result["differences"][0])
            counts[cause] += 1
            example.setdefault(cause, result)
    lines = [f"{len(counts)} causes of differences:"] if counts else []
    for cause, number in counts.most_common(most):
        first = example[cause]
        lines.append(f"  {number:>4}  {cause}")
        lines.append(f"        e.g. {first.get('scenario')} step {first.get('step')}")
    if len(counts) > most:
        lines.append(f"  and {len(counts) - most} more causes")
    return lines


_GENERAL = (
    (re.compile(r"zq[0-9a-f]{4}[\w.-]*"), "TOKEN"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\[\d+\]"), "[*]"),
    (re.compile(r"\b\d{4,}\b"), "N"),
)


def generalised(difference: str) -> str:
    """Return a difference without what only this run, or this object, has."""
    for pattern, general in _GENERAL:
        difference = pattern.sub(general, difference)
    return difference[:200]


if __name__ == "__main__":
    sys.exit(main())
