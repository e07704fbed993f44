"""Who goes with its owner, and what an owner waits for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest

from domain.lifecycles import owned, ref
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.workloads.ownership import (
    KEEP,
    Collect,
    Disown,
    Owned,
    Standing,
    Verdict,
    deletion_finalizers,
    judge,
    shows_ownership,
)
from sully.machinery.meta import OwnerReference

SOLID, AWAITING, ABSENT = Standing.SOLID, Standing.AWAITING, Standing.ABSENT
ONE, TWO = ref("one"), ref("two")
FREE = owned()
AWAITED = owned(terminating=True, finalizers=("foregroundDeletion",))


@dataclass(frozen=True)
class Case:
    owners: dict[OwnerReference, Standing]
    finalizers: tuple[str, ...] = ()
    dependents: tuple[Owned, ...] = ()
    want: Verdict = KEEP


CASES = {
    "no owner": Case({}),
    "an owner that stays": Case({ONE: SOLID}),
    "an owner that is gone": Case({ONE: ABSENT}, want=Collect("Background")),
    "one of two is gone": Case({ONE: ABSENT, TWO: SOLID}, want=Disown(("one",))),
    "one of two waits": Case({ONE: SOLID, TWO: AWAITING}, want=Disown(("two",))),
    "both are gone": Case({ONE: ABSENT, TWO: ABSENT}, want=Collect("Background")),
    "an owner waits": Case({ONE: AWAITING}, want=Collect("Background")),
    "an owner waits, and there are dependents": Case(
        {ONE: AWAITING}, dependents=(FREE,), want=Collect("Foreground")
    ),
    "owners in a circle": Case(
        {ONE: AWAITING}, dependents=(FREE, AWAITED), want=Collect("Foreground", unblock=True)
    ),
    "gone, with dependents": Case({ONE: ABSENT}, dependents=(FREE,), want=Collect("Background")),
    "it wants to orphan": Case({ONE: ABSENT}, finalizers=("orphan",), want=Collect("Orphan")),
    "it wants to wait": Case(
        {ONE: ABSENT}, finalizers=("x", "foregroundDeletion"), want=Collect("Foreground")
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_judge(case: Case) -> None:
    for order in permutations(case.owners.items()):
        obj = owned(*dict(order), finalizers=case.finalizers)

        assert judge(obj, dict(order), case.dependents) == case.want


FINALIZERS: dict[str, tuple[list[str], dict[str, Any], list[str]]] = {
    "nothing": ([], {}, []),
    "in the background": ([], {"propagationPolicy": "Background"}, []),
    "in the foreground": ([], {"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
    "orphans": ([], {"propagationPolicy": "Orphan"}, ["orphan"]),
    "orphans, as it was reported once": ([], {"orphanDependents": True}, ["orphan"]),
    "no orphans, as it was reported once": (["orphan"], {"orphanDependents": False}, []),
    "others stay": (["x/y"], {"propagationPolicy": "Orphan"}, ["x/y", "orphan"]),
    "what is there counts": (["orphan", "x/y"], {}, ["orphan", "x/y"]),
    "what is reported counts more": (
        ["orphan", "x/y"],
        {"propagationPolicy": "Foreground"},
        ["x/y", "foregroundDeletion"],
    ),
    "what is there can be taken back": (
        ["foregroundDeletion"],
        {"propagationPolicy": "Background"},
        [],
    ),
    "what is reported again changes nothing": (
        ["foregroundDeletion", "x/y"],
        {"propagationPolicy": "Foreground"},
        ["foregroundDeletion", "x/y"],
    ),
}


@pytest.mark.parametrize(("there", "options", "want"), FINALIZERS.values(), ids=FINALIZERS.keys())
def test_what_an_owner_waits_for(
    there: list[str], options: dict[str, Any], want: list[str]
) -> None:
    assert deletion_finalizers(there, options) == want


TYPES: dict[type, bool] = {
    Owned: True,
    Pod: True,
    Node: False,
    dict: False,
}
"""Whether objects of a type show their owners and finalizers."""


@pytest.mark.parametrize(("type_", "want"), TYPES.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_types_that_show_ownership(type_: type, *, want: bool) -> None:
    assert shows_ownership(type_) == want
