"""Unknown fields and keys that stand there twice: dropped and reported."""

from dataclasses import dataclass
from typing import Any

import pytest

from serving import YAML, Http

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Case:
    body: Any
    query: dict[str, str]
    warnings: list[str]
    media: str = "application/json"


STRANGE = b'{"metadata":{"name":"a","name":"a"},"colour":1,"more":{"x":1}}'
REPEATED = '299 - "duplicate field \\"metadata.name\\""'
TOLD = {
    "by default": Case(
        STRANGE,
        {},
        [REPEATED, '299 - "unknown field \\"colour\\""', '299 - "unknown field \\"more\\""'],
    ),
    "in the order of the document": Case(
        b'{"colour":1,"metadata":{"name":"a","x":1,"name":"a","y":1},"more":1}',
        {},
        [
            '299 - "unknown field \\"colour\\""',
            '299 - "unknown field \\"metadata.x\\""',
            REPEATED,
            '299 - "unknown field \\"metadata.y\\""',
            '299 - "unknown field \\"more\\""',
        ],
    ),
    "with Warn": Case(
        b'{"metadata":{"name":"a"},"x":1}',
        {"fieldValidation": "Warn"},
        ['299 - "unknown field \\"x\\""'],
    ),
    "with Ignore": Case(STRANGE, {"fieldValidation": "Ignore"}, []),
    "repeated in YAML": Case(
        b"metadata: {name: b, name: a}",
        {},
        ['299 - "line 1: key \\"name\\" already set in map"'],
        YAML,
    ),
    "repeated in JSON, with a name like a text about YAML": Case(
        b'{"metadata":{"name":"a"},"line 1":1,"line 1":2}',
        {},
        ['299 - "unknown field \\"line 1\\""'],
    ),
    "a name that breaks lines": Case(
        b'{"metadata":{"name":"a"},"x\\n\\"y":1}',
        {},
        ['299 - "unknown field \\"x\\\\n\\\\\\"y\\""'],
    ),
    "nothing strange, strictly": Case(
        b'{"metadata":{"name":"a"}}', {"fieldValidation": "Strict"}, []
    ),
}


@pytest.mark.parametrize("case", TOLD.values(), ids=TOLD.keys())
async def test_clients_are_notified(http: Http, namespace_path: str, case: Case) -> None:
    answer = await http.post(f"{namespace_path}/secrets", case.body, case.media, **case.query)

    made = answer.ok(201)
    assert answer.warnings == case.warnings
    assert made["metadata"]["name"] == "a"
    assert not {"colour", "more", "x"} & set(made)


async def test_half_characters_become_whole_ones(http: Http, namespace_path: str) -> None:
    body = rb'{"metadata":{"name":"a","annotations":{"x":"\ud800"}}}'

    made = (await http.post(f"{namespace_path}/secrets", body)).ok(201)

    assert made["metadata"]["annotations"] == {"x": "\ufffd"}
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == made
