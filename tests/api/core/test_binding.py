"""Putting pods on nodes."""

from typing import Any

import pytest

from api.core.bodies import pod
from api.core.writing import HERE, World, create
from sully.api.core.pods.updates.binding import bind_pod, check_binding
from sully.machinery.errors import ApiError, BadRequest, Conflict

Obj = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def _binding(target: Obj | None = None, **metadata: Any) -> Obj:
    return {
        "metadata": {"name": "p", **metadata},
        "target": {"kind": "Node", "name": "n1"} if target is None else target,
    }


def _pod(**spec: Any) -> Obj:
    obj = create("pods", pod(metadata={"labels": {"app": "a"}}, **spec)).obj
    obj["metadata"]["uid"] = "u1"
    return obj


def test_bound_pod() -> None:
    node = {"metadata": {"name": "n1", "labels": {ZONE: "z", "other": "o"}}}
    world = World(objects={("nodes", "", "n1"): node})
    before = _pod()

    after = bind_pod(before, _binding(annotations={"from": "x"}), world.context())

    assert after["spec"]["nodeName"] == "n1"
    assert after["metadata"]["annotations"] == {"from": "x"}
    assert after["metadata"]["labels"] == {"app": "a", ZONE: "z"}
    assert after["metadata"]["generation"] == 1
    assert [c["status"] for c in after["status"]["conditions"]] == ["True"]
    assert "nodeName" not in before["spec"]
    assert "conditions" not in before["status"]


@pytest.mark.parametrize("nominated", ["n1", "n2"])
def test_nomination_is_cleared(nominated: str) -> None:
    before = _pod()
    before["status"]["nominatedNodeName"] = nominated

    after = bind_pod(before, _binding(), HERE.context())

    assert "nominatedNodeName" not in after["status"]
    assert after["status"]["phase"] == before["status"]["phase"]
    assert before["status"]["nominatedNodeName"] == nominated


def test_condition_of_a_gate_that_opened_is_replaced() -> None:
    waiting = _pod(schedulingGates=[{"name": "a"}])
    waiting["spec"]["schedulingGates"] = []

    (condition,) = bind_pod(waiting, _binding(), HERE.context())["status"]["conditions"]

    assert (condition["status"], condition.get("reason")) == ("True", None)


REFUSED: dict[str, tuple[Obj, Obj, Obj, str]] = {
    "taken": ({"nodeName": "n0"}, {}, {}, 'pod p is already assigned to node "n0"'),
    "gated": (
        {"schedulingGates": [{"name": "a"}]},
        {},
        {},
        "pod p has non-empty .spec.schedulingGates",
    ),
    "terminating": (
        {},
        {"deletionTimestamp": "2026-03-01T12:00:00Z"},
        {},
        "pod p is being deleted, cannot be assigned to a host",
    ),
}


@pytest.mark.parametrize(
    ("spec", "metadata", "options", "want"), REFUSED.values(), ids=REFUSED.keys()
)
def test_refused(spec: Obj, metadata: Obj, options: Obj, want: str) -> None:
    pod = _pod(**spec)
    pod["metadata"] |= metadata

    with pytest.raises(Conflict) as refusal:
        bind_pod(pod, _binding(**options), HERE.context())

    assert refusal.value.message == f'Operation cannot be fulfilled on pods/binding "p": {want}'


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"uid": "u2"}, "UID in precondition: u2, UID in object meta: u1"),
        (
            {"resourceVersion": "9"},
            "ResourceVersion in precondition: 9, ResourceVersion in object meta: 1",
        ),
    ],
    ids=["another pod of that name", "another version"],
)
def test_preconditions(options: Obj, want: str) -> None:
    pod = _pod()
    pod["metadata"] |= {"resourceVersion": "1"}

    with pytest.raises(Conflict) as refusal:
        bind_pod(pod, _binding(**options), HERE.context())

    assert refusal.value.message == (
        'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key:'
        " /registry/pods/ns/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: " + want
    )


BAD: dict[str, tuple[Obj, str]] = {
    "name": (_binding(name="q"), "name in URL does not match name in Binding object"),
    "kind of target": (
        _binding({"kind": "Pod", "name": "n"}),
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
    ),
    "no target": (_binding({"kind": "Node"}), "target.name: Required value"),
}


@pytest.mark.parametrize(("binding", "want"), BAD.values(), ids=BAD.keys())
def test_bad_binding(binding: Obj, want: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        check_binding("p", binding, HERE.context())

    assert refusal.value.message == want


def test_reference_answers_500_for_a_bad_target() -> None:
    with pytest.raises(ApiError) as refusal:
        check_binding("p", _binding({"kind": "Pod", "name": "n"}), World(strict=True).context())

    assert (refusal.value.code, refusal.value.reason) == (500, "")
