"""Controllers that are killed at random points lose nothing, and do nothing twice.

`make robust` does it with a thousand pods.
"""

import asyncio

import pytest

import manifests
from kills.ledger import Ledger
from kills.rounds import Rounds

PODS = 80
SEED = 20261116


@pytest.mark.slow
def test_no_device_twice_no_pod_lost_every_count_right() -> None:
    figures = asyncio.run(Rounds(PODS, SEED, between=(10, 150)).run())

    assert figures.problems == []
    assert figures.bound == PODS
    assert figures.evicted > PODS / 2
    assert figures.records == figures.evicted
    # Else the controllers were never killed at work.
    assert figures.kills >= 3


def claim(uid: str, *devices: str) -> dict[str, object]:
    results = [{"driver": "d", "pool": "p", "device": device} for device in devices]
    status = {"allocation": {"devices": {"results": results}}}
    return manifests.body("ResourceClaim", uid, status=status, uid=uid)


def pod(node: str = "", *, marked: bool = False, terminating: bool = False) -> dict[str, object]:
    conditions = [{"type": "DisruptionTarget", "status": "True"}] if marked else []
    deletion = {"deletionTimestamp": "now"} if terminating else {}
    return manifests.pod("pod", {"nodeName": node}, {"conditions": conditions}, uid="u", **deletion)


CLAIM_STORIES = {
    "one after the other": (
        [("ADDED", claim("a", "x")), ("MODIFIED", claim("a")), ("MODIFIED", claim("b", "x"))],
        [],
    ),
    "freed by deletion": (
        [("ADDED", claim("a", "x")), ("DELETED", claim("a", "x")), ("ADDED", claim("b", "x"))],
        [],
    ),
    "twice, though briefly": (
        [("ADDED", claim("a", "x")), ("MODIFIED", claim("b", "x")), ("DELETED", claim("a", "x"))],
        ["d/p/x is held by b and by a"],
    ),
}


@pytest.mark.parametrize(("events", "problems"), CLAIM_STORIES.values(), ids=CLAIM_STORIES)
def test_the_ledger_sees_who_holds_what(
    events: list[tuple[str, dict[str, object]]], problems: list[str]
) -> None:
    ledger = Ledger()
    for kind, obj in events:
        ledger.saw_claim(kind, obj)

    assert ledger.problems == problems


LEFT = ("MODIFIED", pod("node-0001", marked=True, terminating=True))
POD_STORIES = {
    "evicted": ([LEFT, ("DELETED", pod("node-0001", marked=True, terminating=True))], []),
    "went without a word": (
        [("MODIFIED", pod("node-0001")), ("DELETED", pod("node-0001"))],
        ["pod was deleted without having been evicted"],
    ),
    "evicted from where no taint is": (
        [("MODIFIED", pod("node-0005", marked=True))],
        ["pod on node-0005 was evicted for no reason"],
    ),
    "moved": (
        [("MODIFIED", pod("node-0001")), ("MODIFIED", pod("node-0002"))],
        ["pod was bound to node-0001 and to node-0002"],
    ),
}


@pytest.mark.parametrize(("events", "problems"), POD_STORIES.values(), ids=POD_STORIES)
def test_the_ledger_sees_how_pods_were_evicted(
    events: list[tuple[str, dict[str, object]]], problems: list[str]
) -> None:
    ledger = Ledger()
    for kind, obj in events:
        ledger.saw_pod(kind, obj)

    assert ledger.problems == problems


def test_the_ledger_compares_the_counts() -> None:
    ledger = Ledger()
    for kind, obj in POD_STORIES["evicted"][0]:
        ledger.saw_pod(kind, obj)
    record = {"spec": {"pod": {"uid": "u"}}}
    condition = {"type": "sully.dev/Evicted", "message": "2 pods evicted."}
    rule = {"metadata": {"name": "node-0001"}, "status": {"conditions": [condition]}}
    ledger.check_counts([record, record], [rule])

    assert ledger.problems == [
        "2 records are about u",
        "rule node-0001 counts 2 pods, 1 were evicted",
    ]
