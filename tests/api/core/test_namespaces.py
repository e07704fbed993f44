"""Namespaces: their label, their finalizers, their phases."""

import copy
from typing import Any

import pytest

from api.core.writing import RESOURCES, create, update
from sully.api.core.namespaces import finalized

Obj = dict[str, Any]
BAD = "name is neither a standard finalizer name nor is it fully qualified"

FINALIZERS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "none": ([], ["kubernetes"], []),
    "of another party": (["example.com/x"], ["example.com/x", "kubernetes"], []),
    "of nobody": (
        ["x"],
        ["x", "kubernetes"],
        [f'spec.finalizers: Invalid value: "x": {BAD}'],
    ),
}


@pytest.mark.parametrize(
    ("finalizers", "stored", "want"), FINALIZERS.values(), ids=FINALIZERS.keys()
)
def test_finalizers(finalizers: list[str], stored: list[str], want: list[str]) -> None:
    written = create("namespaces", {"spec": {"finalizers": finalizers}})

    assert written.obj["spec"]["finalizers"] == stored
    assert written.texts() == want


def test_name_is_a_label_that_cannot_be_taken_away() -> None:
    old = create("namespaces", {"metadata": {"name": "a"}}).obj
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"kubernetes.io/metadata.name": "b", "x": "y"}
    new["spec"] = {}
    new["status"] = {"phase": "Terminating"}

    written = update("namespaces", new, old).obj

    assert written["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a", "x": "y"}
    assert (written["spec"], written["status"]) == (old["spec"], old["status"])


@pytest.mark.parametrize(
    ("deleted", "phase", "fine"),
    [
        (False, "Active", True),
        (False, "Terminating", False),
        (True, "Active", False),
        (True, "Terminating", True),
    ],
)
def test_phase_states_whether_it_is_being_deleted(deleted: bool, phase: str, fine: bool) -> None:
    old = create("namespaces", {}).obj
    if deleted:
        old["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    new = copy.deepcopy(old)
    new["status"]["phase"] = phase

    assert (update("namespaces", new, old, sub="status").problems == []) is fine


def test_finalizing_changes_nothing_else() -> None:
    old = create("namespaces", {"spec": {"finalizers": ["example.com/x"]}}).obj
    old["metadata"]["resourceVersion"] = "7"
    sent = {**old, "spec": {"finalizers": ["kubernetes"]}, "status": {}}

    assert finalized(old, sent) == {**old, "spec": {"finalizers": ["kubernetes"]}}
    assert finalized(old, {**old, "spec": {}})["spec"] == {}


def test_names_are_dns_labels() -> None:
    check = RESOURCES["", "namespaces"].strategy.validate_name

    assert list(check("a-1")) == []
    assert list(check("a.b")) == ["must not contain dots"]
