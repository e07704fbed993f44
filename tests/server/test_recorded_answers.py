"""Requests of many sorts, compared with answers of Kubernetes 1.37 that were recorded for this.

Each line of the file is a scenario: requests in order, and what matters of each answer. Times, uids
and versions are made up by a server and not compared, nor is who manages which fields.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from definitions import DEFINITIONS, Defining
from serving import Answer, Asgi
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded" / "answers.jsonl"
SCENARIOS: list[Obj] = [json.loads(line) for line in RECORDED.read_text().splitlines()]
MADE_UP = frozenset(("uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime"))
NAMESPACE = "gold-case"
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
async def asgi() -> Asgi:
    made = Asgi(MemoryStore(), FakeClock(), strict=True)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    (await made.post("/api/v1/namespaces", namespace)).ok()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    (await made.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)).ok()
    return made


async def sent(asgi: Asgi, step: Obj) -> Answer:
    body = step.get("text", step.get("body"))
    path = f"{step['path']}?{step['query']}" if "query" in step else step["path"]
    headers = {"user-agent": "golden/1", "accept": step.get("accept", "application/json")}
    media = step.get("media", "application/json")
    return await asgi.call(step["method"], path, body, media, headers=headers)


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {key: item for key, item in value.items() if key not in MADE_UP}
        return {key: comparable(item) for key, item in fields.items() if key != "managedFields"}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return UID.sub("<uid>", value) if isinstance(value, str) else value


def compared(answer: Obj, expected: Obj) -> Obj:
    """Return the part of an answer that was recorded."""
    if answer.get("kind") == "Table":
        columns = [column["name"] for column in answer["columnDefinitions"]]
        rows = [{k: v for k, v in row.items() if k == "conditions"} for row in answer["rows"]]
        return {"columns": columns, "rows": rows}
    return {part: comparable(answer[part]) for part in expected if part in answer}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario["scenario"]))
async def test_answers_are_those_of_kubernetes(asgi: Asgi, scenario: Obj) -> None:
    if any(step["path"] == DEFINITIONS for step in scenario["steps"]):
        await asgi.api.definitions.start()
    for number, step in enumerate(scenario["steps"]):
        answer = await sent(asgi, step)
        if step["path"] == DEFINITIONS:
            await Defining(asgi).settle()

        where = f"step {number}: {step['method']} {step['path']} {step.get('about', '')}"
        assert answer.code == step["code"], f"{where}: {answer.body[:400]!r}"
        assert sorted(answer.warnings) == sorted(step.get("warnings", ())), where
        if "message" in step:
            assert UID.sub("<uid>", answer.json["message"]) == step["message"], where
        elif "answer" in step:
            expected = comparable(step["answer"])
            assert compared(answer.json, step["answer"]) == expected, where
