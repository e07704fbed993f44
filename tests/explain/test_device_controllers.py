"""What policies and maintenances do with a device: what they wait for, and what helps."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from explain.worlds import Obj, ask, at, claim, class_, device, node, pod, rule, slice_, taint
from manifests import DRIVER
from sully.domain.drain.rules import CORDON, DRAIN, OPERATION
from sully.domain.drain.rules import KEY as UNSCHEDULABLE

DEVICE = f"{DRIVER}/n1/gpu-0"
EXACT: Obj = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}
FLEET = (node(), class_(), slice_(device("gpu-0"), device("gpu-1")))
OF_POLICY = {"sully.dev/policy-name": "faulty"}
OF_MAINTENANCE = {"sully.dev/maintenance-name": "firmware"}


def policy(proof: str = "", **state: Any) -> Obj:
    job = {"job": {"namespace": "t", "deviceClassName": "c", "template": {}}}
    proofs = {"type": proof, **(job if proof == "Job" else {})} if proof else None
    spec = {"selector": {"driver": DRIVER}, **({"proof": proofs} if proofs else {})}
    status = {"observedGeneration": 1, "devices": [{"device": DEVICE, **state}]}
    return manifests.body("DeviceTaintPolicy", "faulty", spec, status, generation=1)


def maintenance(**unit: Any) -> Obj:
    spec = {"selector": {"driver": DRIVER}, "start": at(0)}
    status = {"units": [{"name": DEVICE, "devices": [DEVICE], **unit}]}
    return manifests.body("DeviceMaintenance", "firmware", spec, status, generation=1)


WAITING = {
    "its Job runs": (
        policy("Job", phase="AwaitingProof", message="Job t/faulty-1 is running"),
        "Policy faulty (AwaitingProof): Job t/faulty-1 is running.",
        "policy faulty removes the taint when the fault is over and its Job has succeeded",
    ),
    "its Job failed": (
        policy(
            "Job",
            phase="AwaitingProof",
            message="Job t/faulty-1 failed: exit code 1 (attempt 1 of 3); it is retried",
            nextActionTime=at(60),
        ),
        "Job t/faulty-1 failed: exit code 1 (attempt 1 of 3); it is retried; next change",
        "its Job has succeeded",
    ),
    "people have to decide": (
        policy("Manual", phase="AwaitingProof", message="needs 'sully policies clear'"),
        "Policy faulty (AwaitingProof): needs 'sully policies clear'.",
        f"run: sully policies clear faulty {DEVICE}",
    ),
    "it is flapping": (
        policy("Job", phase="Flapping", message="failed 3 times", flapping=True),
        "Policy faulty (Flapping): failed 3 times.",
        f"run: sully policies clear faulty {DEVICE}",
    ),
    "the fault lasts": (
        policy(phase="Tainted", message="driver taint xid"),
        "Policy faulty (Tainted): driver taint xid.",
        "policy faulty removes the taint when the fault is over",
    ),
}


@pytest.mark.parametrize(("result", "text", "helps"), WAITING.values(), ids=WAITING.keys())
def test_a_rule_of_a_policy(result: Obj, text: str, helps: str) -> None:
    got = ask("device", DEVICE, *FLEET, result, rule("r", select=EXACT, annotations=OF_POLICY))

    assert text in "\n".join(got.summary)
    assert helps in "\n".join(got.remedies)
    assert "delete rule" not in "\n".join(got.remedies)


def test_a_policy_that_cannot_be_read() -> None:
    tainting = rule("r", select=EXACT, annotations=OF_POLICY)
    got = ask("device", DEVICE, *FLEET, tainting, missing=("DeviceTaintPolicy",))

    assert f"sully policies clear faulty {DEVICE}" in "\n".join(got.remedies)


def test_a_rule_of_a_maintenance() -> None:
    unit = {"phase": "AwaitingApproval", "message": "drained: work on it may begin"}
    tainting = rule("r", select=EXACT, annotations=OF_MAINTENANCE)
    got = ask("device", DEVICE, *FLEET, maintenance(**unit), tainting)

    text, remedies = "\n".join(got.summary), "\n".join(got.remedies)
    assert "Maintenance firmware (AwaitingApproval): drained: work on it may begin." in text
    assert "sully maintenance cancel firmware" in remedies
    assert "delete rule" not in remedies


def test_a_rule_that_outlived_its_policy() -> None:
    tainting = rule("r", select=EXACT, annotations=OF_POLICY)
    got = ask("device", DEVICE, *FLEET, tainting)

    assert "delete rule r" in "\n".join(got.remedies)


def cordon(name: str, operation: str, select: Obj) -> Obj:
    taints = taint(key=UNSCHEDULABLE)
    labels = {OPERATION: operation}
    return manifests.rule(
        name, selector=select, taint=taints, creationTimestamp=at(0), labels=labels
    )


CORDONS = {
    "of one device": cordon("c", CORDON, EXACT),
    "of a drain of all devices": cordon("d", DRAIN, {}),
}


@pytest.mark.parametrize("tainting", CORDONS.values(), ids=CORDONS)
def test_a_rule_of_a_cordon(tainting: Obj) -> None:
    got = ask("device", DEVICE, *FLEET, tainting)

    assert f"To remove the taint: sully uncordon device {DEVICE}" in got.remedies


def test_several_cordons_need_one_command() -> None:
    remedies = ask("device", DEVICE, *FLEET, *CORDONS.values()).remedies

    assert "\n".join(remedies).count("sully uncordon") == 1


USED = (
    claim("c", holds=("n1/gpu-0",), pods=("q",), tolerations=[]),
    pod("q", "c", on="n1"),
)
PAUSE = {"sully.dev/paused": "true"}
STOPS: dict[str, tuple[tuple[Obj, ...], str, str]] = {
    "of a policy": (
        (rule("r", "NoExecute", select=EXACT, annotations=OF_POLICY),),
        "It is not evicted if policy faulty is set to DryRun or deleted, and then rule r is"
        " deleted, in time; pausing the rule postpones the eviction.",
        "To stop: sully evictions pause r, or set policy faulty to DryRun or delete it, and then"
        " delete the rule, which the policy would create again; evicted pods are not restored.",
    ),
    "of a maintenance": (
        (rule("r", "NoExecute", select=EXACT, annotations=OF_MAINTENANCE),),
        "It is not evicted if maintenance firmware is cancelled (sully maintenance cancel firmware)"
        " in time; pausing the rule postpones the eviction.",
        "To stop: sully evictions pause r, or sully maintenance cancel firmware; evicted pods are"
        " not restored.",
    ),
    "of a user": (
        (rule("r", "NoExecute", select=EXACT),),
        "It is not evicted if rule r is deleted in time; pausing the rule postpones the eviction.",
        "To stop: sully evictions pause r, or delete the rule; evicted pods are not restored.",
    ),
    "of several": (
        (
            rule("r", "NoExecute", select=EXACT, annotations=OF_POLICY),
            rule("s", "NoExecute", select=EXACT),
        ),
        "It is not evicted if policy faulty is set to DryRun or deleted, and then rule r is"
        " deleted, and rule s is deleted in time; pausing them postpones the eviction.",
        "set policy faulty to DryRun",
    ),
}


@pytest.mark.parametrize(("rules", "for_pod", "for_rule"), STOPS.values(), ids=STOPS)
def test_what_stops_an_eviction(rules: tuple[Obj, ...], for_pod: str, for_rule: str) -> None:
    assert for_pod in ask("pod", "q", *FLEET, *USED, *rules).remedies
    assert for_rule in "\n".join(ask("rule", "r", *FLEET, *USED, *rules).remedies)


PAUSES = {
    "of a policy": (OF_POLICY, "policy faulty is set to DryRun or deleted, and then rule r is"),
    "of a maintenance": (OF_MAINTENANCE, "maintenance firmware is cancelled"),
    "of a user": ({}, "and is not evicted if rule r is deleted before."),
}


@pytest.mark.parametrize(("creator", "text"), PAUSES.values(), ids=PAUSES)
def test_what_ends_a_paused_eviction(creator: Obj, text: str) -> None:
    paused = rule("r", "NoExecute", select=EXACT, annotations=creator | PAUSE)

    assert text in "\n".join(ask("pod", "q", *FLEET, *USED, paused).remedies)


def test_a_suppressed_taint() -> None:
    suppresses = '[{"key":"example.com/fw","effect":"NoSchedule"}]'
    annotations = {
        **OF_POLICY,
        "sully.dev/suppresses": suppresses,
        "sully.dev/expires-at": at(3600),
    }
    fleet = (node(), class_(), slice_(device("gpu-0", taint())))
    suppressing = rule("s", "None", select=EXACT, annotations=annotations)
    got = ask("device", DEVICE, *fleet, suppressing)

    assert got.state == "Free"
    text = "\n".join(got.summary)
    assert "example.com/fw:None with the effect NoSchedule, which policy faulty suppresses" in text


PROOFS: dict[str, tuple[Obj, str, str, str]] = {
    "a Job runs": (
        policy("Job", phase="AwaitingProof", message="Job t/faulty-1 is running"),
        "ProofNeeded",
        "Job t/faulty-1 is running",
        "Wait for the Job",
    ),
    "people prove": (
        policy("Manual", phase="AwaitingProof", message="needs 'sully policies clear'"),
        "ProofNeeded",
        "waits for proof that 1 recovered device is healthy",
        "Declare a device healthy with: sully policies clear faulty DEVICE",
    ),
}


@pytest.mark.parametrize(("result", "cause", "text", "helps"), PROOFS.values(), ids=PROOFS.keys())
def test_a_policy_that_waits_for_proof(result: Obj, cause: str, text: str, helps: str) -> None:
    result["status"] |= {"selected": 1, "unavailable": 1, "phases": {"AwaitingProof": 1}}
    result["spec"]["mode"] = "Enforce"
    got = ask("policy", "faulty", result)

    assert got.cause == cause
    assert text in "\n".join(got.summary)
    assert helps in "\n".join(got.remedies)


def test_a_policy_that_cannot_evaluate_its_sources() -> None:
    result = policy("Job")
    problem = {
        "type": "sully.dev/SourceProblem",
        "status": "True",
        "reason": "EvaluationFailed",
        "message": "Cannot be evaluated for 2 devices, for instance a/b/c: source x: no such key",
    }
    result["status"] |= {"selected": 2, "devices": [], "conditions": [problem]}
    result["spec"]["mode"] = "Enforce"
    got = ask("policy", "faulty", result)

    assert (got.state, got.cause) == ("Degraded", "NotEvaluated")
    text = "\n".join(got.summary)
    assert "is for 2 devices and found no fault, but it cannot evaluate all of them" in text
    assert "source x: no such key" in text


def test_a_policy_with_a_flapping_device() -> None:
    result = policy("", phase="Flapping", message="failed 3 times: needs 'sully policies clear'")
    result["status"] |= {"selected": 1, "unavailable": 1, "phases": {"Flapping": 1}}
    result["spec"]["mode"] = "Enforce"
    got = ask("policy", "faulty", result)

    assert got.cause == "DevicesFlap"
    assert "keeps the taint of 1 device that failed too often" in "\n".join(got.summary)
    assert "sully policies clear faulty DEVICE" in "\n".join(got.remedies)


def test_a_proof_that_failed() -> None:
    result = policy("Job", phase="AwaitingProof", message="it is retried")
    failed = {
        "type": "sully.dev/ProofFailed",
        "status": "True",
        "reason": "JobFailed",
        "message": "1 devices failed, for instance a/b/c: Job t/x failed: exit code 1",
    }
    result["status"] |= {"selected": 1, "phases": {"AwaitingProof": 1}, "conditions": [failed]}
    result["spec"]["mode"] = "Enforce"
    got = ask("policy", "faulty", result)

    assert got.cause == "ProofFailed"
    assert "Job t/x failed: exit code 1" in got.summary[0]


def test_a_policy_that_cannot_suppress() -> None:
    result = policy()
    cannot = {
        "type": "sully.dev/Suppressed",
        "status": "False",
        "reason": "NotSupported",
        "message": "kube-scheduler honors taints of drivers.",
    }
    result["status"] |= {"selected": 1, "conditions": [cannot]}
    result["spec"]["mode"] = "Enforce"
    got = ask("policy", "faulty", result)

    assert "kube-scheduler honors taints of drivers." in "\n".join(got.summary)
