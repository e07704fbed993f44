from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machinery.patch.widgets import (
    ALL_BUT_STATUS,
    LATER,
    NOON,
    V1,
    WIDGET,
    expected,
    stored,
    widget,
    write,
)
from sully.machinery.errors import ApiError, BadRequest, Conflict
from sully.machinery.patch.apply import Applied, apply
from sully.machinery.patch.errors import MalformedPatchError
from sully.machinery.patch.ownership.entries import settle_times
from sully.machinery.patch.ownership.managed import track_update
from sully.machinery.schema import ObjectType

Obj = dict[str, Any]


def after(result: Applied) -> Obj:
    return stored(result.object, result.managed_fields)


def updated(live: Obj | None, obj: Obj, manager: str = "updater", time: str = NOON) -> Obj:
    return stored(obj, track_update(live, obj, write(manager, time)))


def owned(result: Applied, manager: str) -> Any:
    for entry in result.managed_fields:
        if entry["manager"] == manager:
            return entry["fieldsV1"]
    return None


def test_apply_creates_and_owns_what_it_names() -> None:
    result = apply(None, expected({"mode": {"speed": 1}, "tags": ["a"]}), write("a"))

    assert result.changed
    assert result.object["spec"] == {"mode": {"speed": 1}, "tags": ["a"]}
    assert result.managed_fields == [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": V1,
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:mode": {"f:speed": {}}, "f:tags": {'v:"a"': {}}}},
        }
    ]


def test_applying_again_changes_nothing() -> None:
    live = after(apply(None, expected({"replicas": 1}), write("a")))

    again = apply(live, expected({"replicas": 1}), write("a", LATER))

    assert not again.changed
    assert again.object is live
    assert again.managed_fields is live["metadata"]["managedFields"]


def test_sharing_a_value_is_not_a_conflict_and_leaves_no_time() -> None:
    live = after(apply(None, expected({"replicas": 1}), write("a")))

    result = apply(live, expected({"replicas": 1}), write("b", LATER))

    assert result.changed
    assert result.object is live
    assert [(e["manager"], e.get("time")) for e in result.managed_fields] == [
        ("b", None),
        ("a", NOON),
    ]


def test_forced_conflict_takes_the_field() -> None:
    live = after(apply(None, expected({"replicas": 1, "paused": True}), write("a")))

    result = apply(live, expected({"replicas": 2}), write("b", LATER), force=True)

    assert result.object["spec"]["replicas"] == 2
    assert owned(result, "a") == {"f:spec": {"f:paused": {}}}
    assert owned(result, "b") == {"f:spec": {"f:replicas": {}}}


CONFLICTS: dict[str, tuple[Obj, str, list[tuple[str, str]]]] = {
    "one": (
        {"replicas": 2},
        'Apply failed with 1 conflict: conflict with "a": .spec.replicas',
        [('conflict with "a"', ".spec.replicas")],
    ),
    "two of one": (
        {"replicas": 2, "mode": {"speed": 2}},
        'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.replicas\n- .spec.mode.speed',
        [('conflict with "a"', ".spec.replicas"), ('conflict with "a"', ".spec.mode.speed")],
    ),
    "of two": (
        {"replicas": 2, "paused": False, "containers": [{"name": "c", "image": "2"}]},
        'Apply failed with 3 conflicts: conflicts with "a":\n- .spec.replicas\n'
        f'conflicts with "updater" using {V1}:\n- .spec.paused\n'
        '- .spec.containers[name="c"].image',
        [
            ('conflict with "a"', ".spec.replicas"),
            (f'conflict with "updater" using {V1}', ".spec.paused"),
            (f'conflict with "updater" using {V1}', '.spec.containers[name="c"].image'),
        ],
    ),
}


@pytest.mark.parametrize(("spec", "message", "causes"), CONFLICTS.values(), ids=CONFLICTS.keys())
def test_conflict(spec: Obj, message: str, causes: list[tuple[str, str]]) -> None:
    live = after(apply(None, expected({"replicas": 1, "mode": {"speed": 1}}), write("a")))
    more = {"paused": True, "containers": [{"name": "c", "image": "1"}]}
    live = updated(live, widget({**live["spec"], **more}))

    with pytest.raises(Conflict) as caught:
        apply(live, expected(spec), write("b"))

    assert caught.value.message == message
    assert caught.value.details == {
        "causes": [
            {"reason": "FieldManagerConflict", "message": who, "field": path}
            for who, path in causes
        ]
    }


def test_conflict_names_the_subresource() -> None:
    status: Obj = {"subresource": "status", "reset": ALL_BUT_STATUS}
    live = stored(widget(), [])
    phase = expected() | {"status": {"phase": "x"}}
    live = after(apply(live, phase, write("a", **status)))

    with pytest.raises(
        Conflict, match=r'conflict with "a" with subresource "status": \.status\.phase'
    ):
        apply(live, expected() | {"status": {"phase": "y"}}, write("b", **status))


def test_given_up_fields_go() -> None:
    live = after(
        apply(
            None,
            expected({"replicas": 1, "limits": {"cpu": "1", "memory": "1"}, "tags": ["a", "b"]}),
            write("a"),
        )
    )

    result = apply(live, expected({"limits": {"cpu": "1"}, "tags": ["b"]}), write("a", LATER))

    assert after(result)["spec"] == {"limits": {"cpu": "1"}, "tags": ["b"], "mode": {}}


def test_given_up_fields_of_others_stay() -> None:
    live = after(apply(None, expected({"replicas": 1, "paused": True}), write("a")))
    live = after(apply(live, expected({"replicas": 1}), write("b")))

    result = apply(live, expected({}), write("a", LATER))

    assert after(result)["spec"] == {"replicas": 1, "mode": {}}
    assert owned(result, "a") == {"f:spec": {}}


def test_given_up_item_is_deleted_when_nobody_else_has_it() -> None:
    containers = [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]
    live = after(apply(None, expected({"containers": containers}), write("a")))
    live = after(apply(live, expected({"containers": [{"name": "b"}]}), write("b")))

    result = apply(live, expected(), write("a", LATER))

    assert after(result)["spec"]["containers"] == [{"name": "b"}]
    assert owned(result, "a") is None


def test_given_up_item_is_deleted_with_what_others_changed_in_it() -> None:
    live = after(apply(None, expected({"containers": [{"name": "a", "image": "1"}]}), write("a")))
    live = updated(live, widget({"containers": [{"name": "a", "image": "2"}]}), time=LATER)

    result = apply(live, expected(), write("a", LATER))

    assert after(result)["spec"] == {"mode": {}}
    assert result.managed_fields == []


def test_first_apply_shares_with_what_was_there_before() -> None:
    live = stored(widget({"replicas": 1, "paused": True}), [])

    result = apply(live, expected({"replicas": 1}), write("a"))

    assert owned(result, "before-first-apply") == {"f:spec": {"f:paused": {}, "f:replicas": {}}}
    with pytest.raises(Conflict, match=f'conflict with "before-first-apply" using {V1}'):
        apply(live, expected({"replicas": 2}), write("a"))


def test_status_is_not_owned_through_the_object() -> None:
    result = apply(None, expected({"replicas": 1}) | {"status": {"phase": "x"}}, write("a"))

    assert owned(result, "a") == {"f:spec": {"f:replicas": {}}}


REFUSED: dict[str, tuple[Obj, type[ApiError], str]] = {
    "managedFields": (
        expected({}, managedFields=[]),
        BadRequest,
        "metadata.managedFields must be nil",
    ),
    "undeclared field": (
        expected({"colour": "red"}, namespace="n"),
        ApiError,
        f"failed to create typed patch object (n/w; {V1}, Kind=Widget): .spec.colour: "
        "field not declared in schema",
    ),
    "duplicate key": (
        expected({"containers": [{"name": "a"}, {"name": "a"}]}),
        ApiError,
        f"failed to create typed patch object (/w; {V1}, Kind=Widget): .spec.containers: "
        'duplicate entries for key [name="a"]',
    ),
    "metadata of a wrong type": (
        {"kind": "Widget", "metadata": 1},
        ApiError,
        f"failed to create typed patch object (/; {V1}, Kind=Widget): .metadata: "
        "expected map, got &{1}",
    ),
}


@pytest.mark.parametrize(("body", "kind", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(body: Obj, kind: type[ApiError], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        apply(None, body, write("a"))

    assert type(caught.value) is kind
    assert caught.value.message == message


def test_stored_object_that_cannot_be_walked() -> None:
    live = stored(widget({"replicas": 1}), [])
    live["spec"]["containers"] = [None]

    with pytest.raises(ApiError, match=r"failed to create typed live object \(/w; example.com/v1"):
        apply(live, expected({"containers": [{"name": "a"}]}), write("a"))


def test_deep_configuration() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}

    with pytest.raises(MalformedPatchError, match="nests deeper"):
        apply(None, expected({"raw": deep}), write("a"))


def renamed(obj: Obj, _: str, version: str) -> tuple[Obj, ObjectType] | None:
    """Two versions: what v1 calls style, v0 calls driver of the selector."""
    if version == "gone/v1":
        return None
    spec = dict(obj["spec"])
    if version != obj["apiVersion"] and version == V1:
        driver = spec.pop("selector", {}).get("driver")
        spec["mode"] = {"style": driver} if driver else {}
    elif version != obj["apiVersion"]:
        style = spec.pop("mode", {}).get("style")
        spec |= {"mode": {}} | ({"selector": {"driver": style}} if style else {})
    return {**obj, "apiVersion": version, "spec": spec}, WIDGET


V0 = "example.com/v0"


def v0_record(fields: Obj, manager: str = "a", version: str = V0) -> Obj:
    base = {"manager": manager, "operation": "Apply", "apiVersion": version, "time": NOON}
    return {**base, "fieldsType": "FieldsV1", "fieldsV1": fields}


DRIVER: Obj = {"f:spec": {"f:selector": {"f:driver": {}}}}


def test_given_up_in_another_version() -> None:
    live = stored(widget({"mode": {"style": "x"}, "replicas": 1}), [v0_record(DRIVER)])

    result = apply(live, expected({"replicas": 1}), write("a", LATER, convert=renamed))

    assert after(result)["spec"] == {"replicas": 1, "mode": {}}
    assert [e["apiVersion"] for e in result.managed_fields] == [V1]


def test_shared_in_another_version() -> None:
    record = [v0_record(DRIVER), v0_record(DRIVER, "b")]
    live = stored(widget({"mode": {"style": "x"}}), record)

    result = apply(live, expected({"replicas": 1}), write("a", LATER, convert=renamed))

    assert after(result)["spec"] == {"replicas": 1, "mode": {"style": "x"}}


def test_conflict_in_another_version() -> None:
    live = stored(widget({"mode": {"style": "x"}}), [v0_record(DRIVER, "b")])

    with pytest.raises(Conflict, match=r"conflict with \"b\": \.spec\.selector\.driver"):
        apply(live, expected({"mode": {"style": "y"}}), write("a", convert=renamed))


def test_configuration_that_cannot_be_converted() -> None:
    live = stored(widget({"limits": {"cpu": "1"}}), [v0_record(DRIVER, "b")])

    with pytest.raises(ApiError, match=r"failed to convert object to example\.com/v0"):
        apply(live, expected({"limits": {"gpu": "x"}}), write("a", convert=renamed))


def test_record_of_a_version_that_is_gone() -> None:
    record = [v0_record(DRIVER, "a", "gone/v1"), v0_record(DRIVER, "b", "gone/v1")]
    live = stored(widget({"mode": {"style": "x"}}), record)

    result = apply(live, expected({"mode": {"style": "y"}}), write("a", convert=renamed))

    assert [e["manager"] for e in result.managed_fields] == ["a"]


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "mode": st.fixed_dictionaries({}, optional={"speed": st.integers(1, 2)}),
        "args": st.lists(st.sampled_from("ab")),
        "tags": st.lists(st.sampled_from("ab"), unique=True, min_size=1),
        "limits": st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.just("1"), min_size=1),
        "containers": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("ab")}, optional={"image": st.just("i")}
            ),
            unique_by=lambda item: item["name"],
            min_size=1,
        ),
    },
)


@given(SPECS, SPECS)
def test_apply_is_idempotent(before: Obj, spec: Obj) -> None:
    live = updated(None, widget(before))
    live = after(apply(live, expected(spec), write("a"), force=True))

    again = apply(live, expected(spec), write("a", LATER))

    assert settle_times(live, after(again)) == live


@given(SPECS, SPECS)
def test_disjoint_appliers_never_conflict(left: Obj, right: Obj) -> None:
    right = {name: value for name, value in right.items() if name not in left}
    live = after(apply(None, expected(left), write("a")))

    live = after(apply(live, expected(right), write("b")))

    again = apply(live, expected(left), write("a", LATER))
    assert settle_times(live, after(again)) == live


@given(SPECS, SPECS)
def test_giving_everything_up_leaves_what_was_there(before: Obj, spec: Obj) -> None:
    live = after(apply(None, expected(before), write("b")))
    spec = {name: value for name, value in spec.items() if name not in before}
    both = after(apply(live, expected(spec), write("a")))

    left = after(apply(both, expected(), write("a", LATER)))

    assert left["spec"] == live["spec"]
    assert left["metadata"]["managedFields"] == live["metadata"]["managedFields"]
