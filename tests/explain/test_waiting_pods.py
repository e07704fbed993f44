"""Why a pod has no node: what it asks for itself, its claims, and who looked at it when."""

from __future__ import annotations

import pytest

import manifests
from explain.situation import Situation
from explain.waiters import BUSY, PLAIN, TWO, alone, waiting
from explain.worlds import (
    DRIVER,
    NAMESPACE,
    Obj,
    at,
    claim,
    class_,
    evicted,
    node,
    on_node,
    pod,
    request,
    rule,
)
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS

ACCOUNT = (
    '{"nodes":3,"reached":3,"counted":3,"requests":[{"claim":"team/c","request":"gpu","wanted":1,'
    '"refused":{"taint":2},"taints":[{"key":"k","effect":"NoSchedule","devices":2,'
    '"origin":"DeviceTaintRule/gone"}]}]}'
)


IN_USE = (
    '{"nodes":3,"reached":3,"counted":3,"requests":[{"claim":"team/c","request":"gpu","wanted":1,'
    '"refused":{"inUse":2},"holders":[{"claim":"team/busy","devices":2}]}]}'
)


def unschedulable_with(account: str) -> Obj:
    return {"type": DEVICE_DIAGNOSIS, "status": "False", "message": account}


def prepared(claimed: Obj, *true: str) -> Obj:
    """Let the devices of a claim be made ready by their driver, who has reported this much."""
    allocation = claimed["status"]["allocation"]
    allocation["allocationTimestamp"] = at(0)
    (result,) = allocation["devices"]["results"]
    result |= {"bindingConditions": ["attached", "wired"], "bindingFailureConditions": ["broken"]}
    reported = {"status": "True", "reason": "Said", "message": "", "lastTransitionTime": at(0)}
    conditions = [{"type": item, **reported} for item in true]
    known = {name: result[name] for name in ("driver", "pool", "device")}
    claimed["status"]["devices"] = [{**known, "conditions": conditions}]
    return claimed


def of_another(record: Obj) -> Obj:
    """Return the record of an earlier pod of the same name."""
    record["spec"]["pod"]["uid"] = "another"
    return record


def made(seconds: float, obj: Obj) -> Obj:
    """Let an object be older or younger than others."""
    obj["metadata"]["creationTimestamp"] = at(seconds)
    return obj


ITSELF = {
    "another scheduler": alone(
        "OtherScheduler",
        node(),
        pod(schedulerName="volcano"),
        contains=(
            "Pod team/p has been Pending since 2030-01-01T12:00:00Z (0s ago), and only"
            " scheduler volcano can schedule it.",
        ),
        helps="schedulerName",
    ),
    "a scheduling gate": alone(
        "SchedulingGated",
        node(),
        pod(schedulingGates=[{"name": "example.com/quota"}]),
        contains=("1 scheduling gate: example.com/quota",),
        helps="The controller that set the gate",
    ),
    "a constraint nobody here evaluates": alone(
        "UnsupportedConstraint",
        node(),
        pod(schedulingGroup={"podGroupName": "g"}),
        contains=("does not evaluate spec.schedulingGroup",),
        helps="another scheduler",
    ),
}


CLAIMS = {
    "the claim does not exist": alone(
        "ClaimMissing",
        *PLAIN,
        pod("p", "c"),
        contains=(f'could not find ResourceClaim "{NAMESPACE}/c"',),
        because=(f"ResourceClaim/{NAMESPACE}/c",),
        helps="Create claim c",
    ),
    "the claim is being deleted": alone(
        "ClaimDeleting",
        *PLAIN,
        claim("c", deletionTimestamp=at(0), finalizers=["x/y"]),
        pod("p", "c"),
        contains=('resourceclaim "c" is being deleted',),
        because=(f"ResourceClaim/{NAMESPACE}/c",),
        helps="until it is gone",
    ),
    "the claim of the template was not made yet": alone(
        "ClaimNotCreated",
        *PLAIN,
        {
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "t", "namespace": NAMESPACE},
            "spec": {"spec": {"devices": {"requests": [request()]}}},
        },
        pod("p", templates=("t",)),
        contains=("ResourceClaim not created yet",),
        because=(f"ResourceClaimTemplate/{NAMESPACE}/t",),
        helps="claim controller",
    ),
    "the template does not exist": alone(
        "TemplateMissing",
        *PLAIN,
        pod("p", templates=("t",)),
        contains=("there is no ResourceClaimTemplate t in namespace team",),
        helps="Create template t",
    ),
    "the claim was made for another pod": alone(
        "ClaimOfOtherPod",
        *PLAIN,
        claim("t-1"),
        pod(
            "p",
            templates=("t",),
            status={"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "t-1"}]},
        ),
        contains=("was not created for Pod team/p (Pod is not owner)",),
        because=(f"ResourceClaim/{NAMESPACE}/t-1",),
        helps="Delete claim t-1",
    ),
    "the class does not exist": waiting(
        "ClassMissing",
        node(),
        TWO,
        contains=("device class gpus does not exist",),
        helps="Create the class",
    ),
    "the claim has devices on another node": alone(
        "ClaimElsewhere",
        node("n2"),
        class_(),
        TWO,
        claim("c", holds=("n1/gpu-0",), selector=on_node("n1"), pods=("q",)),
        pod("p", "c"),
        first="claim team/c already has gpu.example.com/n1/gpu-0, and 1 node that could run the"
        " pod cannot use it.",
        because=("ResourceClaim/team/c",),
        helps="Wait until q no longer uses the claim, let the pod run on the node where the"
        " devices are, or give it a claim of its own.",
    ),
    "the claim has devices on another node, for nobody": alone(
        "ClaimElsewhere",
        node("n2"),
        class_(),
        TWO,
        claim("c", holds=("n1/gpu-0",), selector=on_node("n1")),
        pod("p", "c"),
        contains=(
            "No pod uses the claim, so the scheduler deallocates it and chooses other devices.",
        ),
        because=("ResourceClaim/team/c",),
    ),
    "the claim has as many users as may be": alone(
        "ClaimFull",
        *PLAIN,
        claim("c", holds=("n1/gpu-0",), pods=[f"q{index}" for index in range(256)]),
        pod("p", "c"),
        first="claim team/c is reserved for 256 pods, which is the maximum.",
        because=("ResourceClaim/team/c",),
        helps="another claim",
    ),
    "its devices are not ready": alone(
        "DevicesNotReady",
        *PLAIN,
        prepared(claim("c", holds=("n1/gpu-0",), selector=on_node("n1"), pods=("p",)), "wired"),
        pod("p", "c"),
        after=60,
        first="claim team/c has device gpu.example.com/n1/gpu-0, and its driver has not yet"
        " reported condition attached; the scheduler waits for it until"
        " 2030-01-01T12:10:00Z (in 9m).",
        because=("ResourceClaim/team/c",),
        helps="Check that driver gpu.example.com is running; it reports in status.devices of"
        " the claim.",
    ),
    "its devices cannot be made ready": alone(
        "DevicesFailed",
        *PLAIN,
        prepared(claim("c", holds=("n1/gpu-0",), selector=on_node("n1"), pods=("p",)), "broken"),
        pod("p", "c"),
        first=f"device {DRIVER}/n1/gpu-0 of claim team/c cannot be used: its driver reports"
        " condition broken",
        because=("ResourceClaim/team/c",),
        helps="The scheduler deallocates the claim and retries; see the status of the claim.",
    ),
    "its devices are ready": alone(
        "NotScheduledYet",
        *PLAIN,
        prepared(
            claim("c", holds=("n1/gpu-0",), selector=on_node("n1"), pods=("p",)),
            "wired",
            "attached",
        ),
        pod("p", "c"),
        first="although it would fit on node n1 now",
    ),
    "the class of an alternative does not exist": waiting(
        "ClassMissing",
        *PLAIN,
        asks={
            "name": "gpu",
            "firstAvailable": [{"name": "big", "deviceClassName": "big", "count": 1}],
        },
        first="request gpu/big: device class big does not exist",
        helps="Create the class, or name one that exists: gpus.",
    ),
    "it would be evicted immediately": alone(
        "ClaimTainted",
        *PLAIN,
        rule("fw", "NoExecute", select={"device": "gpu-0"}),
        claim("c", holds=("n1/gpu-0",), selector=on_node("n1"), pods=("q",)),
        pod("p", "c"),
        contains=(
            "Pod team/p has been Pending since 2030-01-01T12:00:00Z (0s ago): it would be"
            " evicted immediately if it used claim team/c, because of rule fw (created by"
            " alice).",
            f"Device {DRIVER}/n1/gpu-0 of the claim has taint example.com/fw:NoExecute from"
            " rule fw (created by alice)",
        ),
        because=("DeviceTaintRule/fw",),
        helps="Use another claim",
    ),
}


LOOKS = {
    "nobody looked, and it would fit": waiting(
        "NotScheduledYet",
        *PLAIN,
        contains=("although it would fit on node n1 now",),
        helps="check that it is running",
    ),
    "without the nodes, what the scheduler wrote": alone(
        "DevicesTainted",
        class_(),
        pod(
            "p",
            status={
                "conditions": [
                    {
                        "type": DEVICE_DIAGNOSIS,
                        "status": "False",
                        "message": ACCOUNT,
                    }
                ]
            },
        ),
        missing=("Node",),
        contains=("2 devices have taint k:NoSchedule from rule gone",),
        because=("DeviceTaintRule/gone",),
        helps="It may help to tolerate k:NoSchedule from rule gone in request gpu, or have"
        " the taint removed.",
    ),
    "without the nodes, who has the devices": alone(
        "DevicesInUse",
        class_(),
        *BUSY,
        pod("p", status={"conditions": [unschedulable_with(IN_USE)]}),
        missing=("Node",),
        first="claim team/busy uses devices that it could use",
        because=("ResourceClaim/team/busy",),
        helps="It may help to wait until claim team/busy (2 devices, used by pod team/q) is"
        " deallocated, as far as needed.",
    ),
    "who may not see claims of others is reported what the scheduler wrote": alone(
        "DevicesTainted",
        node(),
        class_(),
        TWO,
        claim("c"),
        pod(
            "p",
            "c",
            status={
                "conditions": [{"type": DEVICE_DIAGNOSIS, "status": "False", "message": ACCOUNT}]
            },
        ),
        hidden=("DeviceTaintRule",),
        contains=("2 devices have taint k:NoSchedule from rule gone",),
        because=("DeviceTaintRule/gone",),
    ),
    "without the nodes, the message of any scheduler": alone(
        "Unschedulable",
        pod(
            "p",
            status={
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                        "lastTransitionTime": at(60),
                    }
                ]
            },
        ),
        after=120,
        missing=("Node",),
        contains=(
            "Pod team/p has been Pending since 2030-01-01T12:01:00Z (60s ago). The scheduler"
            " reports: 0/3 nodes are available.",
        ),
    ),
    "without the nodes, and nobody looked": alone(
        "NotScheduledYet",
        pod("p"),
        missing=("Node",),
        contains=(
            "Pod team/p has been Pending"
            " since 2030-01-01T12:00:00Z (0s"
            " ago), and no scheduler has"
            " processed it.",
        ),
    ),
}


TEMPLATE = manifests.claim_template(
    "t", {"devices": {"requests": [request()]}}, namespace=NAMESPACE
)


OWNED_BY_P = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]


BEFORE = {
    "others come first": waiting(
        "DevicesInUse",
        *PLAIN,
        *BUSY,
        *(claim(name) for name in ("older", "young", "urgent", "unlike")),
        made(-60, pod("older", "older")),
        made(60, pod("young", "young")),
        made(60, pod("urgent", "urgent", priority=5)),
        made(-60, pod("gated", "unlike", schedulingGates=[{"name": "x"}])),
        after=90,
        contains=(
            "2 other pods need such devices and are scheduled before it: team/older and"
            " team/urgent.",
        ),
        because=("ResourceClaim/team/busy",),
        helps="Wait until claim team/busy",
    ),
    "a claim of a template cannot be changed": alone(
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        TEMPLATE,
        claim("t-1", ownerReferences=OWNED_BY_P),
        pod(
            "p",
            templates=("t",),
            status={"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "t-1"}]},
        ),
        because=("DeviceTaintRule/fw",),
        helps="The spec of a claim is immutable: to add tolerations, update template t and"
        " recreate the pod.",
    ),
    "a claim of its own cannot be changed": waiting(
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        because=("DeviceTaintRule/fw",),
        helps="The spec of a claim is immutable: to add tolerations, recreate claim c.",
    ),
    "it replaces a pod that was evicted": alone(
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        claim("c"),
        evicted("old", owner="web"),
        evicted("other", owner="shop"),
        pod("p", "c", owner="web"),
        after=60,
        contains=(
            "Before it, pod team/old of ReplicaSet web was evicted at 2030-01-01T12:00:00Z (60s"
            " ago) because of rule fw (created by alice).",
        ),
        omits=("shop",),
        because=("DeviceTaintRule/fw",),
        helps="Tolerate",
    ),
    "it replaces a pod that was evicted, and lacks its claim": alone(
        "ClaimMissing",
        *PLAIN,
        evicted("old", owner="web"),
        pod("p", "c", owner="web"),
        contains=("Before it, pod team/old of ReplicaSet web was evicted",),
        because=("ResourceClaim/team/c",),
        helps="Create claim c",
    ),
    "it is one of many in a row": alone(
        "NotScheduledYet",
        *PLAIN,
        claim("c"),
        *(evicted(f"old-{index}", owner="web", after=-index) for index in range(3)),
        evicted("sibling", owner="web", after=30),
        pod("p", "c", owner="web"),
        after=60,
        contains=(
            "Before it, 3 pods of ReplicaSet web were evicted, the last at 2030-01-01T12:00",
        ),
        helps="check that it is running",
    ),
    "a pod of its name was evicted before": alone(
        "NotScheduledYet",
        *PLAIN,
        claim("c"),
        of_another(evicted("p")),
        pod("p", "c"),
        contains=(
            "Before it, pod team/p was evicted at 2030-01-01T12:00:00Z (0s ago) because of"
            " rule fw.",
        ),
        helps="check that it is running",
    ),
}


SITUATIONS = ITSELF | CLAIMS | LOOKS | BEFORE


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()
