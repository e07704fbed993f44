r"""Sessions: what a user types, and everything that must come back.

A session is a text file. `$ ` begins a command for bash, `> ` continues it; the lines below it are
its output, both streams together, empty lines included. `[exit N]` is the last line of a command
that fails. `...` in an expected line stands for anything. `#` begins a comment. A line may be for
some versions of kubectl only: `{1.24+}` from that one on, `{-1.23}` up to it; before a command it
holds for its output, too.

What differs from run to run is made equal first, see `settle`.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "sessions"
ANYTHING = "..."
_ONLY = re.compile(r"\{(?:1\.(?P<first>\d+)\+|-1\.(?P<last>\d+))\} ?")


SELECTS = "Warning: selects "


@dataclass(slots=True)
class Step:
    """One command and the lines it must print."""

    command: str
    output: list[str] = field(default_factory=list)

    def difference(self, printed: str) -> str:
        """Return what is wrong with what was printed, or nothing."""
        # The number of devices follows a moment after they were published.
        got = [line for line in printed.splitlines() if not line.startswith(SELECTS)]
        if len(got) == len(self.output) and all(map(_fits, self.output, got)):
            return ""
        lines = difflib.unified_diff(self.output, got, "expected", "printed", lineterm="")
        return "\n".join([f"$ {self.command}", *lines])


def _fits(expected: str, got: str) -> bool:
    if ANYTHING not in expected:
        return expected == got
    pattern = ".*".join(re.escape(part) for part in expected.split(ANYTHING))
    return re.fullmatch(pattern, got) is not None


def names() -> list[str]:
    """Return the sessions there are."""
    return sorted(path.stem for path in FOLDER.glob("*.session"))


def is_core(name: str) -> bool:
    """Report whether a session is worth repeating with every version of kubectl."""
    return "# core" in (FOLDER / f"{name}.session").read_text().splitlines()


def steps(text: str, minor: int) -> Iterator[Step]:
    """Go through a session as it is for one version of kubectl."""
    current: Step | None = None
    want = True
    for line in text.splitlines():
        holds, rest = _condition(line, minor)
        if rest.startswith("$ "):
            if current is not None:
                yield current
            current, want = None, holds
            if holds:
                current = Step(rest.removeprefix("$ "))
        elif rest.startswith("#") or current is None or not (want and holds):
            continue
        elif rest.startswith("> ") or rest == ">":
            current.command += "\n" + rest[2:]
        else:
            current.output.append(rest)
    if current is not None:
        yield current


def _condition(line: str, minor: int) -> tuple[bool, str]:
    match = _ONLY.match(line)
    if match is None:
        return True, line
    first, last = match["first"], match["last"]
    holds = minor >= int(first) if first else minor <= int(last)
    return holds, line[match.end() :]


# A name of a test's namespace and what stands for it are equally long: tables keep their shape.
NAMESPACE = "test-ns"
_SETTLED = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "TIME"),
    (re.compile(r"(?<=resourceVersion: )\"\d+\""), "VERSION"),
    (re.compile(r"(?<=\"resourceVersion\": )\"\d+\""), "VERSION"),
    (re.compile(r"(?<=Resource Version:  )( *)\d+"), r"\1VERSION"),
    (re.compile(r"(?<=kube-api-access-)[a-z0-9]{5}\b"), "XXXXX"),
    (re.compile(r"(?<=\+sully-)\d+\.\d+\.\d+"), "RELEASE"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "SERVER"),
    # Ages: as wide as the three letters, so that columns stay where they are.
    (re.compile(r"(?<![\w=:.])\d{1,2}s(?=\n| \S|$)"), "AGE"),
    (re.compile(r"(?<![\w=:.])\d{2}s(?= )"), "AGE"),
    (re.compile(r"(?<![\w=:.])\ds (?= )"), "AGE"),
    # Newer ones print the namespace, too.
    (re.compile(r"( deleted) from \S+ namespace"), r"\1"),
    (re.compile(r"^[IWEF]\d{4} \S+ +\d+ \S+\] ", re.MULTILINE), ""),
)


def settle(text: str, namespace: str) -> str:
    """Make equal what differs from run to run: ids, times, ages, versions, addresses."""
    text = text.replace(namespace, NAMESPACE)
    for pattern, instead in _SETTLED:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))
