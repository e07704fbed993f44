"""What objects use of quotas."""

from datetime import UTC, datetime
from typing import Any

import pytest

import manifests
from sully.domain.quota.devices import is_claim_of
from sully.domain.quota.evaluators import Claims, Evaluator, ObjectCounts, Pods, evaluator
from sully.domain.quota.objects import ScopeRequirement

Obj = dict[str, Any]
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PODS = Pods(NOON)


def container(name: str = "c", **resources: dict[str, str]) -> Obj:
    return {"name": name, "resources": resources}


def pod(*containers: Obj, status: Obj | None = None, **spec: Any) -> Obj:
    spec = {"containers": list(containers or (container(),)), **spec}
    return manifests.pod("p", spec, status or {}, namespace="ns", uid="1")


def shown(judge: Evaluator, obj: Obj) -> dict[str, str]:
    return {name: str(amount) for name, amount in judge.usage(obj).items()}


ONE = {"count/pods": "1", "pods": "1"}
USAGE: dict[str, tuple[Obj, dict[str, str]]] = {
    "nothing asked": (pod(), ONE),
    "requests and limits": (
        pod(
            container("a", requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "1"}),
            container("b", requests={"cpu": "1"}),
        ),
        ONE
        | {
            "cpu": "1500m",
            "requests.cpu": "1500m",
            "memory": "1Gi",
            "requests.memory": "1Gi",
            "limits.cpu": "1",
        },
    ),
    "an init container that asks for more": (
        pod(
            container("a", requests={"cpu": "1"}),
            initContainers=[container("i", requests={"cpu": "3"}, limits={"memory": "2Gi"})],
        ),
        ONE | {"cpu": "3", "requests.cpu": "3", "limits.memory": "2Gi"},
    ),
    "for the whole pod, with overhead": (
        pod(
            container("a", requests={"cpu": "1"}),
            resources={"requests": {"cpu": "4"}, "limits": {"memory": "1Gi"}},
            overhead={"cpu": "100m", "memory": "1Gi"},
        ),
        ONE
        | {
            "cpu": "4100m",
            "requests.cpu": "4100m",
            "memory": "1Gi",
            "requests.memory": "1Gi",
            "limits.memory": "2Gi",
        },
    ),
    "extended resources and huge pages": (
        pod(
            container(
                requests={
                    "example.com/gpu": "2",
                    "hugepages-2Mi": "4Mi",
                    "deviceclass.resource.kubernetes.io/gpu": "1",
                }
            )
        ),
        ONE
        | {
            "requests.example.com/gpu": "2",
            "hugepages-2Mi": "4Mi",
            "requests.hugepages-2Mi": "4Mi",
            "requests.deviceclass.resource.kubernetes.io/gpu": "1",
        },
    ),
    "ended": (pod(status={"phase": "Succeeded"}), {"count/pods": "1"}),
}


@pytest.mark.parametrize(("obj", "want"), USAGE.values(), ids=USAGE.keys())
def test_pods(obj: Obj, want: dict[str, str]) -> None:
    assert shown(PODS, obj) == want


DELETED = {"11:59:30": True, "11:59:29": False}
"""When the deletion was due, with a grace period of thirty seconds: does it count at noon?"""


@pytest.mark.parametrize(("at", "counts"), DELETED.items())
def test_a_pod_that_does_not_go(at: str, *, counts: bool) -> None:
    obj = pod()
    obj["metadata"] |= {
        "deletionTimestamp": f"2026-03-01T{at}Z",
        "deletionGracePeriodSeconds": 30,
    }

    assert ("pods" in PODS.usage(obj)) == counts


def affinity(**term: Any) -> Obj:
    required = [{"topologyKey": "zone", **term}]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


SCOPES: dict[str, tuple[Obj, str, bool]] = {
    "no deadline": (pod(), "Terminating", False),
    "deadline": (pod(activeDeadlineSeconds=5), "Terminating", True),
    "not terminating": (pod(), "NotTerminating", True),
    "best effort": (pod(), "BestEffort", True),
    "not best effort": (pod(container(requests={"cpu": "1"})), "NotBestEffort", True),
    "no class": (pod(), "PriorityClass", False),
    "a class": (pod(priorityClassName="high"), "PriorityClass", True),
    "own namespace": (pod(affinity=affinity()), "CrossNamespacePodAffinity", False),
    "named namespace": (
        pod(affinity=affinity(namespaces=["x"])),
        "CrossNamespacePodAffinity",
        True,
    ),
    "selected namespaces": (
        pod(affinity=affinity(namespaceSelector={})),
        "CrossNamespacePodAffinity",
        True,
    ),
    "of volumes": (pod(), "VolumeAttributesClass", False),
}


@pytest.mark.parametrize(("obj", "scope", "want"), SCOPES.values(), ids=SCOPES.keys())
def test_scopes(obj: Obj, scope: str, *, want: bool) -> None:
    assert PODS.in_scope(obj, ScopeRequirement(scope_name=scope, operator="Exists")) is want


OPERATORS = {
    ("In", "high"): True,
    ("In", "low"): False,
    ("NotIn", "low"): True,
    ("DoesNotExist", ""): False,
}


@pytest.mark.parametrize(("operator", "want"), OPERATORS.items(), ids=map(str, OPERATORS))
def test_priority_classes(operator: tuple[str, str], *, want: bool) -> None:
    values = (operator[1],) if operator[1] else ()
    requirement = ScopeRequirement(scope_name="PriorityClass", operator=operator[0], values=values)

    assert PODS.in_scope(pod(priorityClassName="high"), requirement) is want


UNSPECIFIED: dict[str, tuple[Obj, set[str], str]] = {
    "only the number matters": (pod(), {"pods", "requests.ephemeral-storage"}, ""),
    "in two containers": (
        pod(container("b"), container("a", limits={"cpu": "1"})),
        {"limits.cpu", "requests.memory"},
        "limits.cpu for: b; requests.memory for: a,b",
    ),
    "an init container": (
        pod(container(requests={"cpu": "1"}), initContainers=[container("i")]),
        {"cpu", "requests.cpu"},
        "cpu for: i; requests.cpu for: i",
    ),
    "set for the whole pod": (pod(resources={"limits": {"cpu": "1"}}), {"limits.memory"}, ""),
}


@pytest.mark.parametrize(("obj", "limited", "want"), UNSPECIFIED.values(), ids=UNSPECIFIED.keys())
def test_what_must_be_specified(obj: Obj, limited: set[str], want: str) -> None:
    assert PODS.unspecified(obj, limited) == want


def claim(*requests: Obj, name: str = "c", **metadata: Any) -> Obj:
    metadata = {"namespace": "ns", "creationTimestamp": "2026-03-01T12:00:00Z", **metadata}
    spec = {"devices": {"requests": list(requests)}}
    return manifests.body("ResourceClaim", name, spec, **metadata)


def exactly(class_name: str, count: int | None = 1) -> Obj:
    some = {"allocationMode": "ExactCount", "count": count}
    mode = {"allocationMode": "All"} if count is None else some
    return manifests.request(class_name, **mode)


def first(*choices: Obj) -> Obj:
    return {"name": "r", "firstAvailable": [choice["exactly"] for choice in choices]}


DEVICES: dict[str, tuple[Obj, dict[str, str]]] = {
    "none": (claim(), {}),
    "some": (claim(exactly("gpu", 2), exactly("gpu"), exactly("nic")), {"gpu": "3", "nic": "1"}),
    "all": (claim(exactly("gpu", None)), {"gpu": "32"}),
    "the most of what may be chosen": (
        claim(first(exactly("gpu", 1), exactly("gpu", 4), exactly("nic", 2)), exactly("gpu")),
        {"gpu": "5", "nic": "2"},
    ),
    "a mode from a newer API": (
        claim({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "Some"}}),
        {"gpu": "0"},
    ),
}


@pytest.mark.parametrize(("obj", "want"), DEVICES.values(), ids=DEVICES.keys())
def test_claims(obj: Obj, want: dict[str, str]) -> None:
    suffix = ".deviceclass.resource.k8s.io/devices"
    usage = shown(Claims(), obj)

    assert usage.pop("count/resourceclaims.resource.k8s.io") == "1"
    assert {n.removesuffix(suffix): n_ for n, n_ in usage.items() if n.endswith(suffix)} == want


def test_devices_count_as_the_resources_they_stand_for() -> None:
    judge = Claims({"gpu": "example.com/gpu", "nic": ""})
    usage = shown(judge, claim(exactly("gpu", 2)))

    assert usage["requests.example.com/gpu"] == "2"
    assert usage["requests.deviceclass.resource.kubernetes.io/gpu"] == "2"
    assert judge.matching(
        {
            "requests.example.com/gpu",
            "requests.deviceclass.resource.kubernetes.io/nic",
            "requests.deviceclass.resource.kubernetes.io/other",
            "requests.example.com/other",
            "requests.cpu",
        }
    ) == {"requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/nic"}


def test_what_a_pod_uses_already_is_not_counted_again() -> None:
    used = PODS.usage(pod(container(requests={"example.com/gpu": "2"})))
    judge = Claims({"gpu": "example.com/gpu"}, lambda _: used)

    usage = shown(judge, claim(exactly("gpu", 3)))

    assert usage["requests.example.com/gpu"] == "1"
    assert usage["gpu.deviceclass.resource.k8s.io/devices"] == "3"


OWN = claim(name="own")
NAMED = {"extendedResourceClaimStatus": {"resourceClaimName": "own"}}
FIRST: dict[str, tuple[Obj, list[Obj], bool]] = {
    "the only one": (pod(), [OWN], True),
    "named by the pod": (pod(status=NAMED), [claim(name="a"), OWN], True),
    "not named by the pod": (
        pod(status={"extendedResourceClaimStatus": {"resourceClaimName": "other"}}),
        [OWN],
        False,
    ),
    "an older one": (
        pod(),
        [claim(name="z", creationTimestamp="2026-03-01T11:00:00Z"), OWN],
        False,
    ),
    "a younger one": (pod(), [claim(name="a", creationTimestamp="2026-03-01T13:00:00Z")], True),
    "as old, and before it by name": (pod(), [claim(name="a")], False),
}


@pytest.mark.parametrize(("owner", "owned", "want"), FIRST.values(), ids=FIRST.keys())
def test_which_claim_stands_for_the_resources_of_a_pod(
    owner: Obj, owned: list[Obj], *, want: bool
) -> None:
    assert is_claim_of(OWN, owner, owned) is want


COUNTED = {
    ("", "secrets"): {"secrets", "count/secrets"},
    ("", "serviceaccounts"): {"count/serviceaccounts"},
    ("apps", "deployments"): {"count/deployments.apps"},
}


@pytest.mark.parametrize(("resource", "want"), COUNTED.items(), ids=map(str, COUNTED))
def test_every_kind_is_counted(resource: tuple[str, str], want: set[str]) -> None:
    judge = evaluator(*resource, NOON, Claims())

    assert isinstance(judge, ObjectCounts)
    assert judge.usage({}).keys() == want
    assert judge.matching({*want, "pods", "count/deployments"}) == want
    assert not judge.in_scope({}, ScopeRequirement(scope_name="BestEffort", operator="Exists"))
