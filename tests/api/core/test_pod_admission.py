"""What the cluster adds to pods, and what it refuses."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from api.core.bodies import Obj, container, pod
from api.core.writing import HERE, World, create, update
from sully.machinery.errors import Forbidden

NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}
OWN = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}

TOLERATIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "none given": ([], [NOT_READY, UNREACHABLE]),
    "one of them given, for every effect": ([OWN], [OWN, UNREACHABLE]),
    "everything tolerated": ([{"operator": "Exists"}], [{"operator": "Exists"}]),
    "another effect only": (
        [{**OWN, "effect": "NoSchedule"}],
        [{**OWN, "effect": "NoSchedule"}, NOT_READY, UNREACHABLE],
    ),
}


@pytest.mark.parametrize(("before", "want"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
def test_tolerations(before: list[Any], want: list[Any]) -> None:
    assert create("pods", pod(tolerations=before)).obj["spec"]["tolerations"] == want


PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Token:
    spec: dict[str, Any] = field(default_factory=dict)
    account: dict[str, Any] = field(default_factory=dict)
    want: bool = True


TOKENS = {
    "nothing is set": Token(),
    "the pod does not want it": Token({"automountServiceAccountToken": False}, want=False),
    "the account does not want it": Token(
        account={"automountServiceAccountToken": False}, want=False
    ),
    "the pod has the last word": Token(
        {"automountServiceAccountToken": True}, {"automountServiceAccountToken": False}
    ),
}


@pytest.mark.parametrize("case", TOKENS.values(), ids=TOKENS.keys())
def test_token_volume(case: Token) -> None:
    account = {"metadata": {"name": "default"}, **case.account}
    world = World(objects={("serviceaccounts", "ns", "default"): account})

    spec = create("pods", pod(**case.spec), world).obj["spec"]

    names = [volume["name"] for volume in spec.get("volumes", [])]
    assert names == (["kube-api-access-abcde"] if case.want else [])
    mounts = spec["containers"][0].get("volumeMounts", [])
    assert [mount["mountPath"] for mount in mounts] == ([PATH] if case.want else [])


def test_own_mount_of_the_token_stays_alone() -> None:
    mine = {"name": "mine", "mountPath": PATH}
    body = pod(container(volumeMounts=[mine]), volumes=[{"name": "mine", "emptyDir": {}}])

    spec = create("pods", body).obj["spec"]

    assert [volume["name"] for volume in spec["volumes"]] == ["mine"]


def test_pull_secrets_come_from_the_account() -> None:
    account = {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "registry"}]}
    world = World(objects={("serviceaccounts", "ns", "default"): account})

    assert create("pods", pod(), world).obj["spec"]["imagePullSecrets"] == [{"name": "registry"}]


HIGH = ("scheduling.k8s.io/priorityclasses", "", "high")
PRIORITIES: dict[str, tuple[str, int, str]] = {
    "no class": ("", 0, "PreemptLowerPriority"),
    "class of the system": ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
    "class of the cluster": ("high", 7, "Never"),
}


@pytest.mark.parametrize(
    ("name", "priority", "preemption"), PRIORITIES.values(), ids=PRIORITIES.keys()
)
def test_priority(name: str, priority: int, preemption: str) -> None:
    world = World(
        objects={
            HIGH: {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"},
        }
    )

    spec = create("pods", pod(priorityClassName=name), world).obj["spec"]

    assert (spec["priority"], spec["preemptionPolicy"]) == (priority, preemption)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "account that does not exist": (
        {"serviceAccountName": "other"},
        'pods "p" is forbidden: error looking up service account ns/other:'
        ' serviceaccount "other" not found',
    ),
    "class that does not exist": (
        {"priorityClassName": "none"},
        'pods "p" is forbidden: no PriorityClass with name none was found',
    ),
    "own priority": (
        {"priority": 5},
        'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod'
        " spec; priority admission controller computed 0 from the given PriorityClass name",
    ),
    "own preemption": (
        {"preemptionPolicy": "Never"},
        'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided'
        " in pod spec; priority admission controller computed PreemptLowerPriority from the given"
        " PriorityClass name",
    ),
    "overhead of no RuntimeClass": (
        {"overhead": {"cpu": "100m"}},
        'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass'
        " defined Overhead",
    ),
}


@pytest.mark.parametrize(("spec", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(spec: dict[str, Any], want: str) -> None:
    with pytest.raises(Forbidden) as refusal:
        create("pods", pod(**spec))

    assert refusal.value.message == want
    assert refusal.value.details == {"name": "p", "kind": "pods"}


def test_what_a_runtime_class_states_is_taken_on_trust() -> None:
    spec: Obj = {"runtimeClassName": "nvidia", "overhead": {"cpu": "100m"}}

    assert create("pods", pod(**spec)).problems == []
    with pytest.raises(Forbidden) as refusal:
        create("pods", pod(**spec), World(strict=True))
    assert refusal.value.message == (
        'pods "p" is forbidden: pod rejected: RuntimeClass "nvidia" not found'
    )


def test_namespace_without_its_account_takes_no_pods() -> None:
    with pytest.raises(Forbidden, match='serviceaccount "default" not found'):
        create("pods", pod(), World(accounts=()))


def test_gates_are_reported_in_a_condition() -> None:
    status = create("pods", pod(schedulingGates=[{"name": "example.com/wait"}])).obj["status"]

    assert status["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-03-01T12:00:00Z",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]


def test_replacing_a_pod_keeps_what_only_the_cluster_sets() -> None:
    old = create("pods", pod(automountServiceAccountToken=False)).obj
    body = pod(automountServiceAccountToken=False, serviceAccountName="default")

    written = update("pods", body, old, HERE)

    assert written.problems == []
    assert written.obj["spec"] == old["spec"]
    assert written.obj["metadata"]["generation"] == 1
