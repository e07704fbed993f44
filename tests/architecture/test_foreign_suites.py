"""What a run of a foreign suite means, and that cases out of scope have reasons."""

import tomllib
from pathlib import Path

import pytest

from suites.catalog import SUITES
from suites.outcomes import Case, judge, read, row

REASONS = tomllib.loads(Path("tools/suites/out-of-scope.toml").read_text())
REPORT = """
<testsuites><testsuite>
  <testcase classname="t.A" name="good"/>
  <testcase classname="t.A" name="bad"><failure message="no"/></testcase>
  <testcase classname="t.A" name="broken"><error message="oh"/></testcase>
  <testcase classname="t.A" name="skipped"><skipped type="pytest.skip" message="s"/></testcase>
  <testcase classname="t.A" name="expected"><skipped type="a.xfail" message="x"/></testcase>
</testsuite></testsuites>
"""
GOOD, BAD = Case("t.good", "passed"), Case("t.bad", "failure", "no")


def test_a_report_is_read() -> None:
    assert read(REPORT) == [
        Case("t.A.good", "passed"),
        Case("t.A.bad", "failure", "no"),
        Case("t.A.broken", "error", "oh"),
        Case("t.A.skipped", "skipped", "s"),
        Case("t.A.expected", "passed"),
    ]


# name → cases, patterns, whether the run holds, unexpected, stale
RUNS = {
    "all passed": ([GOOD], {}, True, [], []),
    "out of scope": ([GOOD, BAD], {"t.b*": "why"}, True, [], []),
    "not listed": ([GOOD, BAD], {"t.c*": "why"}, False, ["t.bad"], ["t.c*"]),
    "listed and passed": ([GOOD], {"t.good": "why"}, True, [], ["t.good"]),
    "nothing ran": ([], {}, False, [], []),
    "only out of scope": ([BAD], {"t.bad": "why"}, False, [], []),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run(name: str) -> None:
    cases, patterns, holds, unexpected, stale = RUNS[name]

    judgment = judge(cases, patterns)

    assert judgment.holds is holds
    assert [case.name for case in judgment.unexpected] == unexpected
    assert list(judgment.stale) == stale


def test_rows() -> None:
    judgment = judge([GOOD, BAD], {"t.bad": "why"})

    assert row("kopf", judgment).split() == ["kopf", "1", "1", "0"]
    assert row("kopf", None).split() == ["kopf", "no", "checkout"]


def test_every_case_out_of_scope_has_a_reason() -> None:
    assert REASONS.keys() == {suite.name for suite in SUITES}
    assert all(reason for patterns in REASONS.values() for reason in patterns.values())
