"""What `sully doctor` concludes about a data directory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sully.domain.diagnosis.files import (
    check_certificate,
    check_lock,
    check_mode,
    check_space,
    check_store,
)
from sully.domain.diagnosis.findings import Finding, has_failure

GIB = 1 << 30
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
CASES = {
    "a private directory": (check_mode("data", 0o700), "ok"),
    "a readable directory": (check_mode("data", 0o750), "failure"),
    "a directory that its owner cannot write": (check_mode("data", 0o500), "failure"),
    "space": (check_space("data", 50 * GIB, 100 * GIB), "ok"),
    "little space": (check_space("data", 4 * GIB, 100 * GIB), "warning"),
    "no space": (check_space("data", 100 << 20, 1 * GIB), "failure"),
    "a small disk": (check_space("data", 300 << 20, 1 * GIB), "ok"),
    "a lock": (check_lock("7"), "ok"),
    "a lock of nobody": (check_lock(None), "ok"),
    "a good store": (check_store("", 3, 9), "ok"),
    "a damaged store": (check_store("store.db is damaged", 0, 0), "failure"),
    "a valid certificate": (check_certificate("a", (NOON, NOON + 90 * DAY), NOON, "r"), "ok"),
    "one that expires": (check_certificate("a", (NOON, NOON + 9 * DAY), NOON, "r"), "warning"),
    "one that expired": (check_certificate("a", (NOON - DAY, NOON), NOON, "r"), "failure"),
    "one of tomorrow": (
        check_certificate("a", (NOON + DAY, NOON + 90 * DAY), NOON, "r"),
        "failure",
    ),
    "no certificate": (check_certificate("a", None, NOON, "r"), "failure"),
}


@pytest.mark.parametrize(("finding", "state"), CASES.values(), ids=CASES)
def test_state(finding: Finding, state: str) -> None:
    assert finding.state == state
    # What is wrong has a remedy, and nothing else has.
    assert bool(finding.remedy) == (state != "ok")


def test_a_lock_names_its_process() -> None:
    assert check_lock("7").message == "process 7 uses the data directory"
    assert check_lock("").message == "process (unknown) uses the data directory"


def test_only_a_failure_fails() -> None:
    ok, warning = check_mode("data", 0o700), check_space("data", 4 * GIB, 100 * GIB)

    assert not has_failure([ok, warning])
    assert has_failure([ok, warning, check_mode("data", 0o777)])
