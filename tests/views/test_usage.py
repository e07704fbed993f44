"""Who holds what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import DeviceId, PoolId
from sully.testing.builders import DRIVER, GPU, claim, pod
from sully.views.devices.name_index import ANY, Names
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CONSUMER_PODS
from views.feeds import Scene, Step, orders

GPU1 = GPU._replace(device="gpu-1")
OTHER = GPU._replace(pool="pool-2")
EXTENDED = {"extendedResourceClaimStatus": {"resourceClaimName": "claim"}}
GROUP = {"schedulingGroup": {"podGroupName": "team"}}
TEAM = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "team", "uid": "g"}


@dataclass(frozen=True)
class Case:
    pod: Pod
    claim: Any
    want: bool = True


CASES = {
    "a claim by name": Case(pod("pod", "claim"), claim("claim", GPU)),
    "not allocated": Case(pod("pod", "claim"), claim("claim"), False),
    "reserved for another pod": Case(pod("pod", "claim"), claim("claim", GPU, pods=("x",)), False),
    "reserved for a pod of the same name, with another uid": Case(
        pod("pod", "claim", uid="new"), claim("claim", GPU), False
    ),
    "another claim": Case(pod("pod", "other"), claim("claim", GPU), False),
    "a claim in another namespace": Case(
        pod("pod", "claim", namespace="x"), claim("claim", GPU), False
    ),
    "a claim from a template": Case(
        pod("pod", templates={"t": "claim"}), claim("claim", GPU, owner="uid-pod")
    ),
    "a template whose claim is not made yet": Case(
        pod("pod", templates={"t": "claim"}, status={"resourceClaimStatuses": []}),
        claim("claim", GPU, owner="uid-pod"),
        False,
    ),
    "a template that needs no claim": Case(
        pod("pod", templates={"t": None}), claim("claim", GPU, owner="uid-pod"), False
    ),
    "a generated claim that belongs to another pod": Case(
        pod("pod", templates={"t": "claim"}), claim("claim", GPU, owner="uid-x"), False
    ),
    "a generated claim that belongs to nobody": Case(
        pod("pod", templates={"t": "claim"}), claim("claim", GPU), False
    ),
    "an extended resource": Case(pod("pod", status=EXTENDED), claim("claim", GPU, owner="uid-pod")),
    "a claim of a group, named by a member": Case(
        pod(
            "pod",
            "claim",
            spec={"resourceClaims": [{"name": "c", "resourceClaimName": "claim"}]} | GROUP,
        ),
        claim("claim", GPU, pods=(), consumers=(TEAM,)),
    ),
    "a claim of a group, not named by a member": Case(
        pod("pod", spec=GROUP), claim("claim", GPU, pods=(), consumers=(TEAM,)), False
    ),
    "a claim of another group": Case(
        pod("pod", "claim"), claim("claim", GPU, pods=(), consumers=(TEAM,)), False
    ),
}


@pytest.mark.parametrize("pod_first", [True, False], ids=["pod first", "claim first"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_holding(case: Case, pod_first: bool) -> None:
    scene = Scene()
    if pod_first:
        scene.pods.put(case.pod)
    scene.claims.put(case.claim)
    if not pod_first:
        scene.pods.put(case.pod)

    assert bool(list(scene.usage.claims_of(case.pod))) is case.want
    assert bool(list(scene.usage.consumers(case.claim))) is case.want


def test_kubernetes_does_not_look_at_extended_resources() -> None:
    scene = Scene(strict=True)
    scene.claims.put(claim("claim", GPU, owner="uid-pod"))

    assert list(scene.usage.claims_of(pod("pod", status=EXTENDED))) == []


def test_groups_of_pods_can_be_switched_off() -> None:
    scene, case = Scene(), CASES["a claim of a group, named by a member"]
    usage = Usage(pods=scene.pods.informer, claims=scene.claims.informer, pod_groups=False)
    scene.pods.put(case.pod)
    scene.claims.put(case.claim)

    assert list(usage.claims_of(case.pod)) == []


def _put_pods(scene: Scene) -> None:
    scene.pods.put(pod("a", "one", "two"), pod("b", "one"))


def _put_claims(scene: Scene) -> None:
    scene.claims.put(claim("one", GPU, OTHER, pods=("a", "b")), claim("two", GPU1, pods=("a",)))


def _put_free(scene: Scene) -> None:
    scene.claims.put(claim("free"))
    scene.pods.put(pod("idle", "free"))


def test_pods_are_looked_at_in_the_order_of_their_names() -> None:
    """Else the order of evictions, and with a budget the evicted pods, would be random."""
    scene, heard = Scene(), list[Key]()
    names = [f"pod-{number:02}" for number in range(40)]
    scene.claims.put(claim("one", GPU, pods=tuple(names)))
    scene.pods.put(*(pod(name, "one") for name in reversed(names)))
    want = [Key("default", name) for name in names]

    scene.usage.enqueue(heard.append, lambda pods: pods)

    assert heard == want
    assert list(scene.usage.pods_on(GPU.pool_id)) == want


@pytest.mark.parametrize("order", orders(_put_pods, _put_claims, _put_free))
def test_devices_find_their_pods_in_any_order(order: tuple[Step, ...]) -> None:
    scene = Scene()
    for step in order:
        step(scene)
    usage, pool = scene.usage, GPU.pool_id
    a, b = Key("default", "a"), Key("default", "b")

    assert set(usage.pods_on(pool)) == {a, b}
    assert set(usage.pods_on(pool, {"gpu-1"})) == {a}
    assert set(usage.pods_on(pool, {"gpu-9"})) == set()
    assert set(usage.pods_on(PoolId("x", "y"))) == set()
    assert [str(item.device) for item in usage.allocated(ANY)] == [str(GPU), str(GPU1), str(OTHER)]
    assert len(list(usage.allocated(Names(driver=DRIVER, pool="pool-2")))) == 1
    assert len(list(usage.allocated(Names(device="gpu-0")))) == 2
    assert list(usage.allocated(Names(driver="x"))) == []


def test_what_is_given_back_is_held_no_more() -> None:
    scene = Scene()
    _put_pods(scene)
    _put_claims(scene)
    scene.claims.put(claim("two"))
    scene.claims.remove(claim("one", GPU, OTHER))

    assert list(scene.usage.allocated(ANY)) == []
    assert set(scene.usage.pods_on(GPU.pool_id)) == set()


def test_a_pod_that_is_gone_uses_nothing() -> None:
    scene = Scene()
    _put_pods(scene)
    _put_claims(scene)
    scene.pods.remove(pod("a", "one", "two"))

    assert set(scene.usage.pods_on(GPU.pool_id)) == {Key("default", "b")}


def test_a_device_that_two_claims_share_is_held_twice() -> None:
    scene = Scene()
    scene.claims.put(claim("one", GPU), claim("two", GPU))

    assert [item.claim.metadata.name for item in scene.usage.allocated(ANY)] == ["one", "two"]


def test_a_claim_with_two_shares_of_a_device_gives_both_back() -> None:
    scene = Scene()
    scene.claims.put(claim("two", GPU), claim("one", GPU, GPU))
    assert _allocated(scene) == [("one", GPU), ("one", GPU), ("two", GPU)]
    assert list(scene.usage.claims_on(GPU.pool_id)) == [
        Key("default", "one"),
        Key("default", "two"),
    ]

    scene.claims.remove(claim("one", GPU, GPU))
    assert _allocated(scene) == [("two", GPU)]

    scene.claims.put(claim("two", GPU1))
    assert _allocated(scene) == [("two", GPU1)]

    scene.claims.put(claim("two"))
    assert _allocated(scene) == []


def test_what_is_allocated_has_the_newest_state_of_its_claim() -> None:
    scene = Scene()
    scene.claims.put(claim("one", GPU, GPU1), claim("one", GPU, GPU1, pods=("x",)))
    newest = scene.claims.informer.get(Key("default", "one"))

    assert [item.claim is newest for item in scene.usage.allocated(ANY)] == [True, True]


def _allocated(scene: Scene) -> list[tuple[str, DeviceId]]:
    return [(item.claim.metadata.name, item.device) for item in scene.usage.allocated(ANY)]


def test_a_change_of_a_claim_wakes_the_pods_that_name_it() -> None:
    scene = Scene()
    _put_pods(scene)
    woken: list[Key] = []
    scene.usage.enqueue(woken.append, lambda pods: sorted(pods))
    woken.clear()
    _put_claims(scene)

    assert woken == [Key("default", "a"), Key("default", "b"), Key("default", "a")]


def test_a_pod_that_is_created_and_deleted_with_its_claims_is_reported_once() -> None:
    mine, its = pod("pod", templates={"t": "claim"}), claim("claim", GPU, owner="uid-pod")
    other = pod("other", "claim")
    pods, claims = Cache(CONSUMER_PODS), Cache(CLAIMS)
    pods.replace([other])
    usage = Usage(pods=pods, claims=claims)
    heard: list[frozenset[Key]] = []
    usage.on_change(heard.append)

    pods.amend(mine)
    claims.amend(its)
    usage.pod_created(mine, [its])

    assert list(usage.claims_of(mine)) == [its]
    assert list(usage.pods_on(GPU.pool_id)) == [key_of(other), key_of(mine)]

    pods.discard(key_of(mine))
    claims.discard(key_of(its))
    usage.pod_deleted(mine, [its])

    assert list(usage.pools()) == []
    assert [each.metadata.name for each in usage.pods_with(key_of(its))] == ["other"]
    # Who names a claim of another pod loses it too.
    assert heard == [frozenset((key_of(mine),)), frozenset((key_of(mine), key_of(other)))]
