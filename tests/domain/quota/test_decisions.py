"""Whether quotas have room for a write."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from domain.quota.test_evaluators import NOON, container, pod
from sully.domain.quota.decisions import Charge, Refusal, account, decide, total
from sully.domain.quota.evaluators import Pods
from sully.domain.quota.objects import ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus
from sully.machinery.compat import Compat
from sully.machinery.meta import ObjectMeta

Obj = dict[str, Any]
PODS = Pods(NOON)


def quota(
    name: str = "q", *, hard: Obj, used: Obj | None = None, scopes: Sequence[str] = ()
) -> ResourceQuota:
    counted = ResourceQuotaStatus(hard=hard, used=used) if used is not None else None
    return ResourceQuota(
        metadata=ObjectMeta(name=name),
        spec=ResourceQuotaSpec(hard=hard, scopes=tuple(scopes)),
        status=counted or ResourceQuotaStatus(),
    )


@dataclass(frozen=True)
class Case:
    quotas: tuple[ResourceQuota, ...] = ()
    obj: Obj = field(default_factory=pod)
    old: Obj | None = None
    want: list[Charge] | Refusal = field(default_factory=list)


BIG = pod(container(requests={"cpu": "2", "memory": "1Gi"}, limits={"cpu": "2"}))
CASES = {
    "no quotas": Case(),
    "about something else": Case((quota(hard={"secrets": "1"}, used={"secrets": "1"}),)),
    "room": Case(
        (quota(hard={"pods": "2", "secrets": "1"}, used={"pods": "1", "secrets": "0"}),),
        want=[Charge("q", {"pods": "2", "secrets": "0"})],
    ),
    "no room": Case(
        (quota(hard={"pods": "3"}, used={"pods": "3"}),),
        want=Refusal("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"),
    ),
    "only what is exceeded is reported": Case(
        (
            quota(
                hard={"pods": "5", "requests.cpu": "3", "requests.memory": "1Gi"},
                used={"pods": "1", "requests.cpu": "1500m", "requests.memory": "512Mi"},
            ),
        ),
        BIG,
        want=Refusal(
            "exceeded quota: q, requested: requests.cpu=2,requests.memory=1Gi,"
            " used: requests.cpu=1500m,requests.memory=512Mi,"
            " limited: requests.cpu=3,requests.memory=1Gi"
        ),
    ),
    "the second has no room": Case(
        (
            quota(hard={"pods": "9"}, used={"pods": "1"}),
            quota("r", hard={"count/pods": "1"}, used={"count/pods": "1"}),
        ),
        want=Refusal(
            "exceeded quota: r, requested: count/pods=1, used: count/pods=1, limited: count/pods=1"
        ),
    ),
    "not counted yet": Case(
        (quota(hard={"pods": "3", "cpu": "1"}),),
        BIG,
        want=Refusal("status unknown for quota: q, resources: cpu,pods"),
    ),
    "must specify": Case(
        (quota(hard={"limits.cpu": "3"}, used={"limits.cpu": "0"}),),
        want=Refusal("failed quota: q: must specify limits.cpu for: c"),
    ),
    "out of scope": Case(
        (quota(hard={"pods": "1"}, used={"pods": "1"}, scopes=["Terminating"]),),
    ),
    "in scope": Case(
        (quota(hard={"pods": "2"}, used={"pods": "0"}, scopes=["BestEffort"]),),
        want=[Charge("q", {"pods": "1"})],
    ),
    "over its limit already, and asked for nothing of it": Case(
        (quota(hard={"cpu": "1", "pods": "9"}, used={"cpu": "5", "pods": "1"}),),
        pod(container(requests={"cpu": "0"})),
        want=[Charge("q", {"cpu": "5", "pods": "2"})],
    ),
    "an update that changes nothing": Case(
        (quota(hard={"pods": "1"}, used={"pods": "1"}),), old=pod()
    ),
    "an update that changes the scope": Case(
        (
            quota(hard={"pods": "1"}, used={"pods": "1"}, scopes=["NotTerminating"]),
            quota("t", hard={"pods": "1"}, used={"pods": "0"}, scopes=["Terminating"]),
        ),
        pod(activeDeadlineSeconds=5),
        old=pod(),
        want=[Charge("q", {"pods": "0"}), Charge("t", {"pods": "1"})],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_decide(case: Case) -> None:
    assert decide(case.quotas, PODS, case.obj, case.old, compat=Compat.SULLY) == case.want


def test_as_kubernetes_a_quota_that_was_never_counted_limits_nothing() -> None:
    new = quota(hard={"pods": "0"})

    assert decide([new], PODS, pod(), compat=Compat.KUBERNETES) == []


GONE = {
    "released": (
        quota(hard={"pods": "9", "cpu": "9"}, used={"pods": "3", "cpu": "3500m"}),
        [Charge("q", {"pods": "2", "cpu": "1500m"})],
    ),
    "never below nothing": (
        quota(hard={"pods": "9", "cpu": "9"}, used={"pods": "1", "cpu": "1"}),
        [Charge("q", {"pods": "0", "cpu": "0"})],
    ),
    "nothing left to release": (quota(hard={"pods": "9"}, used={"pods": "0"}), []),
    "never counted": (quota(hard={"pods": "9"}), []),
    "out of scope": (quota(hard={"pods": "9"}, used={"pods": "3"}, scopes=["BestEffort"]), []),
}


@pytest.mark.parametrize(("counted", "want"), GONE.values(), ids=GONE.keys())
def test_what_is_deleted_is_released(counted: ResourceQuota, want: list[Charge]) -> None:
    assert account([counted], PODS, None, BIG) == want


def test_extended_resources_are_recounted_instead() -> None:
    name = "requests.example.com/gpu"
    user = pod(container(requests={"example.com/gpu": "2"}))
    counted = quota(hard={name: "9"}, used={name: "4"})

    assert account([counted], PODS, None, user) == []
    assert account([counted], PODS, user, None) == [Charge("q", {name: "6"})]


def test_a_limit_that_was_lowered_holds_immediately() -> None:
    counted = quota(hard={"pods": "5"}, used={"pods": "3"})
    lowered = replace(counted, spec=ResourceQuotaSpec(hard={"pods": "2"}))

    assert decide([lowered], PODS, pod(), compat=Compat.KUBERNETES) == [Charge("q", {"pods": "4"})]
    assert decide([lowered], PODS, pod(), compat=Compat.SULLY) == Refusal(
        "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=2"
    )


def test_total() -> None:
    counted = quota(hard={"pods": "1", "cpu": "1", "secrets": "1"}, scopes=["NotBestEffort"])

    sums = total(counted, PODS, [BIG, BIG, pod()])

    assert {name: str(amount) for name, amount in sums.items()} == {"pods": "2", "cpu": "4"}
