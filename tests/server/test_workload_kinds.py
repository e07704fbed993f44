"""Workloads and what manifests need beside them, compared with answers of Kubernetes 1.37.

Not compared: what the server makes up. A quoted pod template has the names of Go's fields in
Kubernetes; only what the text says about it is compared.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from serving import Asgi
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded" / "workload-kinds.jsonl"
STEPS: list[Obj] = [json.loads(line) for line in RECORDED.read_text().splitlines()]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MADE_UP = frozenset(("uid", "resourceVersion", "creationTimestamp", "managedFields"))
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
async def asgi() -> Asgi:
    made = Asgi(MemoryStore(), FakeClock())
    default = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    await made.post("/api/v1/namespaces", default)
    return made


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in MADE_UP}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return UID.sub("<uid>", value) if isinstance(value, str) else value


def named(step: Obj) -> str:
    return f"{step['body']['kind']} {step['body']['metadata']['name']}"


CREATES = [step for step in STEPS if step["method"] == "POST"]
CHANGES = [step for step in STEPS if step["method"] == "PATCH"]
TABLES = [step for step in STEPS if step["method"] == "TABLE"]


@pytest.mark.parametrize("step", CREATES, ids=named)
async def test_a_create_is_answered_as_recorded(asgi: Asgi, step: Obj) -> None:
    answer = await asgi.post(step["path"], step["body"])

    assert comparable(answer.json) == step["answer"]
    assert answer.code == step["code"]
    assert answer.warnings == step["warnings"]


@pytest.mark.parametrize("step", CHANGES, ids=lambda step: f"{step['path']} {step['body']}")
async def test_a_change_is_answered_as_recorded(asgi: Asgi, step: Obj) -> None:
    collection, _, name = step["path"].rpartition("/")
    before = next(
        each
        for each in CREATES
        if each["path"] == collection and each["body"]["metadata"]["name"] == name
    )
    (await asgi.post(collection, before["body"])).ok()

    answer = await asgi.patch(step["path"], step["body"])

    assert answer.code == step["code"], answer.body
    if answer.code != 200:
        assert comparable(answer.json) == step["answer"]
    else:
        ours, theirs = comparable(answer.json), step["answer"]
        assert ours.get("spec") == theirs.get("spec")
        assert ours["metadata"].get("generation") == theirs["metadata"].get("generation")


@pytest.mark.parametrize("step", TABLES, ids=lambda step: str(step["path"]))
async def test_a_table_has_the_recorded_columns(asgi: Asgi, step: Obj) -> None:
    for create in CREATES:
        if create["path"] == step["path"] and create["code"] == 201:
            (await asgi.post(create["path"], create["body"])).ok()

    table = (await asgi.get(step["path"], TABLE)).ok()

    names = ("name", "type", "format", "priority")
    columns = [[column[name] for name in names] for column in table["columnDefinitions"]]
    assert columns == step["columns"]
    assert table["rows"]
    assert {len(row["cells"]) for row in table["rows"]} == {len(columns)}
