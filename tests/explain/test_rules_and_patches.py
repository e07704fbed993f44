"""What rules and patches do, or why nothing."""

from __future__ import annotations

from typing import Any

import pytest

from explain.situation import Situation
from explain.worlds import (
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
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS
from sully.explain.explanation import Explanation, Table

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


def with_progress(made: Obj, message: str, *, ever: str = "") -> Obj:
    """Return a rule with the status that a controller gave it; ours also counts all."""
    reported = {"EvictionInProgress": ("False", message)} | (
        {"sully.dev/Evicted": ("True", ever)} if ever else {}
    )
    conditions = [
        {"type": type_, "status": status, "reason": "r", "message": text}
        for type_, (status, text) in reported.items()
    ]
    return made | {"status": {"conditions": conditions}}


FOREVER = {"key": "example.com/fw", "operator": "Exists", "effect": "NoExecute"}
UNSCHEDULABLE = {
    "type": DEVICE_DIAGNOSIS,
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
        contains=("It has no deviceSelector, so it selects no device.",),
        helps="deviceSelector",
    ),
    "no such driver": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"driver": "fpga.example.com"}),
        contains=("no driver fpga.example.com publishes devices",),
        helps="sully devices",
    ),
    "no such pool": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"driver": DRIVER, "pool": "n9"}),
        contains=("there is no pool n9",),
    ),
    "no such device": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"driver": DRIVER, "device": "gpu-9"}),
        contains=("there is no device gpu-9 there",),
    ),
    "no device passes the expression": about_rule(
        "Idle",
        "NoDevice",
        *PLAIN,
        rule("fw", select={"selectors": [{"cel": {"expression": 'device.driver == "x"'}}]}),
        contains=('It selects no device: no device matches device.driver == "x".',),
    ),
    "no such class": about_rule(
        "Idle",
        "SelectorFails",
        *PLAIN,
        rule("fw", select={"deviceClassName": "big"}),
        contains=("there is no class big (and 1 more)",),
        helps="class that exists",
    ),
    "no device is of the class": about_rule(
        "Idle",
        "NoDevice",
        node(),
        class_("gpus", 'device.driver == "x"'),
        TWO,
        rule("fw", select={"deviceClassName": "gpus"}),
        contains=("It selects no device: no device matches class gpus.",),
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
        contains=("runtime error: no such key: a (and 1 more)",),
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
        contains=("its attributes were not recorded at allocation",),
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
        first="Rule fw adds taint example.com/fw:NoSchedule to all devices.",
        contains=(
            "Rule fw is being deleted since 2030-01-01T12:00:00Z (0s ago) and waits for x/y.",
        ),
    ),
    "for a class": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        rule("fw", select={"deviceClassName": "gpus"}),
        contains=("adds taint example.com/fw:NoSchedule to all devices of class gpus.",),
    ),
    "effect None": about_rule(
        "Preview",
        "NoEffect",
        *PLAIN,
        rule("fw", "None"),
        holds(),
        HOLDER,
        contains=(
            "It selects 2 published devices, 1 in use, and has no effect. With NoExecute: 1"
            " pod would be evicted: 1 immediately. 2 devices published, 1 allocated. By"
            " namespace: team 1. By owner: team/Pod/q 1.",
        ),
    ),
    "prevents new pods from being scheduled": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        rule("fw", annotations={"sully.dev/expires-at": at(60)}),
        claim("wants"),
        pod("w", "wants"),
        contains=(
            "Rule fw, created by alice at 2030-01-01T12:00:00Z (0s ago), adds taint"
            " example.com/fw:NoSchedule to all devices.",
            "It selects 2 published devices, 0 in use",
            "It prevents scheduling of 1 Pending pod: team/w.",
            "It expires at 2030-01-01T12:01:00Z (in 60s).",
        ),
    ),
    "a pod that was prevented and would fit now is not counted": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        claim("wants"),
        pod("w", "wants", status={"conditions": [UNSCHEDULABLE]}),
        omits=("prevents scheduling of",),
    ),
    "a pod that lacks other devices than these is not prevented": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        class_("fpgas", 'device.driver == "fpga.example.com"'),
        rule("fw", select={"device": "gpu-0"}),
        claim("wants", request("gpu"), request("fpga", cls="fpgas")),
        pod("w", "wants"),
        omits=("prevents scheduling of",),
    ),
    "a pod that lacks more than devices is not prevented": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        rule("fw"),
        claim("wants", request(count=3)),
        pod("w", "wants"),
        omits=("prevents scheduling of",),
    ),
    "together with another rule": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        rule("fw"),
        rule("hot", key="example.com/hot"),
        claim("wants"),
        pod("w", "wants"),
        contains=("It prevents scheduling of 1 Pending pod: team/w.",),
    ),
    "another rule alone prevents scheduling": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN,
        rule("fw", select={"device": "gpu-0"}),
        rule("hot", key="example.com/hot"),
        claim("wants"),
        pod("w", "wants"),
        omits=("prevents scheduling of",),
    ),
    "without the nodes, who was notified": about_rule(
        "Blocking",
        "PreventsScheduling",
        *PLAIN[1:],
        rule("fw"),
        pod("w", status={"conditions": [UNSCHEDULABLE]}),
        missing=("Node",),
        contains=("It prevents scheduling of 1 Pending pod: team/w.",),
    ),
    "only advises": about_rule(
        "Advising", "PreferNoSchedule", *PLAIN, rule("fw", "PreferNoSchedule")
    ),
    "an effect that is unknown": about_rule(
        "Idle", "UnknownEffect", *PLAIN, rule("fw", "Explode"), contains=("the effect Explode",)
    ),
    "pods must be evicted": about_rule(
        "Evicting",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecute", description="firmware", evictionsPerSecond=5),
        holds(),
        HOLDER,
        contains=(
            'reason "firmware"',
            "It selects 2 published devices, 1 in use. 1 pod will be"
            " evicted immediately, at a rate of 5/s.",
        ),
        helps="sully evictions pause fw",
    ),
    "pods must be evicted as budgets allow": about_rule(
        "Evicting",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget"),
        holds(),
        HOLDER,
        contains=("1 pod will be evicted immediately, as PodDisruptionBudgets allow.",),
    ),
    "it ends before any pod must be evicted": about_rule(
        "Done",
        "TaintExpiresFirst",
        *PLAIN,
        rule("fw", "NoExecute", annotations={"sully.dev/expires-at": at(30)}),
        holds(FOREVER | {"tolerationSeconds": 60}),
        HOLDER,
        contains=(
            "It selects 2 published devices, 1 in use. No pod is evicted: it expires before"
            " the tolerations of 1 pod.",
        ),
    ),
    "pods must be evicted later": about_rule(
        "Evicting",
        "ToleratedTemporarily",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(FOREVER | {"tolerationSeconds": 300}),
        HOLDER,
        contains=("the first, team/q, tolerates it until 2030-01-01T12:05:00Z (in 5m)",),
    ),
    "it counts from later on": about_rule(
        "Evicting",
        "TaintStartsLater",
        *PLAIN,
        rule("fw", "NoExecute", timeAdded=at(300)),
        holds(),
        HOLDER,
        contains=(
            "It selects 2 published devices, 1 in use. 1 pod will be evicted later; the"
            " first, team/q, at 2030-01-01T12:05:00Z (in 5m), when the taint takes effect.",
        ),
    ),
    "paused": about_rule(
        "Paused",
        "EvictionPaused",
        *PLAIN,
        rule("fw", "NoExecute", annotations={"sully.dev/paused": "true"}),
        holds(),
        HOLDER,
        contains=(
            "It selects 2 published devices, 1 in use, and eviction is paused; 1 pod would be"
            " evicted.",
        ),
        helps="sully evictions resume fw",
    ),
    "all pods were evicted": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        rule("fw", "NoExecute"),
        evicted("q"),
        evicted("r"),
        contains=(
            "It selects 2 published devices, 0 in use. 2 pods were evicted because of it, and"
            " no other pod will be.",
        ),
    ),
    "all pods were evicted, and their records are gone": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        rule("fw", "NoExecute"),
        taint_record("fw", evictions=7),
        contains=(
            "It selects 2 published devices, 0 in use. 7 pods were evicted because of it, and"
            " no other pod will be.",
        ),
    ),
    "the last ones are on their way out": about_rule(
        "Evicting",
        "PodsTerminating",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        pod("q", "c", on="n1", deleted=30),
        contains=(
            "It selects 2 published devices, 1 in use. 1 pod is terminating because of it,"
            " until 2030-01-01T12:00:30Z (in 30s) at the latest; no other pod will be evicted.",
        ),
    ),
    "the last ones should be gone": about_rule(
        "Evicting",
        "PodsTerminating",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        pod("q", "c", on="n1", deleted=30),
        after=40,
        contains=(
            "It selects 2 published devices, 1 in use. 1 pod is terminating because of it,"
            " which should have ended at 2030-01-01T12:00:30Z (10s ago); no other pod will be"
            " evicted.",
        ),
    ),
    "some are on their way out and some must follow": about_rule(
        "Evicting",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        HOLDER,
        claim("d", holds=("n1/gpu-1",), pods=("r",)),
        pod("r", "d", on="n1", deleted=30),
        contains=(
            "It selects 2 published devices, 2 in use. 1 pod will be evicted immediately; 1"
            " more pod is terminating.",
        ),
    ),
    "another controller evicts": about_rule(
        "Evicting",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        HOLDER,
        missing=RECORDS,
        contains=("1 pod will be evicted immediately.",),
        helps="To stop: delete the rule",
    ),
    "another controller evicted, and counts": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        with_progress(rule("fw", "NoExecute"), "5 pods evicted since starting the controller."),
        missing=RECORDS,
        contains=(
            "It selects 2 published devices, 0 in use. At least 5 pods were evicted because of"
            " it, and no other pod will be.",
            "How many pods were evicted so far is not recorded here: the controller that evicts"
            " counts only since it was started, and reports up to ten seconds late. Sully's own"
            " keeps records (sully install"
            " --evictor sully).",
        ),
    ),
    "another controller evicted, and our records are beside it": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        with_progress(rule("fw", "NoExecute"), "5 pods evicted since starting the controller."),
        taint_record("fw", evictions=7),
        contains=(
            "It selects 2 published devices, 0 in use. At least 7 pods were evicted because"
            " of it, and no other pod will be.",
            "not recorded here",
        ),
    ),
    "another controller may have evicted": about_rule(
        "Done",
        "NoPodsAffected",
        *PLAIN,
        with_progress(rule("fw", "NoExecute"), ""),
        missing=RECORDS,
        contains=(
            "It selects 2 published devices, 0 in use: there is no pod to evict.",
            "How many pods were evicted so far is not recorded"
            " here: the controller that evicts counts only since"
            " it was started, and reports up to ten seconds late.",
        ),
    ),
    "our own counted": about_rule(
        "Done",
        "Completed",
        *PLAIN,
        with_progress(
            rule("fw", "NoExecute"),
            "1 pod evicted since starting the controller.",
            ever="4 pods evicted.",
        ),
        taint_record("fw", evictions=4),
        contains=(
            "It selects 2 published devices, 0 in use. 4 pods were evicted because of it, and"
            " no other pod will be.",
        ),
    ),
    "everybody tolerates it": about_rule(
        "Done", "AllPodsTolerate", *PLAIN, rule("fw", "NoExecute"), holds(FOREVER), HOLDER
    ),
    "nobody is there": about_rule("Done", "NoPodsAffected", *PLAIN, rule("fw", "NoExecute")),
    "gone": about_rule(
        "Removed",
        "Deleted",
        taint_record("fw", deleted=60, evictions=3),
        evicted("q", after=5),
        after=120,
        contains=(
            'Rule fw, created by alice at 2030-01-01T12:00:00Z (2m ago), reason "firmware",'
            " added taint",
            "It was deleted at 2030-01-01T12:01:00Z (60s ago). 3 pods were evicted because of it.",
        ),
        because=("TaintRecord/fw-uid",),
    ),
    "gone by itself": about_rule(
        "Removed",
        "Expired",
        taint_record("fw", deleted=60, by="expiry"),
        contains=(
            'Rule fw, created by alice at 2030-01-01T12:00:00Z (0s ago), reason "firmware",'
            " added taint example.com/fw:NoExecute to devices gpu.example.com/*/*.",
        ),
        because=("TaintRecord/fw-uid",),
    ),
}

PATCHES = {
    "for all devices": about_patch(
        "Applied",
        "Applied",
        *PLAIN,
        patch("x", attributes=GRADE),
        contains=(
            "Patch x, created by bob at 2030-01-01T12:00:00Z (0s ago), is applied to all devices.",
            "It selects 2 published devices, and all of its values apply.",
        ),
    ),
    "for no device": about_patch(
        "Idle",
        "NoDevice",
        *PLAIN,
        patch("x", select={"pool": "n9"}, attributes=GRADE),
        contains=("there is no pool n9",),
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
        contains=(f"{DRIVER}/n1/gpu-0:",),
        helps="Correct the expression",
    ),
    "another comes first": about_patch(
        "Overridden",
        "OtherPatchesFirst",
        *PLAIN,
        patch("x", attributes=GRADE),
        patch("first", priority=5, attributes=GRADE),
        contains=(
            "It selects 2 published devices, but none of its values applies: other patches"
            " take precedence, patch first (2).",
        ),
        because=("ResourceSlicePatch/first",),
        helps="higher priority wins",
    ),
    "another comes first in part": about_patch(
        "Applied",
        "PartlyOverridden",
        *PLAIN,
        patch("x", attributes=GRADE, taints=[taint()]),
        patch("first", priority=5, select={"device": "gpu-0"}, taints=[taint()]),
        contains=(
            "It selects 2 published devices, but 1 of its values does not apply: other"
            " patches take precedence, patch first (1).",
        ),
        because=("ResourceSlicePatch/first",),
    ),
    "its taints evicts pods": about_patch(
        "Applied",
        "Applied",
        *PLAIN,
        patch("x", taints=[taint("NoExecute")]),
        holds(),
        HOLDER,
        contains=("1 pod will be evicted because of its taints: team/q.",),
    ),
}

SITUATIONS = {
    f"{subject}: {name}": entry
    for subject, table in (("rule", RULES), ("patch", PATCHES))
    for name, entry in table.items()
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()


def test_pods_that_must_be_evicted_stands_in_a_table() -> None:
    result = ask("rule", "fw", *PLAIN, rule("fw", "NoExecute"), holds(), HOLDER)
    leavers = next(detail for detail in result.details if detail.title == "Pods to be evicted")

    assert leavers.rows == (
        ("team/q", "n1", f"{DRIVER}/n1/gpu-0", "2030-01-01T12:00:00Z (0s ago)"),
    )


def test_without_our_annotation_the_program_is_named() -> None:
    fields: Obj = {"f:spec": {"f:taint": {}}}
    bare = rule("fw")
    bare["metadata"]["annotations"] = {}
    bare["metadata"]["managedFields"] = [
        {"manager": "status-writer", "subresource": "status", "fieldsV1": fields},
        {"manager": "kubectl-create", "time": at(0), "fieldsV1": fields},
        {"manager": "kubectl-edit", "time": at(9), "fieldsV1": fields},
    ]

    first = ask("rule", "fw", *PLAIN, bare).summary[0]

    assert first.startswith("Rule fw, created with kubectl-create at ")
    assert "created by" not in first


def _table(result: Explanation, title: str) -> Table | None:
    return next((table for table in result.details if table.title == title), None)


def _numbers(result: Explanation) -> dict[str, str]:
    selection = _table(result, "Selection")
    return {row[0]: row[1] for row in selection.rows} if selection is not None else {}


def test_a_paused_rule_shows_no_time() -> None:
    paused = rule("fw", "NoExecute")
    paused["metadata"]["annotations"]["sully.dev/paused"] = "wait"

    result = ask("rule", "fw", *PLAIN, paused, holds(), HOLDER)

    assert _table(result, "Pods to be evicted") is None
    pods = _table(result, "Pods to be evicted when resumed")
    assert pods is not None
    assert pods.columns == ("pod", "node", "device")
    assert pods.rows == (("team/q", "n1", f"{DRIVER}/n1/gpu-0"),)
    assert _numbers(result)["pods to be evicted when resumed"] == "1"


EFFECTS = {
    "None": "pods that NoExecute would evict",
    "NoSchedule": None,
    "NoExecute": "pods to be evicted",
}


@pytest.mark.parametrize(("effect", "row"), EFFECTS.items())
def test_only_a_rule_that_evicts_has_pods_to_be_evicted(effect: str, row: str | None) -> None:
    numbers = _numbers(ask("rule", "fw", *PLAIN, rule("fw", effect), holds(), HOLDER))

    shown = [what for what in numbers if what.startswith("pods ") and what != "pods evicted"]
    assert shown == ([row] if row else [])


def test_a_count_that_nobody_knows_is_unknown() -> None:
    world = (*PLAIN, rule("fw", "NoExecute"), holds(), HOLDER)

    records = _numbers(ask("rule", "fw", *world))
    none = _numbers(ask("rule", "fw", *world, missing=("TaintRecord", "EvictionRecord")))

    assert (records["pods evicted"], none["pods evicted"]) == ("0", "unknown")
