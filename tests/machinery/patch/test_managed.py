import copy
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
    stored,
    widget,
    write,
)
from sully.machinery.patch.ownership.entries import decode, encode, settle_times
from sully.machinery.patch.ownership.fieldset import FieldSet
from sully.machinery.patch.ownership.managed import MAX_UPDATERS, track_update
from sully.machinery.schema import ObjectType

GROUP = V1.partition("/")[0]

Obj = dict[str, Any]


def entry(fields: Obj, manager: str = "me", operation: str = "Update", **more: Any) -> Obj:
    base = {"manager": manager, "operation": operation, "apiVersion": V1, "time": NOON}
    return {**base, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def created(spec: Obj, manager: str = "me", **metadata: Any) -> Obj:
    obj = widget(spec, **metadata)
    return stored(obj, track_update(None, obj, write(manager)))


def spec_fields(obj: Obj, manager: str = "me") -> Any:
    entries = obj["metadata"]["managedFields"]
    return next(e["fieldsV1"].get("f:spec") for e in entries if e["manager"] == manager)


CREATES: dict[str, tuple[Obj, Obj, Obj]] = {
    "a struct by value has no mark, a pointer has": (
        {},
        {"mode": {"speed": 1}, "selector": {"driver": "x"}},
        {"f:spec": {"f:mode": {"f:speed": {}}, "f:selector": {".": {}, "f:driver": {}}}},
    ),
    "what the server keeps is nobody's": (
        {"name": "w", "namespace": "n", "uid": "u", "generation": 1, "resourceVersion": "1"},
        {"replicas": 1},
        {"f:spec": {"f:replicas": {}}},
    ),
    "labels, finalizers and owners": (
        {"labels": {"a": "b"}, "finalizers": ["x"], "ownerReferences": [{"uid": "o", "name": "p"}]},
        {},
        {
            "f:metadata": {
                "f:finalizers": {".": {}, 'v:"x"': {}},
                "f:labels": {".": {}, "f:a": {}},
                "f:ownerReferences": {".": {}, 'k:{"uid":"o"}': {}},
            }
        },
    ),
}


@pytest.mark.parametrize(("metadata", "spec", "want"), CREATES.values(), ids=CREATES.keys())
def test_create(metadata: Obj, spec: Obj, want: Obj) -> None:
    assert track_update(None, widget(spec, **metadata), write()) == [entry(want)]


def test_create_of_nothing_is_owned_by_nobody() -> None:
    assert track_update(None, widget(), write()) == []


def test_status_on_create_is_reset() -> None:
    obj = widget({"replicas": 1}) | {"status": {"phase": "Ready"}}

    assert track_update(None, obj, write()) == [entry({"f:spec": {"f:replicas": {}}})]


def test_update_takes_what_it_changes_from_others() -> None:
    live = created({"replicas": 1, "paused": True}, "first")

    got = track_update(live, widget({"replicas": 2, "paused": True}), write("second", LATER))

    assert got == [
        entry({"f:spec": {"f:paused": {}}}, "first"),
        entry({"f:spec": {"f:replicas": {}}}, "second", time=LATER),
    ]


def test_same_manager_keeps_one_entry() -> None:
    live = created({"replicas": 1})

    got = track_update(live, widget({"replicas": 1, "paused": True}), write(time=LATER))

    assert got == [entry({"f:spec": {"f:paused": {}, "f:replicas": {}}}, time=LATER)]


def test_update_without_change_leaves_the_record() -> None:
    live = created({"replicas": 1})
    new = copy.deepcopy(live)

    assert track_update(live, new, write("other", LATER)) is live["metadata"]["managedFields"]


def test_client_that_sends_no_record_keeps_it() -> None:
    live = created({"replicas": 1})

    assert (
        track_update(live, widget({"replicas": 1}), write("other", LATER))
        == (live["metadata"]["managedFields"])
    )


def test_removed_fields_are_nobodys_and_empty_entries_go() -> None:
    live = created({"replicas": 1}, "first")

    assert track_update(live, widget(), write("second", LATER)) == []


def test_status_has_its_own_entry() -> None:
    live = created({"replicas": 1})
    new = {**live, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    status = write(time=LATER, subresource="status", reset=ALL_BUT_STATUS)

    got = track_update(live, new, status)

    ready: dict[str, Any] = {".": {}, "f:status": {}, "f:type": {}}
    conditions = {".": {}, 'k:{"type":"Ready"}': ready}
    assert got == [
        entry({"f:spec": {"f:replicas": {}}}),
        entry({"f:status": {"f:conditions": conditions}}, time=LATER, subresource="status"),
    ]


def test_what_an_endpoint_resets_stays_with_its_owner() -> None:
    live = created({"replicas": 1})
    changed = widget({"replicas": 2})

    got = track_update(live, changed, write("other", subresource="status", reset=ALL_BUT_STATUS))

    assert got == live["metadata"]["managedFields"]


RECORDS: dict[str, tuple[Any, str, list[str]]] = {
    "reset": ([{}], "", []),
    "an empty list does not reset": ([], "", ["me", "other"]),
    "no reset through a subresource": ([{}], "status", ["me"]),
    "rewritten": (
        [entry({"f:spec": {"f:replicas": {}}}, "chosen")],
        "",
        ["chosen", "other"],
    ),
    "unreadable": ([entry({"x": 1}, "chosen")], "", ["me", "other"]),
    "unknown operation": ([entry({}, "chosen", "Jump")], "", ["me", "other"]),
    "no version": ([entry({}, "chosen", apiVersion="")], "", ["me", "other"]),
    "no type": ([entry({}, "chosen", fieldsType="")], "", ["me", "other"]),
    "another type": ([entry({}, "chosen", fieldsType="X")], "", ["me", "other"]),
}


@pytest.mark.parametrize(("record", "subresource", "want"), RECORDS.values(), ids=RECORDS.keys())
def test_record_from_the_client(record: Any, subresource: str, want: list[str]) -> None:
    live = created({"replicas": 1})
    new = widget({"replicas": 1, "paused": True})
    new["metadata"]["managedFields"] = record
    reset = ALL_BUT_STATUS if subresource else write().reset

    got = track_update(live, new, write("other", subresource=subresource, reset=reset))

    assert [e["manager"] for e in got] == want


def test_after_a_reset_updates_are_not_tracked() -> None:
    live = stored(widget({"replicas": 1}), [])

    assert track_update(live, widget({"replicas": 2}), write()) == []


def test_old_updaters_are_folded() -> None:
    obj = created({}, "m00", labels={"l00": ""})
    for number in range(1, MAX_UPDATERS + 3):
        labels = {**obj["metadata"]["labels"], f"l{number:02}": ""}
        time = f"2026-01-01T12:00:{number:02}Z"
        new = widget({}, labels=labels)
        obj = stored(new, track_update(obj, new, write(f"m{number:02}", time)))

    entries = obj["metadata"]["managedFields"]
    ancient = next(e for e in entries if e["manager"] == "ancient-changes")
    assert len(entries) == MAX_UPDATERS
    assert set(ancient["fieldsV1"]["f:metadata"]["f:labels"]) == {
        ".",
        "f:l00",
        "f:l01",
        "f:l02",
        "f:l03",
    }
    assert ancient["time"] == "2026-01-01T12:00:03Z"


def test_versions_are_folded_apart() -> None:
    record = [
        entry(
            {"f:spec": {f"f:x{number}": {}}}, f"m{number:02}", apiVersion=f"{GROUP}/v{number % 2}"
        )
        for number in range(MAX_UPDATERS + 1)
    ]
    live = stored(widget({"replicas": 1}), record)

    got = track_update(live, widget({"replicas": 2}), write("z", LATER, convert=None))

    ancient = [e for e in got if e["manager"] == "ancient-changes"]
    assert len(got) == MAX_UPDATERS
    assert [e["apiVersion"] for e in ancient] == [f"{GROUP}/v0", f"{GROUP}/v1"]


def test_owners_in_another_group_are_dropped() -> None:
    same_group = entry({"f:spec": {"f:paused": {}}}, "kept", apiVersion=f"{GROUP}/v0")
    other = entry({"f:spec": {"f:paused": {}}}, "other", apiVersion="other/v1")
    live = stored(widget({"replicas": 1, "paused": True}), [same_group, other])

    got = track_update(live, widget({"replicas": 2, "paused": True}), write("z", convert=None))

    assert [e["manager"] for e in got] == ["kept", "z"]


def other_version(obj: Obj, _: str, version: str) -> tuple[Obj, ObjectType] | None:
    """A version in which replicas were called nothing: they do not exist there."""
    if version != "example.com/v0":
        return None if version == "gone/v1" else (obj, WIDGET)
    spec = {name: value for name, value in obj["spec"].items() if name != "replicas"}
    return {**obj, "apiVersion": version, "spec": spec}, WIDGET


def test_records_in_other_versions_are_compared_there() -> None:
    old = entry({"f:spec": {"f:paused": {}, "f:replicas": {}}}, "old", apiVersion="example.com/v0")
    gone = entry({"f:spec": {"f:paused": {}}}, "gone", apiVersion="gone/v1")
    live = stored(widget({"replicas": 1, "paused": True}), [old, gone])

    got = track_update(live, widget({"replicas": 2, "paused": True}), write(convert=other_version))

    assert got == [entry({"f:spec": {"f:replicas": {}}}), old]


def test_item_that_cannot_be_named_leaves_the_record() -> None:
    live = created({"replicas": 1})
    new = widget({"replicas": 2}) | {"spec": {"containers": [None]}}

    assert track_update(live, new, write("other")) == live["metadata"]["managedFields"]


def test_entries_are_ordered() -> None:
    record = [
        entry({"f:a": {}}, "b"),
        entry({"f:a": {}}, "a", time=LATER),
        entry({"f:a": {}}, "a", subresource="status"),
        entry({"f:a": {}}, "z", "Apply"),
        {k: v for k, v in entry({"f:a": {}}, "zz", "Apply").items() if k != "time"},
    ]

    got = encode(decode(record, trusted=False))

    assert got == [record[4], record[3], record[2], record[0], record[1]]


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "paused": st.just(True),
        "mode": st.fixed_dictionaries({}, optional={"speed": st.integers(1, 2)}),
        "tags": st.lists(st.sampled_from("ab"), unique=True, min_size=1),
        "limits": st.dictionaries(st.sampled_from(["cpu"]), st.just("1"), min_size=1),
    },
)


@given(st.lists(st.tuples(st.sampled_from("ab"), SPECS), min_size=1, max_size=5))
def test_every_field_has_exactly_one_updater(writes: list[tuple[str, Obj]]) -> None:
    live = None
    for manager, spec in writes:
        new = widget(spec)
        record = track_update(live, new, write(manager))
        live = stored(new, record) if record or live is None else live | {"spec": new["spec"]}
        live["metadata"]["managedFields"] = record
        if not record:
            return
    assert live is not None
    owned = [path for e in live["metadata"]["managedFields"] for path in paths(e["fieldsV1"])]

    whole = track_update(None, widget(writes[-1][1]), write())
    assert len(owned) == len(set(owned))
    assert set(owned) == {path for e in whole for path in paths(e["fieldsV1"])}


def paths(fields: Obj) -> list[tuple[str, ...]]:
    return list(FieldSet(fields).paths())


def test_settle_times_undoes_a_bare_change_of_times() -> None:
    old = created({"replicas": 1})
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = LATER

    assert settle_times(old, new) == old


def test_settle_times_knows_entries_that_changed_places() -> None:
    obj = widget({"replicas": 1})
    first, second = entry({"f:spec": {"f:replicas": {}}}, "a"), entry({"f:spec": {}}, "b")
    old = stored(obj, [first, second])
    new = stored(obj, [second, {**first, "time": LATER}])

    assert settle_times(old, new) == old


def test_settle_times_leaves_other_changes() -> None:
    old = created({"replicas": 1})
    changed = copy.deepcopy(old)
    changed["metadata"]["managedFields"][0]["time"] = LATER
    changed["spec"]["replicas"] = 2
    shared = copy.deepcopy(old)
    shared["metadata"]["managedFields"].append(entry({"f:spec": {}}, "other"))

    assert settle_times(old, changed) is changed
    assert settle_times(old, shared) is shared
