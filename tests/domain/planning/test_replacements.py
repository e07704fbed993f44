"""What replaces a pod that was evicted."""

from __future__ import annotations

from typing import Any

import pytest

from sully.api.resource.types import (
    DeviceClaim,
    DeviceRequest,
    ResourceClaimSpec,
)
from sully.domain.claims.reservations import is_for_pod
from sully.domain.planning.replacements import (
    is_replaced,
    is_replaced_after_deletion,
    replacement_pod,
    slow_start_order,
)
from sully.domain.scheduling.objects import Pod
from sully.testing.builders import pod_as
from sully.testing.clock import NOON

SPEC = ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="r"),)))


def pod(owner: str = "ReplicaSet", name: str = "p", node: str = "n", **spec: Any) -> Pod:
    versions = {"Job": "batch/v1", "Node": "v1"}
    version = versions.get(owner, "apps/v1")
    reference = {"apiVersion": version, "kind": owner, "name": "o", "uid": "u", "controller": True}
    claims = [
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "shared", "resourceClaimName": "c"},
    ]
    return pod_as(
        Pod,
        name,
        namespace="a",
        node=node,
        metadata={
            "ownerReferences": [reference] if owner else [],
            "deletionTimestamp": "2030-01-01T12:00:30Z",
        },
        spec={"priority": 7, "resourceClaims": claims, **spec},
        status={"phase": "Running"},
    )


OWNERS = {
    "ReplicaSet": (True, False),
    "Job": (True, False),
    "StatefulSet": (True, True),
    "DaemonSet": (True, True),
    "Node": (False, False),
    "": (False, False),
}


@pytest.mark.parametrize(("owner", "want"), OWNERS.items(), ids=OWNERS)
def test_owners(owner: str, want: tuple[bool, bool]) -> None:
    assert (is_replaced(pod(owner)), is_replaced_after_deletion(pod(owner))) == want


def test_it_asks_the_same_and_has_nothing_yet() -> None:
    made = replacement_pod(pod(), NOON, spec_of=lambda *_: SPEC)

    fresh = made.pod
    assert (fresh.spec.node_name, fresh.spec.priority, fresh.status.phase) == ("", 7, "")
    assert fresh.spec.resource_claims == pod().spec.resource_claims
    assert fresh.metadata.deletion_timestamp is None
    assert fresh.metadata.creation_timestamp == NOON
    assert fresh.metadata.uid != "uid-p"
    assert fresh.needs_scheduling


def test_claims_are_made_from_templates_only() -> None:
    asked: list[tuple[str, str]] = []

    def spec_of(entry: str, template: str) -> ResourceClaimSpec:
        asked.append((entry, template))
        return SPEC

    made = replacement_pod(pod(), NOON, spec_of=spec_of)

    (claim,) = made.claims
    assert asked == [("made", "t")]
    assert claim.spec == SPEC
    assert is_for_pod(claim, uid=made.pod.metadata.uid)
    (status,) = made.pod.status.resource_claim_statuses
    assert (status.name, status.resource_claim_name) == ("made", claim.metadata.name)


def test_a_template_that_is_gone_is_named() -> None:
    made = replacement_pod(pod(), NOON, spec_of=lambda *_: None)

    assert (made.missing_template, made.claims) == ("t", ())


def test_a_stateful_set_keeps_the_name() -> None:
    assert (
        replacement_pod(pod("StatefulSet"), NOON, spec_of=lambda *_: SPEC).pod.metadata.name == "p"
    )
    assert replacement_pod(pod(), NOON, spec_of=lambda *_: SPEC).pod.metadata.name != "p"


@pytest.mark.parametrize(
    ("gone", "want"),
    [
        ("", ""),
        ("a1 a2 a3", "a1 a2 a3"),
        ("a1 a2 b1", "a1 b1 a2"),
        ("a1 a2 a3 a4 b1 b2 b3 b4", "a1 b1 a2 a3 b2 b3 a4 b4"),
        ("b1 a1 b2", "b1 a1 b2"),
    ],
)
def test_owners_work_at_the_same_time_each_in_batches_that_double(gone: str, want: str) -> None:
    assert slow_start_order(gone.split(), lambda item: item[0]) == want.split()


def token(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": f"kube-api-access-{name}"}]}


DISK = {"volumes": [{"name": "d", "iscsi": {"iqn": "i"}}]}
SPREAD = {"topologySpreadConstraints": [{"topologyKey": "zone"}]}
PORT = {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}
SPECS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "equal": ({}, {}, True),
    "with a token each": (token("1"), token("2"), True),
    "different": ({}, {"priority": 8}, False),
    "other volumes may decide": (DISK, DISK, False),
    "other pods may decide": (SPREAD, SPREAD, False),
    "ports may decide": (PORT, PORT, False),
}


@pytest.mark.parametrize(("one", "two", "want"), SPECS.values(), ids=SPECS)
def test_equal_pods_share_their_spec(one: dict[str, Any], two: dict[str, Any], want: bool) -> None:
    first, second = pod(name="p1", node="n1", **one), pod(name="p2", node="n2", **two)

    made = [replacement_pod(item, NOON, spec_of=lambda *_: SPEC).pod for item in (first, second)]

    assert (made[0].spec is made[1].spec) == want
    assert made[1].spec.priority == second.spec.priority
    assert (first.spec.node_name, second.spec.node_name) == ("n1", "n2")
