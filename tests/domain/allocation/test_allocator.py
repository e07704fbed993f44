"""Which devices requests get: counts, alternatives, taints, constraints, admin access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from domain.allocation.fixtures import (
    attempt,
    exactly,
    first_of,
    names,
    offer,
    pool_slice,
    results,
    sub,
    unallocated,
)
from sully.api.resource.types import Device, DeviceConstraint, ResourceClaim
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import Allocated, UnallocatableReason
from sully.testing.builders import KEY, device, equal, exists, rule, select, taint, text

NO_SCHEDULE = taint("NoSchedule")
NO_EXECUTE = taint("NoExecute", value="ecc")
BOTH = (NO_SCHEDULE, NO_EXECUTE)
TOLERATES_SCHEDULE = exists(effect="NoSchedule")
TOLERATES_EXECUTE = equal("ecc")
MODEL = "gpu.example.com/model"
A100 = 'device.attributes["gpu.example.com"].model == "a100"'
NOTHING = UnallocatableReason.CANNOT_ALLOCATE


@dataclass(frozen=True)
class Case:
    devices: Sequence[Device]
    claims: Sequence[ResourceClaim]
    want: list[list[str]] | str
    options: dict[str, Any] = field(default_factory=dict)


def one(*requests: dict[str, Any], **more: Any) -> tuple[ResourceClaim]:
    return (unallocated(*requests, **more),)


def match(*requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests=requests, match_attribute=MODEL)


def distinct(*requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests=requests, distinct_attribute=MODEL)


def models(*names_of_models: str) -> list[Device]:
    """Return devices `gpu-0`, `gpu-1` and so on of these models; an empty one has none."""
    return [
        device(f"gpu-{index}", **({"model": text(model)} if model else {}))
        for index, model in enumerate(names_of_models)
    ]


TAINTED = [device("a", NO_SCHEDULE), device("b", NO_EXECUTE)]
FOUR = models("a100", "h100", "a100", "h100")

TAINT_CASES = {
    "neither effect is tolerated": Case(TAINTED, one(), NOTHING),
    "NoExecute is tolerated": Case(TAINTED, one(exactly(tolerations=[TOLERATES_EXECUTE])), [["b"]]),
    "NoSchedule is tolerated": Case(
        TAINTED, one(exactly(tolerations=[TOLERATES_SCHEDULE])), [["a"]]
    ),
    "one device with both taints": Case([device("a", *BOTH)], one(), NOTHING),
    "one of two taints is tolerated": Case(
        [device("a", *BOTH)], one(exactly(tolerations=[TOLERATES_EXECUTE])), NOTHING
    ),
    "both taints are tolerated": Case(
        [device("a", *BOTH)],
        one(exactly(tolerations=[TOLERATES_SCHEDULE, TOLERATES_EXECUTE])),
        [["a"]],
    ),
    "effect None does not matter": Case([device("a", taint("None"))], one(), [["a"]]),
    "an effect that is unknown does not matter": Case(
        [device("a", taint("Later"))], one(), [["a"]]
    ),
    "a toleration that has run out still allows allocation": Case(
        [device("a", taint("NoExecute"))],
        one(exactly(tolerations=[exists(seconds=0)])),
        [["a"]],
    ),
    "gate off": Case([device("a", *BOTH)], one(), [["a"]], {"taints": False}),
    "gate off, list": Case(
        [device("a", *BOTH)], one(first_of("r", sub("s"))), [["a"]], {"taints": False}
    ),
    "gate off, admin access": Case(
        [device("a", *BOTH)], one(exactly(adminAccess=True)), [["a"]], {"taints": False}
    ),
    "gate off, All": Case(
        [device("a", *BOTH)], one(exactly(allocationMode="All")), [["a"]], {"taints": False}
    ),
    "list, the only device is tainted": Case(
        [device("a", NO_SCHEDULE)], one(first_of("r", sub("s"), sub("t"))), NOTHING
    ),
    "admin access does not pass a taint": Case(
        [device("a", NO_SCHEDULE)], one(exactly(adminAccess=True)), NOTHING
    ),
    "All does not leave out a tainted device": Case(
        [device("a"), device("b", NO_SCHEDULE)], one(exactly(allocationMode="All")), NOTHING
    ),
    "All with its taint tolerated": Case(
        [device("a"), device("b", NO_SCHEDULE)],
        one(exactly(allocationMode="All", tolerations=[TOLERATES_SCHEDULE])),
        [["a", "b"]],
    ),
    "an untainted device before a tolerated one, in order": Case(
        [device("a", NO_SCHEDULE), device("b")],
        one(exactly(tolerations=[TOLERATES_SCHEDULE])),
        [["a"]],
    ),
}

CHOICE_CASES = {
    "the first device": Case(FOUR, one(), [["gpu-0"]]),
    "the first that a selector chooses": Case(
        models("h100", "a100"), one(exactly(expressions=[A100])), [["gpu-1"]]
    ),
    "several, in order": Case(FOUR, one(exactly(count=3)), [["gpu-0", "gpu-1", "gpu-2"]]),
    "more than there are": Case(FOUR, one(exactly(count=5)), NOTHING),
    "two requests": Case(FOUR, one(exactly("r"), exactly("s")), [["gpu-0", "gpu-1"]]),
    "two claims": Case(
        FOUR, (unallocated(name="x"), unallocated(name="y")), [["gpu-0"], ["gpu-1"]]
    ),
    "the first request leaves what only the second can use": Case(
        models("a100", "h100"),
        one(exactly("r"), exactly("s", expressions=[A100])),
        [["gpu-1", "gpu-0"]],
    ),
    "the first claim leaves what only the second can use": Case(
        models("a100", "h100"),
        (unallocated(name="x"), unallocated(exactly(expressions=[A100]), name="y")),
        [["gpu-1"], ["gpu-0"]],
    ),
    "All": Case(FOUR, one(exactly(allocationMode="All", expressions=[A100])), [["gpu-0", "gpu-2"]]),
    "All of none": Case(
        models("h100"), one(exactly(allocationMode="All", expressions=[A100])), NOTHING
    ),
    "All, after another request took one": Case(
        models("a100"), one(exactly("r"), exactly("s", allocationMode="All")), NOTHING
    ),
    "All needs what another request would have taken first": Case(
        models("a100", "h100"),
        one(exactly("r"), exactly("s", allocationMode="All", expressions=[A100])),
        [["gpu-1", "gpu-0"]],
    ),
    "the first alternative": Case(
        FOUR, one(first_of("r", sub("s", count=2), sub("t"))), [["gpu-0", "gpu-1"]]
    ),
    "the second alternative, when the first is too much": Case(
        FOUR, one(first_of("r", sub("s", count=5), sub("t", count=2))), [["gpu-0", "gpu-1"]]
    ),
    "All of none, then another alternative": Case(
        models("h100"),
        one(first_of("r", sub("s", allocationMode="All", expressions=[A100]), sub("t"))),
        [["gpu-0"]],
    ),
    "an earlier request changes its alternative for a later one": Case(
        models("a100", "h100"),
        one(first_of("r", sub("s", count=2), sub("t")), exactly("u")),
        [["gpu-0", "gpu-1"]],
    ),
    "no alternative": Case(FOUR, one(first_of("r", sub("s", count=5), sub("t", count=6))), NOTHING),
    "count not yet defaulted": Case(FOUR, one(exactly(count=0)), [["gpu-0"]]),
}

CONSTRAINT_CASES = {
    "two of one model": Case(
        models("h100", "a100", "a100"),
        one(exactly(count=2), constraints=[match()]),
        [["gpu-1", "gpu-2"]],
    ),
    "two requests of one model": Case(
        models("h100", "a100", "a100"),
        one(exactly("r"), exactly("s"), constraints=[match("r", "s")]),
        [["gpu-1", "gpu-2"]],
    ),
    "a request that the constraint does not name": Case(
        models("h100", "a100", "a100"),
        one(exactly("r"), exactly("s"), constraints=[match("s")]),
        [["gpu-0", "gpu-1"]],
    ),
    "no two of one model": Case(
        models("h100", "a100"), one(exactly(count=2), constraints=[match()]), NOTHING
    ),
    "two of different models": Case(
        models("a100", "a100", "h100"),
        one(exactly(count=2), constraints=[distinct()]),
        [["gpu-0", "gpu-2"]],
    ),
    "a device that is given back is forgotten": Case(
        models("a100", "h100"),
        one(exactly("r"), exactly("s", expressions=[A100]), constraints=[distinct()]),
        [["gpu-1", "gpu-0"]],
    ),
    "no two different models": Case(
        models("a100", "a100"), one(exactly(count=2), constraints=[distinct()]), NOTHING
    ),
    "a device without the attribute never matches": Case(
        models("", "a100"), one(constraints=[match()]), [["gpu-1"]]
    ),
    "a device without the attribute is never distinct": Case(
        models("", "a100"), one(constraints=[distinct()]), [["gpu-1"]]
    ),
    "a constraint names one alternative": Case(
        models("h100", "a100", "a100"),
        one(first_of("r", sub("s", count=2), sub("t")), constraints=[match("r/s")]),
        [["gpu-1", "gpu-2"]],
    ),
    "a constraint names the other alternative": Case(
        models("h100", "a100", "a100"),
        one(first_of("r", sub("s", count=2), sub("t")), constraints=[match("r/t")]),
        [["gpu-0", "gpu-1"]],
    ),
    "constraints of one claim do not bind another": Case(
        models("h100", "a100"),
        (
            unallocated(name="x", constraints=[match()]),
            unallocated(name="y", constraints=[match()]),
        ),
        [["gpu-0"], ["gpu-1"]],
    ),
    "match and distinct together": Case(
        [
            device("a", model=text("a100"), slot=text("1")),
            device("b", model=text("a100"), slot=text("1")),
            device("c", model=text("a100"), slot=text("2")),
        ],
        one(
            exactly(count=2),
            constraints=[match(), DeviceConstraint(distinct_attribute="gpu.example.com/slot")],
        ),
        [["a", "c"]],
    ),
}


@pytest.mark.parametrize("case", TAINT_CASES.values(), ids=TAINT_CASES.keys())
def test_taints(case: Case) -> None:
    got = attempt([pool_slice(*case.devices)], *case.claims, **case.options)

    assert names(got) == case.want


@pytest.mark.parametrize("case", CHOICE_CASES.values(), ids=CHOICE_CASES.keys())
def test_choice(case: Case) -> None:
    got = attempt([pool_slice(*case.devices)], *case.claims, **case.options)

    assert names(got) == case.want


@pytest.mark.parametrize("case", CONSTRAINT_CASES.values(), ids=CONSTRAINT_CASES.keys())
def test_constraints(case: Case) -> None:
    got = attempt([pool_slice(*case.devices)], *case.claims, **case.options)

    assert names(got) == case.want


def test_tolerations_are_copied_in_order_with_the_name_of_the_alternative() -> None:
    tolerated = sub("second", tolerations=[TOLERATES_SCHEDULE, TOLERATES_EXECUTE])
    got = attempt(
        [pool_slice(device("a", *BOTH))], unallocated(first_of("r", sub("first"), tolerated))
    )

    assert list(results(got)) == [("r/second", "a", (TOLERATES_SCHEDULE, TOLERATES_EXECUTE))]


def test_an_earlier_alternative_is_worth_more() -> None:
    claim = unallocated(first_of("r", sub("s", count=2), sub("t")), exactly("u"))
    rich = attempt([pool_slice(*FOUR)], claim)
    poor = attempt([pool_slice(*FOUR[:2])], claim)

    assert isinstance(rich, Allocated)
    assert isinstance(poor, Allocated)
    assert (rich.preference, poor.preference) == (8, 7)


def test_a_rule_keeps_devices_from_requests() -> None:
    mark = rule("r", select(device="a"), taint("NoSchedule"))
    result = offer([pool_slice(device("a"), device("b"))], rules=[mark])

    assert names(attempt(result, unallocated())) == [["b"]]


def held(*devices: str) -> Ledger:
    """Return a ledger in which these devices of the first pool are taken."""
    ledger = Ledger()
    for name_ in devices:
        taken = attempt([pool_slice(device(name_))], unallocated())
        assert isinstance(taken, Allocated)
        ledger.take(taken.allocations[0])
    return ledger


SLICE = pool_slice(*FOUR)
ADMIN = exactly(adminAccess=True)
USE_CASES = {
    "a device in use is not given again": ((unallocated(),), [["gpu-1"]]),
    "admin access may have it": ((unallocated(ADMIN),), [["gpu-0"]]),
    "admin access has it once per claim": (
        (unallocated(exactly(adminAccess=True, count=2)),),
        [["gpu-0", "gpu-1"]],
    ),
    "two claims with admin access have the same": (
        (unallocated(ADMIN, name="x"), unallocated(ADMIN, name="y")),
        [["gpu-0"], ["gpu-0"]],
    ),
    "what admin access took first is not given in the same attempt": (
        (unallocated(exactly("r", adminAccess=True, count=2), exactly("s")),),
        [["gpu-0", "gpu-1", "gpu-2"]],
    ),
    "All minds a device in use": ((unallocated(exactly(allocationMode="All")),), NOTHING),
    "All with admin access does not": (
        (unallocated(exactly(allocationMode="All", adminAccess=True)),),
        [["gpu-0", "gpu-1", "gpu-2", "gpu-3"]],
    ),
}


@pytest.mark.parametrize(("claims", "want"), USE_CASES.values(), ids=USE_CASES.keys())
def test_devices_in_use(claims: tuple[ResourceClaim, ...], want: list[list[str]] | str) -> None:
    assert names(attempt([SLICE], *claims, use=held("gpu-0"))) == want


def test_admin_access_takes_nothing() -> None:
    ledger = Ledger()
    seen = attempt([SLICE], unallocated(ADMIN), use=ledger)
    assert isinstance(seen, Allocated)
    ledger.take(seen.allocations[0])

    assert seen.allocations[0].devices.results[0].admin_access is True
    assert names(attempt([SLICE], unallocated(), use=ledger)) == [["gpu-0"]]


def test_the_key_of_a_taint_is_compared_whole() -> None:
    claim = unallocated(exactly(tolerations=[exists(key=KEY.split("/")[1], effect="")]))

    assert names(attempt([pool_slice(device("a", NO_SCHEDULE))], claim)) == NOTHING
