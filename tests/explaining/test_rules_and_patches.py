"""What rules and patches do, or why nothing."""

from __future__ import annotations

from typing import Any

import pytest

from explaining.situation import Situation
from explaining.worlds import (
    DRIVER,
    NOTHING,
    Obj,
    ask,
    at,
    claim,
    class_,
    device,
    evicted,
    node,
    patch,
    pod,
    request,
    rule,
    slice_,
    taint,
    taint_record,
)
from sully.domain.scheduling.diagnosis import CONDITION

TWO = slice_(device("gpu-0"), device("gpu-1"))
PLAIN = (node(), class_(), TWO)
HOLDER = pod("q", "c", on="n1")
GRADE = {f"{DRIVER}/grade": {"string": "b"}}


def holds(*tolerations: Obj) -> Obj:
    return claim("c", holds=("n1/gpu-0",), pods=("q",), tolerations=tolerations)


def about_rule(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="rule", name="fw", objects=objects, state=state, cause=cause, **more)


def about_patch(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="patch", name="x", objects=objects, state=state, cause=cause, **more)


RECORDS = ("EvictionRecord", "TaintRecord")
"""What a server does not have on which another controller evicts."""


def told(made: Obj, message: str, *, ever: str = "") -> Obj:
    """Return a rule with the status that a controller gave it; ours also says how many ever."""
    said = {"EvictionInProgress": ("False", message)} | (
        {"sully.dev/Evicted": ("True", ever)} if ever else {}
    )
    conditions = [
        {"type": type_, "status": status, "reason": "r", "message": text}
        for type_, (status, text) in said.items()
    ]
    return made | {"status": {"conditions": conditions}}


FOREVER = {"key": "example.com/fw", "operator": "Exists", "effect": "NoExecute"}
KEPT_OFF = {
    "type": CONDITION,
    "status": "False",
    "message": '{"nodes":1,"requests":[{"claim":"team/d","request":"gpu","wanted":1,"taints":'
    '[{"key":"example.com/fw","effect":"NoSchedule","origin":"DeviceTaintRule/fw","devices":2}]}]}',
}

RULES = {
    "no selector": about_rule(
        "Idle",
        "NoSelector",
        *PLAIN,
        rule("fw", select=NOTHING),
        says=("It has no deviceSelector, so it selects no device at all",),
        helps="deviceSelector",
    ),
    "no such driver": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"driver": "fpga.example.com"}),
        says=("no driver fpga.example.com publishes devices",),
        helps="sully devices",
    ),
    "no such pool": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"driver": DRIVER, "pool": "n9"}),
        says=("there is no pool n9",),
    ),
    "no such device": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"driver": DRIVER, "device": "gpu-9"}),
        says=("there is no device gpu-9 there",),
    ),
    "no device passes the expression": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"selectors": [{"cel": {"expression": 'device.driver == "x"'}}]}),
        says=('no device passes device.driver == "x"',),
    ),
    "no such class": about_rule(
        "Idle",
        "SelectorFails",
        *PLAIN,
        rule("fw", select={"deviceClassName": "big"}),
        says=("there is no class big (and 1 more)",),
        helps="class that exists",
    ),
    "no device is of the class": about_rule(
        "Idle",
        "NoDevice",
        node(),
        class_("gpus", 'device.driver == "x"'),
        TWO,
        rule("fw", select={"deviceClassName": "gpus"}),
        says=("no device passes class gpus",),
    ),
    "its expression fails": about_rule(
        "Idle",
        "SelectorFails",
        *PLAIN,
        rule(
            "fw",
            select={
                "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].a == 1'}}]
            },
        ),
        says=("runtime error: no such key: a (and 1 more)",),
        helps="Correct the expression",
    ),
    "the slice is gone, and nobody noted what was in it": about_rule(
        "Idle",
        "SelectorFails",
        node(),
        class_(),
        rule("fw", "NoExecute", select={"deviceClassName": "gpus"}),
        holds(),
        HOLDER,
        says=("its attributes were not recorded at allocation",),
        helps="by driver, pool and device",
    ),
    "being deleted": about_rule(
        "Deleting",
        "Deleted",
        *PLAIN,
        {
            **rule("fw"),
            "metadata": {"name": "fw", "deletionTimestamp": at(0), "finalizers": ["x/y"]},
        },
        first="Rule fw puts taint example.com/fw:NoSchedule on all devices.",
        says=("It is being deleted since 2030-01-01T12:00:00Z (0s ago) and waits for x/y",),
    ),
    "for a class": about_rule(
        "Blocking",
        "KeepsNewPodsOff",
        *PLAIN,
        rule("fw", select={"deviceClassName": "gpus"}),
        says=("puts taint example.com/fw:NoSchedule on all devices of class gpus.",),
    ),
    "effect None": about_rule(
        "Preview",
        "NoEffect",
        *PLAIN,
        rule("fw", "None"),
        holds(),
        HOLDER,
        says=("does nothing. With NoExecute: 1 pod would be evicted: 1 at once",),
    ),
    "keeps new pods off": about_rule(
        "Blocking",
        "KeepsNewPodsOff",
        *PLAIN,
        rule("fw", annotations={"sully.dev/expires-at": at(60)}),
        claim("wants"),
        pod("w", "wants"),
        says=(
            "Rule fw, made by alice at 2030-01-01T12:00:00Z (0s ago), puts taint"
            " example.com/fw:NoSchedule on all devices.",
            "It selects 2 published devices, 0 in use",
            "1 pod without a node is kept off by it: team/w",
            "It ends by itself at 2030-01-01T12:01:00Z (in 60s)",
        ),
    ),
    "who was kept off and would fit now is not": about_rule(
        "Blocking",
        "KeepsNewPodsOff",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        claim("wants"),
        pod("w", "wants", status={"conditions": [KEPT_OFF]}),
        silent=("kept off",),
    ),
    "who could do without its devices and lacks others is not kept off": about_rule(
        "Blocking",
        "KeepsNewPodsOff",
        *PLAIN,
        class_("fpgas", 'device.driver == "fpga.example.com"'),
        rule("fw", select={"device": "gpu-0"}),
        claim("wants", request("gpu"), request("fpga", cls="fpgas")),
        pod("w", "wants"),
        silent=("kept off",),
    ),
    "without the nodes, who was told so": about_rule(
        "Blocking",
        "KeepsNewPodsOff",
        *PLAIN[1:],
        rule("fw"),
        pod("w", status={"conditions": [KEPT_OFF]}),
        missing=("Node",),
        says=("1 pod without a node is kept off by it: team/w",),
    ),
    "only advises": about_rule(
        "Advising", "PreferNoSchedule", *PLAIN, rule("fw", "PreferNoSchedule")
    ),
    "an effect nobody knows": about_rule(
        "Idle", "UnknownEffect", *PLAIN, rule("fw", "Explode"), says=("the effect Explode",)
    ),
    "pods must leave": about_rule(
        "Evicting",
        "PodsMustLeave",
        *PLAIN,
        rule("fw", "NoExecute", description="firmware", evictionsPerSecond=5),
        holds(),
        HOLDER,
        says=('reason "firmware"', "1 pod must leave now, at 5 pods a second"),
        helps="sully evictions pause fw",
    ),
    "pods must leave as budgets allow": about_rule(
        "Evicting",
        "PodsMustLeave",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget"),
        holds(),
        HOLDER,
        says=("1 pod must leave now, as PodDisruptionBudgets allow.",),
    ),
    "it ends before anybody must leave": about_rule(
        "Done",
        "TaintEndsFirst",
        *PLAIN,
        rule("fw", "NoExecute", annotations={"sully.dev/expires-at": at(30)}),
        holds(FOREVER | {"tolerationSeconds": 60}),
        HOLDER,
        says=("Nobody has to leave: it ends before the tolerations of 1 pod do",),
    ),
    "pods must leave later": about_rule(
        "Evicting",
        "ToleratedForNow",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(FOREVER | {"tolerationSeconds": 300}),
        HOLDER,
        says=("the first, team/q, tolerates it until 2030-01-01T12:05:00Z (in 5m)",),
    ),
    "it counts from later on": about_rule(
        "Evicting",
        "TaintBegins",
        *PLAIN,
        rule("fw", "NoExecute", timeAdded=at(300)),
        holds(),
        HOLDER,
        says=("the first, team/q, at 2030-01-01T12:05:00Z (in 5m), from when on the taint counts",),
    ),
    "paused": about_rule(
        "Paused",
        "EvictionPaused",
        *PLAIN,
        rule("fw", "NoExecute", annotations={"sully.dev/paused": "true"}),
        holds(),
        HOLDER,
        says=("eviction is paused; 1 pod would have to go",),
        helps="sully evictions resume fw",
    ),
    "everybody left": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        rule("fw", "NoExecute"),
        evicted("q"),
        evicted("r"),
        says=("2 pods left because of it, and nobody is to follow",),
    ),
    "everybody left, and it is forgotten who": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        rule("fw", "NoExecute"),
        taint_record("fw", evictions=7),
        says=("7 pods left because of it",),
    ),
    "the last ones are on their way out": about_rule(
        "Evicting",
        "PodsLeaving",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        pod("q", "c", on="n1", deleted=30),
        says=(
            "1 pod is on the way out because of it, until 2030-01-01T12:00:30Z (in 30s) at the"
            " latest; nobody else has to leave.",
        ),
    ),
    "the last ones should be gone": about_rule(
        "Evicting",
        "PodsLeaving",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        pod("q", "c", on="n1", deleted=30),
        after=40,
        says=("which should have ended at 2030-01-01T12:00:30Z (10s ago); nobody else",),
    ),
    "some are on their way out and some must follow": about_rule(
        "Evicting",
        "PodsMustLeave",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        HOLDER,
        claim("d", holds=("n1/gpu-1",), pods=("r",)),
        pod("r", "d", on="n1", deleted=30),
        says=("1 pod must leave now; 1 more pod is on the way out.",),
    ),
    "another controller evicts": about_rule(
        "Evicting",
        "PodsMustLeave",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        HOLDER,
        missing=RECORDS,
        says=("1 pod must leave now.",),
        helps="To stop: delete the rule",
    ),
    "another controller evicted, and counts": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        told(rule("fw", "NoExecute"), "5 pods evicted since starting the controller."),
        missing=RECORDS,
        says=(
            "At least 5 pods left because of it, and nobody is to follow.",
            "How many were evicted so far is not recorded here",
        ),
    ),
    "another controller evicted, and our records are beside it": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        told(rule("fw", "NoExecute"), "5 pods evicted since starting the controller."),
        taint_record("fw", evictions=7),
        says=("At least 7 pods left because of it", "not recorded here"),
    ),
    "another controller may have evicted": about_rule(
        "Done",
        "NobodyThere",
        *PLAIN,
        told(rule("fw", "NoExecute"), ""),
        missing=RECORDS,
        says=("there is nobody to evict.", "How many were evicted so far is not recorded here"),
    ),
    "our own counted": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        told(
            rule("fw", "NoExecute"),
            "1 pod evicted since starting the controller.",
            ever="4 pods evicted.",
        ),
        says=("in use. 4 pods left because of it, and nobody is to follow.",),
    ),
    "everybody tolerates it": about_rule(
        "Done", "EverybodyTolerates", *PLAIN, rule("fw", "NoExecute"), holds(FOREVER), HOLDER
    ),
    "nobody is there": about_rule("Done", "NobodyThere", *PLAIN, rule("fw", "NoExecute")),
    "gone": about_rule(
        "Lifted",
        "Deleted",
        taint_record("fw", lifted=60, evictions=3),
        evicted("q", after=5),
        after=120,
        says=(
            'Rule fw, made by alice at 2030-01-01T12:00:00Z (2m ago), reason "firmware", put taint',
            "It was deleted at 2030-01-01T12:01:00Z (60s ago). 3 pods left because of it",
        ),
        because=("TaintRecord/fw-uid",),
    ),
    "gone by itself": about_rule(
        "Lifted",
        "Expired",
        taint_record("fw", lifted=60, by="expiry"),
        says=("It ended by itself",),
        because=("TaintRecord/fw-uid",),
    ),
}

PATCHES = {
    "for all devices": about_patch(
        "Applied",
        "Applied",
        *PLAIN,
        patch("x", attributes=GRADE),
        says=(
            "Patch x, made by bob at 2030-01-01T12:00:00Z (0s ago), is laid over all devices",
            "It is for 2 published devices, and all it says counts",
        ),
    ),
    "for no device": about_patch(
        "Idle",
        "NoDevice",
        *PLAIN,
        patch("x", select={"pool": "n9"}, attributes=GRADE),
        says=("there is no pool n9",),
    ),
    "its expression fails": about_patch(
        "Idle",
        "SelectorFails",
        *PLAIN,
        patch(
            "x",
            select={
                "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].a == 1'}}]
            },
            attributes=GRADE,
        ),
        says=(f"{DRIVER}/n1/gpu-0:",),
        helps="Correct the expression",
    ),
    "another comes first": about_patch(
        "Overridden",
        "OtherPatchesFirst",
        *PLAIN,
        patch("x", attributes=GRADE),
        patch("first", priority=5, attributes=GRADE),
        says=("none of its values counts: other patches come first, patch first (2)",),
        because=("ResourceSlicePatch/first",),
        helps="higher priority wins",
    ),
    "another comes first in part": about_patch(
        "Applied",
        "PartlyOverridden",
        *PLAIN,
        patch("x", attributes=GRADE, taints=[taint()]),
        patch("first", priority=5, select={"device": "gpu-0"}, taints=[taint()]),
        says=("1 of its values do not count",),
        because=("ResourceSlicePatch/first",),
    ),
    "its taints make pods leave": about_patch(
        "Applied",
        "Applied",
        *PLAIN,
        patch("x", taints=[taint("NoExecute")]),
        holds(),
        HOLDER,
        says=("1 pod must leave because of its taints: team/q",),
    ),
}

SITUATIONS = {
    f"{subject}: {name}": each
    for subject, table in (("rule", RULES), ("patch", PATCHES))
    for name, each in table.items()
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()


def test_who_must_leave_stands_in_a_table() -> None:
    found = ask("rule", "fw", *PLAIN, rule("fw", "NoExecute"), holds(), HOLDER)
    leavers = next(each for each in found.details if each.title == "Pods that must leave")

    assert leavers.rows == (
        ("team/q", "n1", f"{DRIVER}/n1/gpu-0", "2030-01-01T12:00:00Z (0s ago)"),
    )


def test_without_our_annotation_the_field_manager_is_the_author() -> None:
    fields = {"f:spec": {"f:taint": {}}}
    bare = rule("fw")
    bare["metadata"]["annotations"] = {}
    bare["metadata"]["managedFields"] = [
        {"manager": "status-writer", "subresource": "status", "fieldsV1": fields},
        {"manager": "kubectl-create", "time": at(0), "fieldsV1": fields},
        {"manager": "kubectl-edit", "time": at(9), "fieldsV1": fields},
    ]

    assert "made by kubectl-create" in ask("rule", "fw", *PLAIN, bare).summary[0]
