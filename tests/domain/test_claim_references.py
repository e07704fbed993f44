"""Which claims a pod refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sully.domain.claims.pods import ClaimReference, Pod, claim_references, has_same_claims
from sully.testing import builders


@dataclass(frozen=True)
class Case:
    claims: tuple[dict[str, Any], ...] = ()
    statuses: tuple[dict[str, Any], ...] = ()
    extended: str = ""
    want: tuple[ClaimReference, ...] = ()


NAMED = {"name": "a", "resourceClaimName": "mine"}
TEMPLATE = {"name": "b", "resourceClaimTemplateName": "t"}
CASES = {
    "none": Case(),
    "by name": Case((NAMED,), want=(ClaimReference("a", "mine"),)),
    "a status does not rename it": Case(
        (NAMED,), ({"name": "a", "resourceClaimName": "x"},), want=(ClaimReference("a", "mine"),)
    ),
    "from a template, not created yet": Case(
        (TEMPLATE,), want=(ClaimReference("b", "", generated=True, missing=True, template="t"),)
    ),
    "from a template": Case(
        (TEMPLATE,),
        ({"name": "b", "resourceClaimName": "b-1"},),
        want=(ClaimReference("b", "b-1", generated=True, template="t"),),
    ),
    "from a template, and none is needed": Case(
        (TEMPLATE,), ({"name": "b"},), want=(ClaimReference("b", "", generated=True, template="t"),)
    ),
    "in the order of the pod, extended resources last": Case(
        (TEMPLATE, NAMED),
        ({"name": "b", "resourceClaimName": "b-1"},),
        "more",
        want=(
            ClaimReference("b", "b-1", generated=True, template="t"),
            ClaimReference("a", "mine"),
            ClaimReference("", "more", generated=True),
        ),
    ),
}


def pod(case: Case) -> Pod:
    status: dict[str, Any] = {"resourceClaimStatuses": case.statuses}
    if case.extended:
        status["extendedResourceClaimStatus"] = {"resourceClaimName": case.extended}
    return builders.pod(spec={"resourceClaims": case.claims}, status=status)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_claim_references(case: Case) -> None:
    assert tuple(claim_references(pod(case))) == case.want
    plain = tuple(item for item in case.want if item.entry)
    assert tuple(claim_references(pod(case), extended=False)) == plain


def test_two_states_of_a_pod_refer_to_the_same_claims_or_not() -> None:
    cases = [pod(case) for case in CASES.values()]

    assert all(has_same_claims(one, other) is (one == other) for one in cases for other in cases)
