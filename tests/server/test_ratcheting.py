"""Custom resources that their schema no longer allows: what may be changed in them."""

import pytest

from definitions import GROUP, STRING, Defining, Obj, custom, definition, fields
from serving import MERGE, local

OBJECTS = f"/apis/{GROUP}/v1/namespaces/default/crontabs"
KEYED: Obj = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {**fields(k=STRING), "required": ["k"]},
}
STRICTER: Obj = {
    **fields(
        must=STRING,
        a={**STRING, "maxLength": 3},
        keyed=KEYED,
        unique={"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    ),
    "required": ["must"],
}
TWICE: Obj = {"must": "x", "keyed": [{"k": "a"}, {"k": "a"}]}
# What is stored, how it is changed, and whether that is allowed. Recorded.
OUTGROWN: dict[str, tuple[Obj, Obj, int]] = {
    "a field is missing": ({}, {"metadata": {"labels": {"a": "b"}}}, 200),
    "a field is missing beside the change": ({}, {"spec": {"a": "b"}}, 422),
    "the missing field is set": ({}, {"spec": {"must": "b"}}, 200),
    "too long": ({"must": "x", "a": "long"}, {"spec": {"must": "b"}}, 200),
    "a key twice": (TWICE, {"metadata": {"labels": {"a": "b"}}}, 200),
    "a key twice beside the change": (TWICE, {"spec": {"a": "b"}}, 200),
    "a value twice": ({"must": "x", "unique": ["a", "a"]}, {"spec": {"a": "b"}}, 200),
    "a field is removed": ({"must": "x"}, {"spec": {"must": None}}, 422),
    "a key is added again": (
        {"must": "x", "keyed": [{"k": "a"}]},
        {"spec": {"keyed": [{"k": "a"}, {"k": "a"}]}},
        422,
    ),
}


@pytest.mark.parametrize(("spec", "change", "code"), OUTGROWN.values(), ids=OUTGROWN.keys())
async def test_what_a_stricter_schema_forbids_may_stay(spec: Obj, change: Obj, code: int) -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    async with local() as server:
        await server.api.definitions.start()
        defining = Defining(server)
        await defining.define(definition(anything))
        (await server.post(OBJECTS, custom(spec=spec))).ok(201)
        await defining.define(definition(STRICTER))

        answer = await server.patch(f"{OBJECTS}/a", change, MERGE)

    assert answer.code == code, answer.body
