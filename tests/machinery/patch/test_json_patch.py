import json
import os
from pathlib import Path
from typing import Any

import pytest

from sully.machinery.patch.errors import (
    FailedPatchError,
    MalformedPatchError,
    PatchError,
    TooManyOperationsError,
    TooManyValuesError,
)
from sully.machinery.patch.json_patch import apply_json_patch


def _differs(file: str, case: dict[str, Any]) -> bool:
    """Report whether Kubernetes decides otherwise than the RFC; RESULTS and ERRORS have its rules.

    It never replaces a whole object, reads a missing value as null, copies what is not there as
    null, reads array indexes with leading zeros, and counts negative ones from the end.
    """
    comment = case.get("comment", "") or case.get("error", "")
    whole = any(step.get("path") == "" and step.get("op") != "test" for step in case["patch"])
    return file == "tests.json" and (
        whole
        or "missing 'value'" in comment
        or "missing from location to copy" in comment
        or "leading zeros" in comment
        or "Out of bounds (lower)" in comment
    )


def suite() -> list[Any]:
    folder = os.environ.get("SULLY_SUITES")
    if not folder:
        return []
    cases = []
    for file in ("tests.json", "spec_tests.json"):
        for number, case in enumerate(json.loads((Path(folder) / "json-patch" / file).read_text())):
            if "patch" in case and not case.get("disabled") and not _differs(file, case):
                name = f"{file}-{number}-{case.get('comment', '')}"
                cases.append(pytest.param(case, id=name))
    return cases


SUITE = suite()

if SUITE:

    @pytest.mark.parametrize("case", SUITE)
    def test_suite(case: dict[str, Any]) -> None:
        if "error" in case:
            with pytest.raises(PatchError):
                apply_json_patch(case["doc"], case["patch"])
            return
        before = json.dumps(case["doc"])

        got = apply_json_patch(case["doc"], case["patch"])

        if "expected" in case:
            assert got == case["expected"]
        assert json.dumps(case["doc"]) == before


DOCUMENT = {"a": {"b": [1, 2, 3]}, "c": None, "e/f": {"~": 1}}

RESULTS: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "add appends": (
        [{"op": "add", "path": "/a/b/-", "value": 4}],
        {**DOCUMENT, "a": {"b": [1, 2, 3, 4]}},
    ),
    "add replaces a field": ([{"op": "add", "path": "/a", "value": 1}], {**DOCUMENT, "a": 1}),
    "escapes": (
        [{"op": "replace", "path": "/e~1f/~0", "value": 2}],
        {**DOCUMENT, "e/f": {"~": 2}},
    ),
    "null is a value": ([{"op": "test", "path": "/c", "value": None}], DOCUMENT),
    "move within a list": (
        [{"op": "move", "from": "/a/b/0", "path": "/a/b/2"}],
        {**DOCUMENT, "a": {"b": [2, 3, 1]}},
    ),
    "move onto itself": ([{"op": "move", "from": "/a", "path": "/a"}], DOCUMENT),
    "copy shares nothing visible": (
        [
            {"op": "copy", "from": "/a", "path": "/d"},
            {"op": "add", "path": "/d/b/0", "value": 0},
        ],
        {**DOCUMENT, "d": {"b": [0, 1, 2, 3]}},
    ),
    "one is one point zero": ([{"op": "test", "path": "/a/b/0", "value": 1.0}], DOCUMENT),
    "the whole document": ([{"op": "replace", "path": "", "value": {"x": 1}}], {"x": 1}),
    "nothing": ([], DOCUMENT),
}


@pytest.mark.parametrize(("patch", "want"), RESULTS.values(), ids=RESULTS.keys())
def test_result(patch: list[dict[str, Any]], want: Any) -> None:
    before = json.dumps(DOCUMENT)

    assert apply_json_patch(DOCUMENT, patch) == want
    assert json.dumps(DOCUMENT) == before


def test_shares_what_does_not_change() -> None:
    got = apply_json_patch(DOCUMENT, [{"op": "add", "path": "/x", "value": 1}])

    assert got["a"] is DOCUMENT["a"]


FAILURES = {
    "test fails": [{"op": "test", "path": "/a", "value": 1}],
    "true is not one": [{"op": "test", "path": "/a/b/0", "value": True}],
    "absent field": [{"op": "remove", "path": "/nothing"}],
    "absent parent": [{"op": "add", "path": "/nothing/at", "value": 1}],
    "absent parent of what is replaced": [{"op": "replace", "path": "/nothing/x", "value": 1}],
    "absent field moved": [{"op": "move", "from": "/nothing", "path": "/x"}],
    "whole document removed": [{"op": "remove", "path": ""}],
    "whole document by something else": [{"op": "replace", "path": "", "value": [1]}],
    "no operation at all": [None],
    "past the end": [{"op": "add", "path": "/a/b/4", "value": 1}],
    "huge index": [{"op": "replace", "path": "/a/b/" + "9" * 5000, "value": 1}],
    "minus is not an item": [{"op": "remove", "path": "/a/b/-"}],
    "into a scalar": [{"op": "add", "path": "/a/b/0/x", "value": 1}],
    "unknown operation": [{"op": "jump", "path": "/a"}],
    "no operation": [{"path": "/a"}],
    "no path": [{"op": "remove"}],
    "no from": [{"op": "copy", "path": "/x"}],
    "bad escape": [{"op": "test", "path": "/e~2f", "value": 1}],
    "no pointer": [{"op": "test", "path": "a", "value": 1}],
    "move into itself": [{"op": "move", "from": "/a", "path": "/a/b"}],
    "path without end": [{"op": "test", "path": "/a" * 5000, "value": 1}],
}


@pytest.mark.parametrize("patch", FAILURES.values(), ids=FAILURES.keys())
def test_failure(patch: list[dict[str, Any]]) -> None:
    with pytest.raises(FailedPatchError) as caught:
        apply_json_patch(DOCUMENT, patch)

    status = caught.value.answer().to_status()
    assert (status["code"], status["reason"], status["details"]) == (422, "Invalid", {})
    assert status["message"] == "the server rejected our request due to an error in our request"


MALFORMED = {
    "object": (
        {"op": "remove"},
        "error decoding patch: json: cannot unmarshal object into Go value of type "
        "[]handlers.jsonPatchOp",
    ),
    "number in the list": (
        [1],
        "error decoding patch: json: cannot unmarshal number into Go value of type "
        "handlers.jsonPatchOp",
    ),
    "path of a wrong type": (
        [{"op": "add", "path": 1}],
        "error decoding patch: json: cannot unmarshal number into Go struct field "
        "jsonPatchOp.path of type string",
    ),
}


@pytest.mark.parametrize(("patch", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(patch: Any, message: str) -> None:
    with pytest.raises(MalformedPatchError) as caught:
        apply_json_patch(DOCUMENT, patch)

    status = caught.value.answer().to_status()
    assert (status["code"], status["reason"], status["message"]) == (400, "BadRequest", message)


def test_too_many_operations() -> None:
    with pytest.raises(TooManyOperationsError) as caught:
        apply_json_patch({}, [{"op": "test", "path": "", "value": {}}] * 10_001)

    assert caught.value.answer().code == 413
    assert str(caught.value) == (
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_are_bounded() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60

    with pytest.raises(FailedPatchError, match="exceeding the limit"):
        apply_json_patch({"a": ["x" * 1000]}, doubling)


def test_copied_values_are_bounded() -> None:
    copies = [{"op": "copy", "from": "/a", "path": f"/b{n}"} for n in range(20)]

    with pytest.raises(TooManyValuesError, match="more than 50000 values"):
        apply_json_patch({"a": [1] * 3000}, copies)


def test_what_a_patch_puts_in_is_never_changed() -> None:
    document: dict[str, Any] = {"a": {"b": [1]}}
    value: dict[str, Any] = {"k": [1]}
    steps: list[dict[str, Any]] = [
        {"op": "add", "path": "/v", "value": value},
        {"op": "copy", "from": "/v", "path": "/w"},
        {"op": "add", "path": "/v/k/0", "value": 0},
        {"op": "remove", "path": "/w/k/0"},
        {"op": "move", "from": "/a", "path": "/c"},
        {"op": "replace", "path": "/c/b/0", "value": 2},
    ]

    patched = apply_json_patch(document, steps)

    assert patched == {"v": {"k": [0, 1]}, "w": {"k": []}, "c": {"b": [2]}}
    assert document == {"a": {"b": [1]}}
    assert value == {"k": [1]}


def test_moves_cannot_stack_without_end() -> None:
    steps: list[dict[str, Any]] = []
    for _ in range(2000):
        steps.append({"op": "add", "path": "/b", "value": {}})
        steps.append({"op": "move", "from": "/a", "path": "/b/a"})
        steps.append({"op": "move", "from": "/b", "path": "/a"})

    with pytest.raises(MalformedPatchError, match="nests deeper"):
        apply_json_patch({"a": {}}, steps)


def test_deep_value() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]

    with pytest.raises(MalformedPatchError, match="nests deeper"):
        apply_json_patch({}, [{"op": "add", "path": "/a", "value": value}])
