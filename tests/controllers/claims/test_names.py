"""Names that follow from what they are for."""

from __future__ import annotations

import re

from sully.controllers.claims.creator import MAX_NAMES, names_for
from sully.domain.claims.lifecycle import ClaimToCreate


def names(uid: str = "u", claim: str = "g") -> list[str]:
    return list(names_for(ClaimToCreate(namespace="a", pod="p", uid=uid, claim=claim)))


def test_names_look_as_if_the_server_had_made_them_up() -> None:
    assert all(re.fullmatch(r"p-g-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names())


def test_the_same_claim_gets_the_same_name_every_time() -> None:
    # Also from a later version of the program, or it would make what an earlier one made.
    assert names()[0] == "p-g-zkv4v"


def test_other_pods_and_claims_get_other_names() -> None:
    assert len({*names(), *names(uid="v"), *names(claim="h")}) == 3 * MAX_NAMES
