"""Why pods are evicted or not, claims keep devices, and devices are free or not."""

from __future__ import annotations

from typing import Any

import pytest

from explain.situation import Situation
from explain.worlds import (
    DRIVER,
    Obj,
    at,
    budget,
    claim,
    class_,
    device,
    evicted,
    node,
    patch,
    pod,
    rule,
    slice_,
    snapshot,
    taint,
    taint_record,
)
from sully.api.core.pods.conditions import DEVICE_TAINT
from sully.explain.facts.devices.devices import AmbiguousNameError, known_devices, match_name
from sully.explain.reader import Reader

GPU = f"{DRIVER}/n1/gpu-0"
TWO = slice_(device("gpu-0"), device("gpu-1"))
PLAIN = (node(), class_(), TWO)
ON_GPU = {"device": "gpu-0"}
HOLDER = pod("q", "c", on="n1")
IN_ZONE = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}
RECORDS = ("EvictionRecord", "TaintRecord")
"""What a server does not have on which another controller evicts."""


def tolerates(effect: str = "NoExecute", seconds: int | None = None) -> Obj:
    claimed: Obj = {"key": "example.com/fw", "operator": "Exists", "effect": effect}
    return claimed | ({"tolerationSeconds": seconds} if seconds is not None else {})


def holds(*tolerations: Obj, **more: Any) -> Obj:
    """Return a claim `c` that has gpu-0 and is reserved for pod `q`."""
    return claim("c", holds=("n1/gpu-0",), pods=("q",), tolerations=tolerations, **more)


def share(name: str, memory: str) -> Obj:
    """Return a claim that has a share of gpu-0."""
    body = claim(name, holds=("n1/gpu-0",))
    (result,) = body["status"]["allocation"]["devices"]["results"]
    result |= {"shareID": f"share-{name}", "consumedCapacity": {"memory": memory}}
    return body


def draws(memory: str, name: str = "counterSet") -> Obj:
    """Return what a device takes of a card, or what the card has."""
    return {name: "card", "counters": {"memory": {"value": memory}}}


def disrupted(*claims: str, status: str = "True", **more: str) -> Obj:
    """Return a pod `q` that is being deleted, and that was announced to be."""
    reported = {"type": "DisruptionTarget", "status": status} | more
    return pod("q", *claims, on="n1", deleted=30, status={"conditions": [reported]})


EVICTED_BY_TAINT = disrupted("c", reason=DEVICE_TAINT)


def about_pod(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="pod", name="q", objects=objects, state=state, cause=cause, **more)


def about_claim(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="claim", name="c", objects=objects, state=state, cause=cause, **more)


def about_device(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="device", name=GPU, objects=objects, state=state, cause=cause, **more)


PODS = {
    "nothing is tainted": about_pod(
        "Running",
        "NotTainted",
        *PLAIN,
        holds(),
        HOLDER,
        contains=(f"is on node n1 and uses {GPU}, which is not tainted",),
        helps=None,
    ),
    "patches cannot be seen where they have no effect": about_pod(
        "Running",
        "NotTainted",
        *PLAIN,
        holds(),
        HOLDER,
        missing=("TaintRecord", "EvictionRecord"),
        hidden=("ResourceSlicePatch",),
        helps=None,
    ),
    "its node does not exist": about_pod(
        "Orphaned",
        "NodeNotFound",
        node(),
        pod("q", on="n9"),
        first="Pod team/q is on node n9, which does not exist: nothing runs it.",
        because=("Node/n9",),
        helps="Delete the pod, or recreate node n9.",
    ),
    "its node cannot be seen": about_pod(
        "Running",
        "NoDevices",
        pod("q", on="n9"),
        hidden=("Node",),
        first="is on node n9 and uses no",
    ),
    "it holds nothing": about_pod(
        "Running", "NoDevices", node(), pod("q", on="n1"), contains=("uses no device",)
    ),
    "it tolerates indefinitely": about_pod(
        "Running",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates()),
        HOLDER,
        first="Pod team/q is on node n1 and uses gpu.example.com/n1/gpu-0. It is not evicted:"
        " it tolerates the taints from rule fw (created by alice).",
        contains=(f"Device {GPU} has taint example.com/fw:NoExecute",),
        because=("DeviceTaintRule/fw",),
    ),
    "it tolerates, whatever the effect": about_pod(
        "Running",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates("")),
        HOLDER,
        because=("DeviceTaintRule/fw",),
    ),
    "Kubernetes itself evicts who names no effect": about_pod(
        "Evicting",
        "EvictionDue",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates("")),
        HOLDER,
        missing=RECORDS,
        because=("DeviceTaintRule/fw",),
    ),
    "the taint only prevents scheduling of others": about_pod(
        "Running",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoSchedule", select=ON_GPU),
        holds(),
        HOLDER,
        first="Pod team/q is on node n1 and uses gpu.example.com/n1/gpu-0. It is not evicted:"
        " the taints from rule fw (created by alice) do not evict pods.",
        because=("DeviceTaintRule/fw",),
    ),
    "it tolerates for a while": about_pod(
        "Running",
        "ToleratedTemporarily",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates(seconds=600)),
        HOLDER,
        after=60,
        first="Pod team/q is on node n1 and will be evicted at 2030-01-01T12:10:00Z (in 9m):"
        " until then it tolerates the taints from rule fw (created by alice).",
        because=("DeviceTaintRule/fw",),
        helps="It is not evicted if rule fw is deleted in time; pausing the rule postpones the"
        " eviction.",
    ),
    "the taint counts from later on": about_pod(
        "Running",
        "TaintStartsLater",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, timeAdded=at(600)),
        holds(),
        HOLDER,
        first="Pod team/q is on node n1 and will be evicted at 2030-01-01T12:10:00Z (in 10m):"
        " then the taints from rule fw (created by alice) take effect.",
        because=("DeviceTaintRule/fw",),
        helps="It is not evicted if rule fw is deleted in time; pausing the rule postpones the"
        " eviction.",
    ),
    "the rule ends before its time": about_pod(
        "Running",
        "TaintExpiresFirst",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, annotations={"sully.dev/expires-at": at(300)}),
        holds(tolerates(seconds=600)),
        HOLDER,
        first="Pod team/q is on node n1 and is not evicted: rule fw (created by alice) expires"
        " before its toleration.",
        contains=("until 2030-01-01T12:05:00Z (in 5m)",),
        because=("DeviceTaintRule/fw",),
    ),
    "its time is over": about_pod(
        "Evicting",
        "EvictionDue",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates(seconds=30)),
        HOLDER,
        after=60,
        first="Pod team/q is due for eviction from node n1 since 2030-01-01T12:00:30Z (30s ago)"
        " because of rule fw (created by alice). It is evicted as soon as the eviction"
        " controller processes it.",
        because=("DeviceTaintRule/fw",),
    ),
    "one of two taints is tolerated": about_pod(
        "Evicting",
        "EvictionDue",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        rule("heat", "NoExecute", select=ON_GPU, key="example.com/heat"),
        holds(tolerates()),
        HOLDER,
        first="because of rule heat (created by alice).",
        because=("DeviceTaintRule/heat",),
        helps="It is not evicted if rule heat is deleted in time; pausing the rule postpones"
        " the eviction.",
    ),
    "two rules evict it at the same time": about_pod(
        "Running",
        "ToleratedTemporarily",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        rule("more", "NoExecute", select=ON_GPU),
        holds(tolerates(seconds=60)),
        HOLDER,
        first="rule fw (created by alice) and rule more (created by alice)",
        because=("DeviceTaintRule/fw", "DeviceTaintRule/more"),
        helps="It is not evicted if rules fw and more are deleted in time; pausing them"
        " postpones the eviction.",
    ),
    "its driver evicts it with a slice of taints": about_pod(
        "Evicting",
        "EvictionDue",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        slice_(
            name="marks",
            count=2,
            taints=[{"device": "gpu-0", "taint": taint("NoExecute", description="too hot")}],
        ),
        holds(),
        HOLDER,
        first="because of slice marks (driver gpu.example.com).",
        contains=('reason "too hot"',),
        because=("ResourceSlice/marks",),
    ),
    "it shares a claim, and both must be evicted": about_pod(
        "Evicting",
        "EvictionDue",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        claim("c", holds=("n1/gpu-0",), pods=("r", "q")),
        HOLDER,
        pod("r", "c", on="n1"),
        because=("DeviceTaintRule/fw",),
    ),
    "its extended resource is a device": about_pod(
        "Evicting",
        "EvictionDue",
        node(),
        class_(extendedResourceName="example.com/gpu"),
        TWO,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "uid-q", "controller": True}
            ]
        ),
        pod("q", on="n1", status={"extendedResourceClaimStatus": {"resourceClaimName": "c"}}),
        because=("DeviceTaintRule/fw",),
    ),
    "many are evicted before it": about_pod(
        "Evicting",
        "EvictionRateLimited",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, evictionsPerSecond=2),
        holds(),
        HOLDER,
        contains=(
            "Pod team/q is due for eviction from node n1 since 2030-01-01T12:00:00Z (0s ago)"
            " because of rule fw (created by alice). The rate is 2/s, and other"
            " pods are evicted first.",
        ),
        because=("DeviceTaintRule/fw",),
    ),
    "budgets decide": about_pod(
        "Evicting",
        "WaitingForDisruptionBudget",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget", select=ON_GPU),
        holds(),
        HOLDER,
        contains=(
            "Pod team/q is due for eviction from node n1 since 2030-01-01T12:00:00Z (0s ago)"
            " because of rule fw (created by alice). It is evicted when its"
            " PodDisruptionBudgets allow it.",
        ),
        because=("DeviceTaintRule/fw",),
    ),
    "a budget keeps it": about_pod(
        "Evicting",
        "WaitingForDisruptionBudget",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget", select=ON_GPU),
        holds(),
        HOLDER,
        budget("quorum", allowed=0),
        first="Pod team/q is due for eviction from node n1 since 2030-01-01T12:00:00Z (0s ago)"
        " because of rule fw (created by alice). It is evicted when PodDisruptionBudget"
        " team/quorum allows it, which currently allows no disruption.",
        because=("DeviceTaintRule/fw",),
    ),
    "a budget lets it go": about_pod(
        "Evicting",
        "WaitingForDisruptionBudget",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget", select=ON_GPU),
        holds(),
        HOLDER,
        budget("quorum", allowed=1),
        first="Pod team/q is due for eviction from node n1 since 2030-01-01T12:00:00Z (0s ago)"
        " because of rule fw (created by alice). PodDisruptionBudget team/quorum allows"
        " its eviction.",
        because=("DeviceTaintRule/fw",),
    ),
    "two budgets keep it indefinitely": about_pod(
        "Evicting",
        "WaitingForDisruptionBudget",
        *PLAIN,
        rule("fw", "NoExecuteWithPodDisruptionBudget", select=ON_GPU),
        holds(),
        HOLDER,
        budget("one", allowed=1),
        budget("two", allowed=1),
        first="Pod team/q is due for eviction from node n1 since 2030-01-01T12:00:00Z (0s ago)"
        " because of rule fw (created by alice). It cannot be evicted: more than one"
        " PodDisruptionBudget selects it, team/one and team/two.",
        because=("DeviceTaintRule/fw",),
    ),
    "eviction is paused": about_pod(
        "Running",
        "EvictionPaused",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, annotations={"sully.dev/paused": "vendor is asked"}),
        holds(),
        HOLDER,
        first="Pod team/q is on node n1 and is not evicted while eviction by rule fw (created"
        ' by alice) is paused: "vendor is asked".',
        because=("DeviceTaintRule/fw",),
        helps="sully evictions resume fw",
    ),
    "its driver evicts it": about_pod(
        "Evicting",
        "EvictionDue",
        node(),
        class_(),
        slice_(device("gpu-0", taint("NoExecute", "gpu.example.com/dead"))),
        holds(),
        HOLDER,
        contains=(
            "Device gpu.example.com/n1/gpu-0 has taint gpu.example.com/dead:NoExecute from"
            " slice slice-n1 (driver gpu.example.com), added 2030-01-01T12:00:00Z (0s ago).",
        ),
        because=("ResourceSlice/slice-n1",),
        helps="It is not evicted if the taint is removed in time by its source.",
    ),
    "a patch evicts it": about_pod(
        "Evicting",
        "EvictionDue",
        *PLAIN,
        patch("hot", taints=[taint("NoExecute")]),
        holds(),
        HOLDER,
        contains=("from patch hot (created by bob)",),
        because=("ResourceSlicePatch/hot",),
    ),
    "a rule evicts it from a device that is gone": about_pod(
        "Evicting",
        "EvictionDue",
        node(),
        class_(),
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        HOLDER,
        because=("DeviceTaintRule/fw",),
    ),
    "it is on its way": about_pod(
        "Terminating",
        "EvictedByTaint",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        pod("q", "c", on="n1", deleted=10),
        evicted("q", after=10),
        after=15,
        first="Pod team/q is being deleted, which should have ended at 2030-01-01T12:00:10Z (5s"
        " ago): it was evicted because of rule fw (created by alice).",
        contains=(
            f"Device {GPU} had taint example.com/fw:NoExecute from rule fw (created by alice)",
        ),
        because=("DeviceTaintRule/fw",),
    ),
    "it is on its way and has time": about_pod(
        "Terminating",
        "EvictedByTaint",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        EVICTED_BY_TAINT,
        first="Pod team/q is being deleted, until 2030-01-01T12:00:30Z (in 30s) at the latest:"
        " it was evicted because of rule fw (created by alice).",
        contains=(
            f"Device {GPU} has taint example.com/fw:NoExecute from rule fw (created by alice)",
        ),
        because=("DeviceTaintRule/fw",),
    ),
    "of two taints only one evicted it": about_pod(
        "Terminating",
        "EvictedByTaint",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        rule("full", "NoSchedule", select=ON_GPU, by="bob"),
        holds(),
        EVICTED_BY_TAINT,
        missing=RECORDS,
        because=("DeviceTaintRule/fw",),
    ),
    "it was evicted, and the rule is gone": about_pod(
        "Terminating",
        "EvictedByTaint",
        *PLAIN,
        holds(),
        EVICTED_BY_TAINT,
        missing=RECORDS,
        contains=("because of a taint on one of its devices.", "The taint is not recorded."),
    ),
    "it must be evicted, and no controller there honors pauses": about_pod(
        "Evicting",
        "EvictionDue",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        HOLDER,
        missing=RECORDS,
        because=("DeviceTaintRule/fw",),
        helps="It is not evicted if rule fw is deleted in time.",
    ),
    "it is on its way for another reason": about_pod(
        "Terminating",
        "PreemptionByScheduler",
        *PLAIN,
        disrupted(reason="PreemptionByScheduler", message="somebody else needs the room"),
        contains=("somebody else needs the room.",),
    ),
    "a user who meant to evict it did not, and it was deleted later": about_pod(
        "Terminating",
        "Deleted",
        *PLAIN,
        disrupted(status="False"),
        first="Pod team/q is being deleted, until 2030-01-01T12:00:30Z (in 30s) at the latest."
        " No device taint is the reason.",
    ),
    "a user deleted it": about_pod(
        "Terminating",
        "Deleted",
        *PLAIN,
        pod("q", on="n1", deleted=10),
        contains=(
            "Pod team/q is being deleted, until 2030-01-01T12:00:10Z (in 10s) at the latest."
            " No device taint is the reason.",
        ),
    ),
    "it was evicted": about_pod(
        "Evicted",
        "EvictedByTaint",
        rule("fw", "NoExecute", description="firmware"),
        evicted("q", after=10, owner="web"),
        after=70,
        contains=(
            "Pod team/q of ReplicaSet web was evicted from node n1 at 2030-01-01T12:00:10Z"
            " (60s ago) because of rule fw (created by alice).",
            f"Device {GPU} had taint example.com/fw:NoExecute from rule fw (created by alice)",
            'reason "firmware"',
        ),
        because=("DeviceTaintRule/fw",),
        helps="Its owner creates a replacement; explain that one if it is Pending.",
    ),
    "it was evicted by a rule that is gone": about_pod(
        "Evicted",
        "EvictedByTaint",
        taint_record("fw", deleted=60),
        evicted("q", after=10),
        after=120,
        contains=(
            "Device gpu.example.com/n1/gpu-0 had taint example.com/fw:NoExecute from rule fw"
            ' (created by alice), added 2030-01-01T12:00:00Z (2m ago), reason "firmware",'
            " deleted 2030-01-01T12:01:00Z (60s ago).",
        ),
        because=("DeviceTaintRule/fw",),
        helps="No controller manages it: create it again, with a toleration if it may use such"
        " devices.",
    ),
    "who asks may not see taints": about_pod(
        "Running",
        "TaintsNotVisible",
        claim("c", holds=("n1/gpu-0",), pods=("q",)),
        HOLDER,
        hidden=("ResourceSlice", "DeviceTaintRule", "ResourceSlicePatch", "Node", "DeviceClass"),
        contains=(
            "Pod team/q is on node n1 and uses gpu.example.com/n1/gpu-0. You are not allowed"
            " to see whether they are tainted, and so whether it will be evicted.",
            "Pod team/q is on node n1 and uses"
            " gpu.example.com/n1/gpu-0. You are"
            " not allowed to see whether they are"
            " tainted, and so whether it will be"
            " evicted.",
        ),
        helps="Ask an administrator",
    ),
    "it ran to its end": about_pod(
        "Finished", "Succeeded", pod("q", on="n1", status={"phase": "Succeeded"})
    ),
    "it got its node past the scheduler": about_pod(
        "Running",
        "ClaimNotReserved",
        *PLAIN,
        claim("c"),
        HOLDER,
        contains=("claim team/c is not reserved for it",),
        because=("ResourceClaim/team/c",),
        helps="without spec.nodeName",
    ),
}

CLAIMS = {
    "nobody uses it": about_claim(
        "Pending", "NoConsumer", *PLAIN, claim("c"), contains=("because no pod uses it",)
    ),
    "its pod is done": about_claim(
        "Pending",
        "NoConsumer",
        *PLAIN,
        claim("c"),
        pod("q", "c", on="n1", status={"phase": "Succeeded"}),
        first="Claim team/c has no devices because no pod uses it: devices are allocated when a"
        " pod that uses it is scheduled.",
        helps=None,
    ),
    "of two pods only one still wants it": about_claim(
        "Pending",
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        claim("c"),
        pod("a", "c", deleted=30),
        pod("p", "c"),
        first="Claim team/c has no devices: they are allocated when pod team/p is scheduled.",
        because=("Pod/team/p", "DeviceTaintRule/fw"),
        helps="Tolerate",
    ),
    "its pod waits": about_claim(
        "Pending",
        "DevicesTainted",
        *PLAIN,
        rule("fw"),
        claim("c"),
        pod("p", "c"),
        contains=(
            "Claim team/c has no devices: they are allocated when pod team/p is scheduled.",
            "2 are tainted",
        ),
        because=("Pod/team/p", "DeviceTaintRule/fw"),
        helps="Tolerate example.com/fw:NoSchedule",
    ),
    "its pod went past the scheduler": about_claim(
        "Pending",
        "SchedulerBypassed",
        *PLAIN,
        claim("c"),
        HOLDER,
        because=("Pod/team/q",),
        helps="without spec.nodeName",
    ),
    "it is in use": about_claim(
        "Reserved",
        "InUse",
        *PLAIN,
        holds(),
        HOLDER,
        contains=(f"Claim team/c has {GPU}, reserved for q",),
    ),
    "its users must be evicted": about_claim(
        "Reserved",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        HOLDER,
        contains=(
            "Its pods will be evicted immediately because of rule fw (created by alice).",
            "from rule fw (created by alice)",
        ),
        because=("DeviceTaintRule/fw",),
    ),
    "its users must be evicted later": about_claim(
        "Reserved",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates(seconds=60)),
        HOLDER,
        contains=("Its pods will be evicted at 2030-01-01T12:01:00Z (in 60s)",),
        because=("DeviceTaintRule/fw",),
    ),
    "a rule that evicts nobody is paused": about_claim(
        "Reserved",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoSchedule", select=ON_GPU, annotations={"sully.dev/paused": "true"}),
        holds(),
        HOLDER,
        contains=("; no pod is evicted because of it.",),
        omits=("paused",),
        because=("DeviceTaintRule/fw",),
    ),
    "a rule is paused, and there is no pod to evict": about_claim(
        "Allocated",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, annotations={"sully.dev/paused": "true"}),
        claim("c", holds=("n1/gpu-0",)),
        omits=("paused",),
        because=("DeviceTaintRule/fw",),
    ),
    "eviction of its users is paused": about_claim(
        "Reserved",
        "EvictionPaused",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, annotations={"sully.dev/paused": "true"}),
        holds(),
        HOLDER,
        contains=("eviction by it is paused",),
        because=("DeviceTaintRule/fw",),
    ),
    "the taint ends before its users must be evicted": about_claim(
        "Reserved",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU, annotations={"sully.dev/expires-at": at(30)}),
        holds(tolerates(seconds=60)),
        HOLDER,
        contains=("no pod is evicted because of it",),
        because=("DeviceTaintRule/fw",),
    ),
    "nobody uses it, so no pod must be evicted": about_claim(
        "Allocated",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        claim("c", holds=("n1/gpu-0",)),
        first="Claim team/c has gpu.example.com/n1/gpu-0 and is not reserved for any pod: it"
        " keeps them until a pod has used it.",
        because=("DeviceTaintRule/fw",),
    ),
    "its user has finished": about_claim(
        "Reserved",
        "ConsumersGone",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        pod("q", "c", on="n1", status={"phase": "Failed"}),
        contains=("q is gone or finished; the claim controller removes the reservation.",),
        because=("Pod/q",),
    ),
    "its users tolerate the taint": about_claim(
        "Reserved",
        "TaintsDoNotEvict",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(tolerates()),
        HOLDER,
        contains=("no pod is evicted because of it",),
        because=("DeviceTaintRule/fw",),
    ),
    "who asks may not see taints": about_claim(
        "Reserved",
        "TaintsNotVisible",
        holds(),
        HOLDER,
        hidden=("DeviceTaintRule",),
        contains=(
            "You are not allowed to see whether they are tainted, and so whether its pods"
            " will be evicted.",
        ),
        helps="Ask an administrator",
    ),
    "its users are gone": about_claim(
        "Reserved",
        "ConsumersGone",
        *PLAIN,
        holds(),
        because=("Pod/q",),
        contains=("q is gone or finished",),
    ),
    "its device is gone": about_claim(
        "Reserved",
        "DeviceUnpublished",
        node(),
        class_(),
        holds(),
        HOLDER,
        contains=(f"{GPU} is no longer published",),
        helps="Check that the driver of the device is running.",
    ),
    "it keeps devices for nobody": about_claim(
        "Allocated",
        "Unused",
        *PLAIN,
        claim("c", holds=("n1/gpu-0",)),
        contains=(
            "Claim team/c has gpu.example.com/n1/gpu-0 and is not reserved for any pod: it"
            " keeps them until a pod has used it.",
        ),
    ),
    "it is being deleted and in use": about_claim(
        "Deleting",
        "StillInUse",
        *PLAIN,
        holds(deletionTimestamp=at(0), finalizers=["x/y"]),
        HOLDER,
        because=("Pod/q",),
    ),
    "it is being deleted": about_claim(
        "Deleting",
        "FinalizersPending",
        claim("c", deletionTimestamp=at(0), finalizers=["x/y"]),
        contains=(
            "Claim team/c is being deleted since 2030-01-01T12:00:00Z (0s ago) and waits for x/y.",
        ),
    ),
}

DEVICES = {
    "free": about_device(
        "Free", "NotTainted", *PLAIN, contains=(f"Device {GPU} on node n1 is free",), helps=None
    ),
    "free, with a taint that does nothing": about_device(
        "Free",
        "TaintWithoutEffect",
        *PLAIN,
        rule("fw", "None"),
        contains=("It has taint example.com/fw:None from rule fw (created by alice)",),
        because=("DeviceTaintRule/fw",),
    ),
    "kept from new pods": about_device(
        "Tainted",
        "PreventsScheduling",
        *PLAIN,
        rule("fw"),
        first="Device gpu.example.com/n1/gpu-0 on node n1 is not in use: rule fw (created by"
        " alice) prevents scheduling of pods that do not tolerate it.",
        because=("DeviceTaintRule/fw",),
        helps="delete rule fw",
    ),
    "marked by a slice of taints": about_device(
        "Tainted",
        "PreventsScheduling",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        slice_(name="marks", count=2, taints=[{"device": "gpu-0", "taint": taint()}]),
        because=("ResourceSlice/marks",),
        helps=f"have driver {DRIVER} remove its taint",
    ),
    "in use": about_device(
        "InUse",
        "NotTainted",
        *PLAIN,
        holds(),
        HOLDER,
        contains=("is in use by pod team/q",),
        because=("ResourceClaim/team/c",),
    ),
    "its users are on their way out": about_device(
        "InUse",
        "PodsTerminating",
        *PLAIN,
        rule("fw", "NoExecute", select=ON_GPU),
        holds(),
        pod("q", "c", on="n1", deleted=30),
        missing=RECORDS,
        first="Device gpu.example.com/n1/gpu-0 on node n1 is in use by pod team/q, which is"
        " terminating because of rule fw (created by alice).",
        because=("DeviceTaintRule/fw",),
        helps=None,
    ),
    "in use by pods that must be evicted": about_device(
        "InUse",
        "PodsToBeEvicted",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(),
        HOLDER,
        first="Device gpu.example.com/n1/gpu-0 on node n1 is in use by pod team/q, which will"
        " be evicted immediately because of rule fw (created by alice).",
        because=("DeviceTaintRule/fw",),
        helps="delete rule fw",
    ),
    "in use by who may stay": about_device(
        "InUse",
        "PodsNotEvicted",
        *PLAIN,
        rule("fw", "NoExecute"),
        holds(tolerates()),
        HOLDER,
        because=("DeviceTaintRule/fw",),
    ),
    "in use while the rule is paused": about_device(
        "InUse",
        "PodsNotEvicted",
        *PLAIN,
        rule("fw", "NoExecute", annotations={"sully.dev/paused": "true"}),
        holds(),
        HOLDER,
        contains=("eviction by it is paused",),
        because=("DeviceTaintRule/fw",),
    ),
    "in use while a rule is paused that evicts nobody": about_device(
        "InUse",
        "PodsNotEvicted",
        *PLAIN,
        rule("fw", annotations={"sully.dev/paused": "true"}),
        holds(),
        HOLDER,
        first="Device gpu.example.com/n1/gpu-0 on node n1 is in use by pod team/q, and rule fw"
        " (created by alice) prevents scheduling of other pods.",
        omits=("paused",),
        because=("DeviceTaintRule/fw",),
        helps="To remove the taint: delete rule fw",
    ),
    "in use, and the taint ends first": about_device(
        "InUse",
        "PodsNotEvicted",
        *PLAIN,
        rule("fw", "NoExecute", annotations={"sully.dev/expires-at": at(30)}),
        holds(tolerates(seconds=60)),
        HOLDER,
        first="Device gpu.example.com/n1/gpu-0 on node n1 is in use by pod team/q, which is not"
        " evicted despite rule fw (created by alice).",
        because=("DeviceTaintRule/fw",),
    ),
    "known only from an eviction": about_device(
        "Gone",
        "NotPublished",
        rule("fw", "NoExecute"),
        evicted("q", after=10),
        after=70,
        first="Device gpu.example.com/n1/gpu-0 is no longer published by any driver, and no"
        " claim has it; pod team/q was evicted from it at 2030-01-01T12:00:10Z (60s ago)"
        " because of rule fw (created by alice).",
        because=("DeviceTaintRule/fw",),
    ),
    "known only from an eviction, as is another of that name": about_device(
        "Gone",
        "NotPublished",
        rule("fw", "NoExecute"),
        evicted("q", after=10),
        evicted("r", after=20, device="n2/gpu-0"),
        after=70,
        first="Device gpu.example.com/n1/gpu-0 is no longer published by any driver, and no"
        " claim has it; pod team/q was evicted from it at 2030-01-01T12:00:10Z (60s ago)"
        " because of rule fw (created by alice).",
        omits=("n2",),
        because=("DeviceTaintRule/fw",),
    ),
    "named only by a rule": about_device(
        "Unpublished",
        "UnknownDevice",
        node(),
        class_(),
        slice_(device("gpu-1")),
        rule("fw", "NoExecute", select={"driver": DRIVER, "pool": "n1", "device": "gpu-0"}),
        first="Device gpu.example.com/n1/gpu-0 is not published by any driver, and no claim has"
        " it.",
        contains=("It has taint example.com/fw:NoExecute from rule fw",),
        because=("DeviceTaintRule/fw",),
    ),
    "named only by a taint of its pool": about_device(
        "Unpublished",
        "UnknownDevice",
        node(),
        class_(),
        slice_(device("gpu-1"), count=2),
        slice_(name="marks", count=2, taints=[{"device": "gpu-0", "taint": taint()}]),
        contains=(
            "If it were published, it would have taint example.com/fw:NoSchedule from slice",
        ),
    ),
    "a taint of the pool for a name that is not published": about_device(
        "Free",
        "NotTainted",
        node(),
        class_(),
        slice_(device("gpu-0"), count=2),
        slice_(name="marks", count=2, taints=[{"device": "pool", "taint": taint("NoExecute")}]),
        contains=(
            "Its pool also has a taint for pool, which is not a published device, so no device is"
            " affected: taint example.com/fw:NoExecute from slice marks",
        ),
    ),
    "looked at by an admin": about_device(
        "Free",
        "NotTainted",
        *PLAIN,
        claim("c", holds=("n1/gpu-0",), pods=("q",), admin=True),
        HOLDER,
        contains=("Claim team/c has admin access to it, which does not prevent scheduling.",),
    ),
    "gone, but held": about_device(
        "Unpublished",
        "StillAllocated",
        node(),
        class_(),
        holds(),
        HOLDER,
        contains=(
            "Device gpu.example.com/n1/gpu-0 is no longer published by any driver, but claim"
            " team/c still has it.",
        ),
        because=("ResourceClaim/team/c",),
    ),
    "in a pool that is being written": about_device(
        "Unusable",
        "PoolIncomplete",
        node(),
        slice_(device("gpu-0"), count=3),
        first="Device gpu.example.com/n1/gpu-0 on node n1 cannot be allocated (pool incomplete:"
        " 1 of 3 slices).",
        helps="whole pool",
    ),
    "in a pool for the nodes of a selector that is being written": about_device(
        "Unusable",
        "PoolIncomplete",
        node(zone="a"),
        slice_(device("gpu-0"), count=3, nodeName=None, nodeSelector=IN_ZONE),
        first="Device gpu.example.com/n1/gpu-0 (for the nodes of a selector) cannot be"
        " allocated (pool incomplete: 1 of 3 slices).",
        helps="whole pool",
    ),
    "in use, in a pool that is being written": about_device(
        "InUse",
        "PodsToBeEvicted",
        node(),
        slice_(device("gpu-0"), count=3),
        rule("fw", "NoExecute"),
        holds(),
        HOLDER,
        first="Device gpu.example.com/n1/gpu-0 on node n1 is in use by pod team/q, which will"
        " be evicted immediately because of rule fw (created by alice).",
        contains=(
            "Even when it is free, it cannot be allocated (pool incomplete: 1 of 3 slices).",
        ),
        because=("DeviceTaintRule/fw",),
        helps="delete rule fw",
    ),
    "in a pool that contradicts itself": about_device(
        "Unusable",
        "PoolInvalid",
        node(),
        slice_(device("gpu-0"), name="a", count=2),
        slice_(device("gpu-0"), name="b", count=2),
        contains=("duplicate device name gpu-0",),
    ),
    "whose counters another device uses": about_device(
        "Unusable",
        "CountersUsed",
        node(),
        class_(),
        slice_(
            device("gpu-0", consumesCounters=[draws("4")]),
            device("part", consumesCounters=[draws("1")]),
            count=2,
        ),
        slice_(name="counters", count=2, sharedCounters=[draws("4", "name")]),
        claim("c", holds=("n1/part",)),
        contains=(
            "Device gpu.example.com/n1/gpu-0 on node n1 cannot be allocated (takes 4 memory"
            " of card, of which 3 is left by part).",
        ),
        helps="Wait until devices",
    ),
    "allocated to two claims": about_device(
        "Conflict",
        "AllocatedTwice",
        *PLAIN,
        holds(),
        claim("d", holds=("n1/gpu-0",), pods=("r",)),
        HOLDER,
        pod("r", "d", on="n1"),
        first="Device gpu.example.com/n1/gpu-0 on node n1 was allocated to 2 claims, which cannot"
        " all use it: team/c and team/d.",
        contains=("It is in use by pod team/q and pod team/r.",),
        because=("ResourceClaim/team/c", "ResourceClaim/team/d"),
        helps="Delete all of these pods",
    ),
    "shares that are larger than it": about_device(
        "Conflict",
        "CapacityExceeded",
        node(),
        class_(),
        slice_(device("gpu-0", allowMultipleAllocations=True, capacity={"memory": "10Gi"})),
        share("c", "8Gi"),
        share("d", "3Gi"),
        contains=(
            "was allocated to team/c and team/d, which together take more memory than it has.",
        ),
        because=("ResourceClaim/team/c", "ResourceClaim/team/d"),
        helps="Delete pods until it has enough.",
    ),
    "allocated to two claims, and no longer published": about_device(
        "Conflict",
        "AllocatedTwice",
        node(),
        class_(),
        holds(),
        claim("d", holds=("n1/gpu-0",)),
        because=("ResourceClaim/team/c", "ResourceClaim/team/d"),
    ),
    "without an attribute that a patch removes": about_device(
        "Free",
        "NotTainted",
        *PLAIN,
        patch("grade", attributes={f"{DRIVER}/grade": {"null": {}}}),
        contains=(f"{DRIVER}/grade is removed by patch grade (created by bob)",),
    ),
    "with an attribute of a patch": about_device(
        "Free",
        "NotTainted",
        *PLAIN,
        patch("grade", attributes={f"{DRIVER}/grade": {"string": "b"}}),
        contains=(f"{DRIVER}/grade is set by patch grade (created by bob), not by the driver",),
    ),
}

SITUATIONS = {
    f"{subject}: {name}": entry
    for subject, table in (("pod", PODS), ("claim", CLAIMS), ("device", DEVICES))
    for name, entry in table.items()
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()


def test_a_device_is_found_by_the_end_of_its_name() -> None:
    devices = known_devices(Reader(snapshot([TWO, slice_(device("gpu-0"), on="n2")])))

    assert str(match_name(devices, "n1/gpu-0")) == GPU
    assert str(match_name(devices, "gpu-1")) == f"{DRIVER}/n1/gpu-1"
    assert match_name(devices, "gpu-9") is None
    with pytest.raises(AmbiguousNameError, match=f'"gpu-0" matches 2 devices: {GPU} and '):
        match_name(devices, "gpu-0")
