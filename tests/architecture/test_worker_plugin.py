"""Workers leave out only what the controller of a run does not show."""

from __future__ import annotations

from typing import Any

import pytest

from worker_plugin import SHORTEST, send

CASES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a test begins": ("logstart", {"nodeid": "x"}, False),
    "a test ends": ("logfinish", {"nodeid": "x"}, True),
    "a test is done": ("runtest_protocol_complete", {"item_index": 1}, True),
    "setup": ("testreport", {"when": "setup", "outcome": "passed", "duration": 0}, False),
    "teardown": ("testreport", {"when": "teardown", "outcome": "passed", "duration": 0}, False),
    "call": ("testreport", {"when": "call", "outcome": "passed", "duration": 0}, True),
    "a call that failed": ("testreport", {"when": "call", "outcome": "failed"}, True),
    "a setup that failed": ("testreport", {"when": "setup", "outcome": "failed"}, True),
    "a teardown that failed": ("testreport", {"when": "teardown", "outcome": "failed"}, True),
    "a skip": ("testreport", {"when": "setup", "outcome": "skipped"}, True),
    "a long setup": (
        "testreport",
        {"when": "setup", "outcome": "passed", "duration": SHORTEST},
        True,
    ),
}


@pytest.mark.parametrize(("name", "content", "shown"), CASES.values(), ids=CASES.keys())
def test_messages(name: str, content: dict[str, Any], shown: bool) -> None:
    sent: list[str] = []
    content = {"data": content} if name == "testreport" else content

    send(lambda name, **_: sent.append(name), name, **content)

    assert sent == [name] * shown
