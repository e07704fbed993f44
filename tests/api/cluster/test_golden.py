"""Requests that a real hub answered, answered again: codes, and the texts of refusals.

Only the server is looked at, so nothing happens that controllers do between two requests. What
they do is compared by a replay against a whole control plane, with all scenarios.
"""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from api.cluster.hub import PLURALS, Hub, WriteResult
from sully.machinery.formats.timestamps import format_micro_time, format_time

Obj = dict[str, Any]
FOLDER = os.environ.get("SULLY_GOLDEN", "")
MEDIA = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}


def _scenarios() -> Iterator[Obj]:
    path = Path(FOLDER) / "ocm.jsonl"
    if FOLDER and path.exists():
        for line in path.read_text().splitlines():
            scenario = json.loads(line)
            if not _needs_decisions(scenario):
                yield scenario


def _needs_decisions(scenario: Obj) -> bool:
    asked = (one for step in scenario["steps"] for one in step["do"])
    return any(one["object"]["kind"] == "PlacementDecision" for one in asked)


SCENARIOS = {scenario["scenario"]: scenario for scenario in _scenarios()}


def _timed(value: Any, hub: Hub) -> Any:
    """Put times where the recording has their distance from now."""
    if isinstance(value, list):
        return [_timed(item, hub) for item in value]
    if not isinstance(value, dict):
        return value
    for mark, written in (("$now", format_time), ("$nowMicro", format_micro_time)):
        if mark in value:
            return written(hub.clock.now() + timedelta(seconds=value[mark]))
    return {key: _timed(item, hub) for key, item in value.items()}


async def _do(hub: Hub, asked: Obj) -> WriteResult:
    obj, subresource = asked["object"], asked.get("subresource", "")
    if asked["verb"] == "create":
        reported = await hub.create(obj)
        if reported.code == 201 and "status" in obj:
            await hub.patch(obj, {"status": obj["status"]}, subresource="status")
        return reported
    if asked["verb"] == "delete":
        return await hub.delete(obj)
    media = MEDIA[asked.get("type", "merge")]
    return await hub.patch(obj, asked["patch"], subresource=subresource, media=media)


if SCENARIOS:  # without the folder there is nothing to replay

    @pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
    async def test_answers(scenario: Obj) -> None:
        hub = Hub(strict=True)
        got, want = [], []
        for step in scenario["steps"]:
            hub.clock.advance(step.get("wait", 0) + 2)
            for asked, answer in zip(step["do"], step["answers"], strict=True):
                if asked["object"]["kind"] in PLURALS:
                    reported = await _do(hub, _timed(asked, hub))
                    got.append((reported.code, reported.message))
                    want.append((answer["code"], answer.get("message", "")))

        assert got == want
