"""What a run of a suite means: which cases passed, are out of scope, or should have passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from xml.etree import ElementTree

PASSED = "passed"
NOT_PASSED = ("failure", "error", "skipped")
_EXPECTED = ".xfail"
"""How pytest ends the type of what the suite itself expects to fail."""


@dataclass(frozen=True)
class Case:
    """One case of a suite: its name, and `passed`, `failure`, `error` or `skipped`."""

    name: str
    outcome: str
    text: str = ""


@dataclass(frozen=True)
class Judgment:
    """The cases of a suite by what they mean."""

    passed: tuple[Case, ...]
    listed: tuple[Case, ...]
    """Not passed, and out of scope."""
    unexpected: tuple[Case, ...]
    """Not passed, and not listed."""
    stale: tuple[str, ...]
    """Listed patterns that no case needs."""

    @property
    def holds(self) -> bool:
        """Report whether every case passed or is out of scope; a run without cases does not."""
        return bool(self.passed) and not self.unexpected


def read(junit: str) -> list[Case]:
    """Read the cases of a report in the format of JUnit; a case that the suite expects to fail
    passes."""
    cases = []
    for element in ElementTree.fromstring(junit).iter("testcase"):
        name = f"{element.get('classname')}.{element.get('name')}"
        found = [child for child in element if child.tag in NOT_PASSED]
        if not found or found[0].get("type", "").endswith(_EXPECTED):
            cases.append(Case(name, PASSED))
        else:
            cases.append(Case(name, found[0].tag, found[0].get("message") or ""))
    return cases


def judge(cases: Iterable[Case], out_of_scope: Mapping[str, str]) -> Judgment:
    """Compare the cases with the patterns that are out of scope."""
    passed, listed, unexpected, used = [], [], [], set()
    for case in cases:
        patterns = {pattern for pattern in out_of_scope if fnmatchcase(case.name, pattern)}
        if case.outcome == PASSED:
            passed.append(case)
        elif patterns:
            listed.append(case)
            used |= patterns
        else:
            unexpected.append(case)
    stale = sorted(set(out_of_scope) - used)
    return Judgment(tuple(passed), tuple(listed), tuple(unexpected), tuple(stale))


def row(name: str, judgment: Judgment | None) -> str:
    """Return a line of the table; None: there is no checkout."""
    if judgment is None:
        return f"{name:<12}{'no checkout':>26}"
    counts = (len(judgment.passed), len(judgment.listed), len(judgment.unexpected))
    return f"{name:<12}" + "".join(f"{count:>14}" for count in counts)


HEADER = f"{'SUITE':<12}{'PASSED':>14}{'OUT OF SCOPE':>14}{'UNEXPECTED':>14}"
