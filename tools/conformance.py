"""Replays recordings of real systems against fresh control planes: `make conformance`.

The recordings and the programs that compare lie in a folder of their own, which is not part of
this project. This starts control planes in reference mode, with their controllers inside
(`--transport inprocess`) or in processes of their own (`http`), lets the program compare, groups
what differs by cause, and holds the result to a floor that only rises
(`tests/conformance-floor.txt`). A folder inside may have further recordings for the same programs:
it is replayed with its own path (`make conformance DIR=FOLDER/second`) and has its own floors.
"""

import argparse
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replays import SUITES, TRANSPORTS, Suite, programs, replay, serving, spread


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many cases came out equal, of how many that were tried and that there are."""

    equal: int
    tried: int
    recorded: int

    def below(self, floor: int) -> int:
        """Return by how many this misses a floor; a part may miss what the whole may miss."""
        return max(0, self.tried - self.equal - max(0, self.recorded - floor)) if floor else 0


def main() -> int:
    """Run the chosen suites; 0 if each reaches its floor."""
    options = _parser().parse_args()
    # Whoever ends this program ends its servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    floors = read_floors(options.floor) if options.floor else {}
    missed = [
        _judge(name, options, transport, floors)
        for name in options.suite or ["api"]
        for transport in options.transport or TRANSPORTS[:1]
    ]
    return 1 if any(missed) else 0


def _judge(name: str, options: argparse.Namespace, transport: str, floors: dict[str, int]) -> bool:
    """Run one suite over one transport; report whether it missed the floor."""
    began = time.monotonic()
    suite, floor_name = SUITES[name], name_of_floor(options.folder.resolve(), name)
    title = f"{floor_name} over {transport}"
    outcome = _run(suite, options, transport)
    floor = 0 if options.only else floors.get(floor_name, 0)
    took = time.monotonic() - began
    print(
        f"{title}: {outcome.equal} of {outcome.tried} {suite.counted} equal,"
        f" floor {floor} of {outcome.recorded}, {took:.0f} s",
        flush=True,
    )
    missing = outcome.below(floor)
    if missing:
        print(f"{title}: FAILED, fewer are equal than last time (by {missing})")
    elif floor and outcome.equal > floor:
        print(f"{title}: {outcome.equal - floor} above the floor; raise it to {outcome.equal}")
    return bool(missing)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the recordings and programs are")
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="default: api")
    parser.add_argument(
        "--transport",
        action="append",
        choices=TRANSPORTS,
        help="where the controllers run; may be repeated (default: inprocess)",
    )
    parser.add_argument(
        "--servers", type=int, default=4, help="how many at a time, where a suite can (default: 4)"
    )
    parser.add_argument(
        "--part", type=int, default=0, help="only so many, evenly spread (default: all)"
    )
    parser.add_argument("--floor", type=Path, help="file with the least equal answers per suite")
    parser.add_argument("--only", default="", help="only scenarios that match; no floor then")
    parser.add_argument("--verbose", action="store_true", help="show the whole table")
    parser.add_argument("--causes", type=int, default=25, help="how many causes to show")
    return parser


def name_of_floor(folder: Path, suite: str) -> str:
    """Return what the floor of a suite is called: that of further recordings has their folder."""
    further = programs(folder, SUITES[suite]) != folder
    return f"{folder.name}/{suite}" if further else suite


def read_floors(path: Path) -> dict[str, int]:
    """Read lines such as `api 594` and `second/api 609`; `#` starts a comment."""
    floors = {}
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words:
            floors[words[0]] = int(words[1])
    return floors


def _run(suite: Suite, options: argparse.Namespace, transport: str) -> Outcome:
    folder = options.folder.resolve()
    recording, total = folder / suite.recording, 0
    with tempfile.TemporaryDirectory(prefix="sully-") as name:
        scratch = Path(name)
        if options.part and suite.lines:
            total = spread(recording, options.part, scratch / suite.recording)
            recording = scratch / suite.recording
        with serving(transport, options.servers if suite.also else 1) as servers:
            program = programs(folder, suite) / suite.program
            output, report = replay(suite, program, recording, servers, options.only, scratch)
    print(output if options.verbose else _end_of_table(output))
    for line in causes(report, options.causes):
        print(line)
    equal, tried = _count(output, suite)
    return Outcome(equal, tried, total or tried)


def _end_of_table(output: str) -> str:
    return output[output.rfind("\nTOPIC") :].strip() if "\nTOPIC" in output else output[-2000:]


def _count(output: str, suite: Suite) -> tuple[int, int]:
    counts = re.findall(rf"^(\d+) of (\d+) {suite.counted} equal$", output, re.MULTILINE)
    if not counts:
        raise SystemExit(f"{suite.program} did not print how many {suite.counted} are equal")
    return int(counts[-1][0]), int(counts[-1][1])


def causes(results: list[dict[str, Any]], most: int) -> list[str]:
    """Print what differs, most frequent first, with one example of each cause."""
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
        lines.append(f"        e.g. {_place(first)}")
    if len(counts) > most:
        lines.append(f"  and {len(counts) - most} more causes")
    return lines


def _place(result: dict[str, Any]) -> str:
    if "seed" in result:
        return f"world {result['seed']}"
    return f"{result.get('scenario')} step {result.get('step')}"


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
