"""How claims come and go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import body, claim_spec
from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.types import ResourceClaim
from sully.domain.claims.lifecycle import (
    FINALIZER,
    POD_CLAIM,
    ClaimToCreate,
    Release,
    claim_of,
    claim_statuses,
    made_claim,
    may_reserve,
    name_prefix,
    needs_claims,
    owning_pod,
    release,
)
from sully.machinery.formats.names import dns_subdomain_problems

SPEC = claim_spec()
TIME = "2030-01-01T00:00:00Z"
GHOST = {"resource": "pods", "name": "ghost", "uid": "g"}
ALLOCATION: dict[str, Any] = {"devices": {"results": []}}


def claim(
    *consumers: dict[str, str],
    allocated: bool = True,
    protected: bool = True,
    terminating: bool = False,
    **metadata: Any,
) -> ResourceClaim:
    if protected:
        metadata["finalizers"] = [FINALIZER]
    if terminating:
        metadata["deletionTimestamp"] = TIME
    allocation = {"allocation": ALLOCATION} if allocated else {}
    status = {"reservedFor": list(consumers), **allocation}
    metadata = {"name": "c", **metadata}
    return msgspec.convert(
        body("ResourceClaim", spec=SPEC, status=status, **metadata), ResourceClaim
    )


def owned(uid: str = "u", **owner: Any) -> list[dict[str, Any]]:
    usual = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    return [usual | owner]


@pytest.mark.parametrize(
    ("pod", "name", "expected"),
    [
        ("tmpl-1", "gpu", "tmpl-1-gpu-"),
        ("p" * 50, "claim", "p" * 50 + "-claim-"),
        ("p" * 51, "claim", "p" * 50 + "-clai"),
        ("p" * 253, "c" * 63, "p" * 45 + "-" + "c" * 11),
        ("p", "c" * 63, "p-" + "c" * 54),
        ("a" * 23 + "." + "b" * 30, "c" * 30, "a" * 23 + "." + "b" * 11 + "-" + "c" * 19),
        # Cut behind the dot, what follows would begin with a dash.
        ("a" * 35 + "." + "b" * 18, "c" * 30, "a" * 35 + "-" + "c" * 19),
        ("a" * 34 + "-" + "b" * 19, "c" * 30, "a" * 34 + "--" + "c" * 19),
    ],
)
def test_the_name_of_a_made_claim_begins_with_pod_and_claim(
    pod: str, name: str, expected: str
) -> None:
    assert name_prefix(pod, name) == expected


LABEL = st.from_regex(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


@given(st.lists(LABEL, min_size=1, max_size=4).map(".".join), LABEL)
def test_whatever_the_names_are_the_made_one_can_be_used(pod: str, name: str) -> None:
    made = name_prefix(pod, name) + "bcdfg"

    assert len(made) <= 63
    assert dns_subdomain_problems(made) == []


def test_a_claim_takes_everything_from_its_template() -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}},
        "spec": SPEC,
    }
    want = ClaimToCreate(namespace="n", pod="p", uid="u", claim="g")

    made = claim_of(want, name="p-g-x", template=template)

    assert made == {
        "metadata": {
            "name": "p-g-x",
            "generateName": "p-g-",
            "namespace": "n",
            "labels": {"l": "1"},
            "annotations": {"a": "2", POD_CLAIM: "g"},
            "ownerReferences": owned("u"),
        },
        "spec": SPEC,
    }
    assert template["metadata"]["annotations"] == {"a": "2"}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({}, "p"),
        ({"controller": False}, None),
        ({"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha1"}, None),
        ({"apiVersion": "other/v1"}, None),
    ],
)
def test_the_pod_that_owns_a_claim(owner: dict[str, Any], expected: str | None) -> None:
    result = owning_pod(claim(ownerReferences=owned(**owner)))

    assert (result.name if result is not None else None) == expected


def test_which_claim_was_made() -> None:
    def made(
        name: str, uid: str = "u", for_: str = "g", terminating: bool = False
    ) -> ResourceClaim:
        annotations = {POD_CLAIM: for_} if for_ else {}
        references = owned(uid)
        return claim(
            name=name, annotations=annotations, ownerReferences=references, terminating=terminating
        )

    others = [made("1", for_="h"), made("2", uid="v"), made("3", for_="")]

    assert made_claim(others, uid="u", name="g") is None
    assert made_claim([*others, made("4", terminating=True)], uid="u", name="g") == made(
        "4", terminating=True
    )
    candidates = [*others, made("6"), made("5"), made("4", terminating=True)]
    assert made_claim(candidates, uid="u", name="g") == made("5")


def test_what_is_recorded_keeps_what_stood_there_and_is_in_order() -> None:
    assert claim_statuses({"z": "p-z-1", "m": None}, {"a": "p-a-1"}) == [
        {"name": "a", "resourceClaimName": "p-a-1"},
        {"name": "m"},
        {"name": "z", "resourceClaimName": "p-z-1"},
    ]


@pytest.mark.parametrize(
    ("finished", "terminating", "bound", "expected"),
    [
        (False, False, False, True),
        (False, False, True, True),
        (False, True, True, True),
        (False, True, False, False),
        (True, False, True, False),
        (True, True, True, False),
    ],
)
def test_who_needs_claims(finished: bool, terminating: bool, bound: bool, expected: bool) -> None:
    assert needs_claims(finished=finished, terminating=terminating, bound=bound) is expected


def many(count: int) -> list[dict[str, str]]:
    return [{"resource": "pods", "name": f"p{index}", "uid": f"u{index}"} for index in range(count)]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (claim(), True),
        (claim(GHOST), True),
        (claim(allocated=False), False),
        (claim(terminating=True), False),
        (claim({"resource": "pods", "name": "p", "uid": "u"}), False),
        (claim(*many(255)), True),
        (claim(*many(256)), False),
    ],
)
def test_which_claims_a_bound_pod_reserves(subject: ResourceClaim, expected: bool) -> None:
    assert may_reserve(subject, uid="u") is expected


@pytest.mark.parametrize(
    ("subject", "left", "expected"),
    [
        (claim(), 0, None),
        (claim(GHOST), 1, None),
        (claim(GHOST), 0, Release((), deallocate=True)),
        (claim(GHOST, protected=False), 0, Release((), deallocate=False)),
        (claim(*many(3)), 1, Release(claim(*many(1)).status.reserved_for, deallocate=False)),
        (claim(terminating=True), 0, Release((), deallocate=True)),
        (claim(terminating=True, allocated=False), 0, None),
        (claim(terminating=True, protected=False), 0, None),
        (claim(GHOST, terminating=True), 1, None),
    ],
)
def test_what_is_given_back(subject: ResourceClaim, left: int, expected: Release | None) -> None:
    assert release(subject, subject.status.reserved_for[:left]) == expected


def test_a_template_reports_nothing_of_allocated_devices() -> None:
    want = ClaimToCreate(namespace="ns", pod="p", uid="u", claim="gpu")
    notes = {ALLOCATED_ATTRIBUTES: "forged", "mine": "kept"}

    made = claim_of(want, name="c", template={"metadata": {"annotations": notes}, "spec": {}})

    assert made["metadata"]["annotations"] == {
        "mine": "kept",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
