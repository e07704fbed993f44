"""Replays the expressions of recorded API answers; the folder comes from $SULLY_GOLDEN."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sully.machinery.cel import DEFAULT_LIMIT, CompileError, device_environment

GOLDEN = os.environ.get("SULLY_GOLDEN")


def _expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        selector = value.get("cel")
        if isinstance(selector, dict) and "expression" in selector:
            yield selector["expression"]
        for item in value.values():
            yield from _expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from _expressions(item)


def _cases() -> Iterator[tuple[str, str, list[str]]]:
    """Yield a name, an expression and what the API said about selectors in that request."""
    lines = (Path(GOLDEN) / "api.jsonl").read_text().strip().split("\n") if GOLDEN else []
    for line in lines:
        record = json.loads(line)
        if record.get("code") not in (200, 201, 422):
            continue
        causes = (record.get("response") or {}).get("details", {}).get("causes", [])
        messages = [
            one["message"] for one in causes if one.get("field", "").endswith(".expression")
        ]
        result = list(_expressions(record.get("body")))
        # Only one selector in a request says for certain whom an answer is about.
        if len(result) == 1 and (record["code"] != 422 or messages):
            yield f"{record['scenario']}-{record['step']}", result[0], messages


CASES = list(_cases())


def _answer(expression: str) -> list[str]:
    try:
        program = device_environment().compile(expression)
    except CompileError as error:
        return [f"Invalid value: {json.dumps(expression, ensure_ascii=False)}: {error.detail}"]
    return [] if program.cost <= DEFAULT_LIMIT else ["Forbidden: too complex, exceeds cost limit"]


if CASES:

    @pytest.mark.parametrize(
        ("expression", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
    )
    def test_recorded_answers(expression: str, want: list[str]) -> None:
        assert _answer(expression) == want
