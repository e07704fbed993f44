"""Pods that are evicted again and again: what is reported of the rule, and of one of the pods."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from explain.situation import Situation
from explain.worlds import (
    NAMESPACE,
    Obj,
    at,
    claim,
    class_,
    device,
    evicted,
    node,
    pod,
    request,
    rule,
    slice_,
)

RECORDS = ("EvictionRecord", "TaintRecord")
PLAIN = (node(), class_(), slice_(device("gpu-0"), device("gpu-1")))
FOR_A_WHILE: Obj = {
    "key": "example.com/fw",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 5,
}
NO_SCHEDULE: Obj = {"key": "example.com/fw", "operator": "Exists", "effect": "NoSchedule"}
ANY_EFFECT: Obj = {"key": "example.com/fw", "operator": "Exists"}
LOOP = "of Deployment team/web were evicted in the last 20s: they are recreated on tainted devices"


def event(name: str, after: float, message: str = "Marking for deletion") -> Obj:
    about = {"kind": "Pod", "namespace": NAMESPACE, "name": name, "uid": f"uid-{name}"}
    metadata = {"name": f"{name}.{after}", "namespace": NAMESPACE}
    return {
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": about,
        "reason": "DeviceTaintManagerEviction",
        "message": message,
        "lastTimestamp": at(after),
    }


EVENTS = tuple(event(f"web-7d9-x{number}", 10 + number) for number in range(12))


def web(*, templates: bool = True, on: str = "n1") -> Obj:
    """Return the pod of a Deployment that exists now."""
    made = pod("web-7d9-abcde", *(() if templates else ("c",)), on=on, owner="web-7d9")
    made["metadata"]["labels"] = {"pod-template-hash": "7d9"}
    if templates:
        made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
        status = [{"name": "gpu", "resourceClaimName": "c"}]
        made["status"] |= {"resourceClaimStatuses": status}
    return made


def its_claim(*tolerations: Obj, templates: bool = True, holds: bool = True) -> tuple[Obj, Obj]:
    """Return the claim of that pod, and the template of those to come."""
    devices, pods = (("n1/gpu-0",), ("web-7d9-abcde",)) if holds else ((), ())
    asked = request(tolerations=list(tolerations))
    made = claim("c", asked, holds=devices, pods=pods, tolerations=tolerations)
    if templates:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-7d9-abcde", "controller": True}
        made["metadata"]["ownerReferences"] = [owner | {"uid": "uid-web-7d9-abcde"}]
    spec = {"devices": {"requests": [asked]}}
    return made, manifests.claim_template("t", spec, namespace=NAMESPACE)


def about(kind: str, name: str, *objects: Obj, **more: Any) -> Situation:
    settings: Any = {"after": 30, "missing": RECORDS, **more}
    return Situation(kind=kind, name=name, objects=(*PLAIN, *objects), **settings)


def of_rule(*objects: Obj, **more: Any) -> Situation:
    settings = {"state": "Evicting", "cause": "EvictionLoop", "first": f"12 pods {LOOP}", **more}
    return about("rule", "fw", *objects, **settings)


FW = rule("fw", "NoExecute", select={"driver": "gpu.example.com"})
TAINT_DEVICES = "sully taint device 'gpu.example.com/*/*'"
SITUATIONS = {
    "a toleration expired": of_rule(
        FW,
        web(),
        *its_claim(FOR_A_WHILE),
        *EVENTS,
        contains=("They tolerate example.com/fw:NoExecute for some seconds", "Rule fw"),
        helps=f"{TAINT_DEVICES} example.com/fw:NoSchedule",
    ),
    "NoSchedule is tolerated, too": of_rule(
        FW,
        web(),
        *its_claim(FOR_A_WHILE, NO_SCHEDULE),
        *EVENTS,
        contains=("and NoSchedule taints with that key",),
        helps=f"{TAINT_DEVICES} example.com/fw-no-schedule:NoSchedule",
    ),
    "a toleration without an effect": of_rule(
        FW, web(), *its_claim(ANY_EFFECT), *EVENTS, contains=("names no effect",), helps="NoExecute"
    ),
    "a named claim": of_rule(
        FW,
        web(templates=False),
        *its_claim(templates=False),
        *EVENTS,
        contains=("They use ResourceClaim c, which stays allocated",),
        helps="kubectl scale deployment/web -n team --replicas=0",
    ),
    "the only rule, while no replacement has a device": of_rule(
        FW,
        web(on=""),
        *its_claim(FOR_A_WHILE, holds=False),
        *EVENTS,
        helps="kubectl delete devicetaintrule fw",
    ),
    "recorded": of_rule(
        FW,
        web(on=""),
        *its_claim(FOR_A_WHILE, holds=False),
        rule("other", "NoExecute"),
        *(
            evicted(f"web-7d9-x{number}", after=10 + number, owner="web-7d9")
            for number in range(12)
        ),
        missing=(),
        helps="kubectl delete devicetaintrule fw",
    ),
    "its pods": about(
        "pod",
        "web-7d9-abcde",
        FW,
        web(),
        *its_claim(FOR_A_WHILE),
        *EVENTS,
        state="Evicting",
        cause="EvictionDue",
        contains=(f"12 pods {LOOP}", "'sully explain rule fw' shows what would help."),
        because=("DeviceTaintRule/fw",),
    ),
    "its Pending pods": about(
        "pod",
        "web-7d9-abcde",
        FW,
        web(on=""),
        *its_claim(FOR_A_WHILE, holds=False),
        *EVENTS,
        state="Pending",
        cause="NotScheduledYet",
        contains=(f"12 pods {LOOP}",),
    ),
    "a pod that is gone": about(
        "pod",
        "web-7d9-x3",
        FW,
        web(),
        *its_claim(FOR_A_WHILE),
        *EVENTS,
        state="Evicted",
        cause="EvictedByTaint",
        first="Pod team/web-7d9-x3 of ReplicaSet web-7d9 was evicted",
        contains=("12 pods of ReplicaSet team/web-7d9 were evicted in the last 20s",),
        because=("DeviceTaintRule/fw",),
        helps=None,
    ),
    "another rule": about(
        "rule",
        "other",
        FW,
        rule("other", "NoExecute", key="example.com/o", select={"pool": "n2"}),
        web(),
        *its_claim(FOR_A_WHILE),
        *EVENTS,
        state="Idle",
        cause="NoDevice",
    ),
    "cancelled evictions": about(
        "rule",
        "fw",
        FW,
        web(),
        *its_claim(FOR_A_WHILE),
        *(event(f"web-7d9-x{number}", 20, "Cancelling deletion") for number in range(12)),
        state="Evicting",
        cause="PodsToBeEvicted",
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_loops(situation: Situation) -> None:
    situation.check()
