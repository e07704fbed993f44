"""One device from the fault to the taint and back; several devices within limits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations

import pytest
from msgspec.structs import replace

from domain.devicepolicies.histories import History, name
from sully.domain.devicepolicies.settings import (
    CRITICAL,
    DRY_RUN,
    MAJOR,
    MINOR,
    REQUIRE_APPROVAL,
    Flaps,
    Limit,
    PolicySettings,
    Step,
    StormLimit,
)

A, B, C = name(0), name(1), name(2)
SECONDS = timedelta(seconds=1)
STEPS = (Step("None"), Step("NoSchedule", 120 * SECONDS), Step("NoExecute", 1800 * SECONDS))
NOW_CLOSED = (Step("NoSchedule"),)


def settings(*steps: Step, **fields: object) -> PolicySettings:
    return PolicySettings(steps=steps or STEPS, **fields)  # type: ignore[arg-type]  # by name


Act = Callable[[History], object] | float
"""Something that happens, or seconds that pass."""


def fail(history: History) -> None:
    history.fail(A)


def recover(history: History) -> None:
    history.recover(A)


def clear(history: History) -> None:
    history.clear(A)


def approve(history: History) -> None:
    history.observe(A, approved=True)


def unknown(history: History) -> None:
    history.observe(A, faults=(), known=False)


def swap(history: History) -> None:
    history.observe(A, identity="b")


def vanish(history: History) -> None:
    del history.seen[A]


def fail_as(severity: int) -> Act:
    return lambda history: history.fail(A, severity, f"severity-{severity}")


FLAPS = Flaps(3, 3600 * SECONDS)
CLEAR = {"clear_after": 600 * SECONDS}
SEVERE = (
    Step("None"),
    Step("NoSchedule", 60 * SECONDS, MAJOR),
    Step("NoExecute", 0 * SECONDS, CRITICAL),
)
CASES: dict[str, tuple[PolicySettings, list[Act], str]] = {
    "first step": (settings(), [fail, 0], "Tainted/None"),
    "second step, a second early": (settings(), [fail, 119], "Tainted/None"),
    "second step": (settings(), [fail, 120], "Tainted/NoSchedule"),
    "third step, a second early": (settings(), [fail, 1799], "Tainted/NoSchedule"),
    "third step": (settings(), [fail, 1800], "Tainted/NoExecute"),
    "held": (settings(hold_for=30 * SECONDS), [fail, 29], "Pending/"),
    "held long enough": (settings(hold_for=30 * SECONDS), [fail, 30], "Tainted/None"),
    "steps follow the hold": (settings(hold_for=30 * SECONDS), [fail, 149], "Tainted/None"),
    "ended while held": (settings(hold_for=30 * SECONDS), [fail, 29, recover, 1], ""),
    "again while held: from the start": (
        settings(hold_for=30 * SECONDS),
        [fail, 29, recover, 1, fail, 29],
        "Pending/",
    ),
    "quiet clears immediately": (settings(), [fail, 120, recover, 0], ""),
    "quiet, too short": (settings(**CLEAR), [fail, 120, recover, 599], "Recovering/NoSchedule"),
    "quiet, long enough": (settings(**CLEAR), [fail, 120, recover, 600], ""),
    "no further step while quiet": (
        settings(**CLEAR),
        [fail, 1700, recover, 599],
        "Recovering/NoSchedule",
    ),
    "recovery counts, not the last fault": (
        settings(**CLEAR),
        [fail, 120, recover, 599, fail, 1, recover, 599],
        "Recovering/NoSchedule",
    ),
    "unknown clears nothing": (settings(), [fail, 120, unknown, 9999], "Unknown/NoSchedule"),
    "unknown starts nothing": (settings(), [fail, 119, unknown, 9999], "Unknown/None"),
    "vanished keeps the taint": (settings(), [fail, 120, vanish, 9999], "Unknown/NoSchedule"),
    "vanished while held is forgotten": (
        settings(hold_for=30 * SECONDS),
        [fail, 10, vanish, 1],
        "",
    ),
    "proof": (settings(needs_proof=True), [fail, 120, recover, 9999], "AwaitingProof/NoSchedule"),
    "proven": (settings(needs_proof=True), [fail, 120, recover, 60, clear, 0], ""),
    "proven before it recovered": (
        settings(needs_proof=True),
        [fail, 120, clear, 1, recover, 0],
        "AwaitingProof/NoSchedule",
    ),
    "proven before it failed again": (
        settings(needs_proof=True, **CLEAR),
        [fail, 120, recover, 60, clear, 60, fail, 1, recover, 601],
        "AwaitingProof/NoSchedule",
    ),
    "proven still waits": (
        settings(needs_proof=True, **CLEAR),
        [fail, 120, recover, 60, clear, 1],
        "Recovering/NoSchedule",
    ),
    "flapping": (
        settings(*NOW_CLOSED, flaps=FLAPS),
        [fail, 1, recover, 1, fail, 1, recover, 1, fail, 1, recover, 9999],
        "Flapping/NoSchedule",
    ),
    "not flapping: too rare": (
        settings(*NOW_CLOSED, flaps=FLAPS),
        [fail, 1, recover, 1800, fail, 1, recover, 1800, fail, 1, recover, 1],
        "Healthy/",
    ),
    "flapping, cleared": (
        settings(*NOW_CLOSED, flaps=FLAPS),
        [fail, 1, recover, 1, fail, 1, recover, 1, fail, 1, recover, 9, clear, 0],
        "",
    ),
    "faults that end while held do not count as flaps": (
        settings(*NOW_CLOSED, flaps=FLAPS, hold_for=30 * SECONDS),
        [fail, 1, recover, 1, fail, 1, recover, 1, fail, 1, recover, 1, fail, 30, recover, 0],
        "Healthy/",
    ),
    "mild: no second step": (settings(*SEVERE), [fail_as(MINOR), 9999], "Tainted/None"),
    "major": (settings(*SEVERE), [fail_as(MAJOR), 9999], "Tainted/NoSchedule"),
    "critical": (settings(*SEVERE), [fail_as(CRITICAL), 0], "Tainted/NoExecute"),
    "a mild fault does not clear a severe one": (
        settings(*SEVERE),
        [fail_as(CRITICAL), 1, fail_as(MINOR), 9999],
        "Tainted/NoExecute",
    ),
    "steps count from when the fault became severe": (
        settings(*SEVERE),
        [fail_as(MINOR), 9999, fail_as(MAJOR), 59],
        "Tainted/None",
    ),
    "approval": (
        settings(*NOW_CLOSED, mode=REQUIRE_APPROVAL),
        [fail, 9999],
        "AwaitingApproval/None",
    ),
    "approved": (
        settings(*NOW_CLOSED, mode=REQUIRE_APPROVAL),
        [fail, 1, approve, 0],
        "Tainted/NoSchedule",
    ),
    "not approved, recovered": (
        settings(*NOW_CLOSED, mode=REQUIRE_APPROVAL),
        [fail, 1, recover, 0],
        "",
    ),
    "a dry run does the same": (settings(mode=DRY_RUN), [fail, 1800], "Tainted/NoExecute"),
    "other hardware": (settings(), [fail, 1800, recover, swap, 0], ""),
    "other hardware that is faulty, too": (settings(), [fail, 1800, swap, 1], "Tainted/None"),
    "other hardware needs no proof": (
        settings(needs_proof=True),
        [fail, 1800, recover, swap, 0],
        "",
    ),
}


def run(history: History, acts: list[Act]) -> None:
    for act in acts:
        if callable(act):
            act(history)
        else:
            history.wait(act)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_device(case: tuple[PolicySettings, list[Act], str]) -> None:
    policy, acts, want = case
    history = History(policy)

    run(history, acts)

    assert history.phase(A) == want


def test_the_taint_that_ends_is_reported() -> None:
    history = History(settings(needs_proof=True))
    run(history, [fail, 120, recover, 60, clear, 0])

    assert [(device, notice.reason) for device, notice in history.notices] == [(A, "TaintCleared")]
    assert "declared healthy" in history.notices[0][1].message


def test_replaced_hardware_is_reported() -> None:
    history = History(settings())
    run(history, [fail, 120, recover, swap, 0])

    (notice,) = history.notices
    assert notice[1].message == "The hardware was replaced: a is now b"


def test_the_next_action_is_announced() -> None:
    history = History(settings(clear_after=600 * SECONDS))
    run(history, [fail, 0])
    assert history.last is not None
    assert history.last.next_action_time == history.now + 120 * SECONDS
    run(history, [120, recover, 0])
    assert history.last.next_action_time == history.now + 600 * SECONDS


def test_a_clock_that_was_set_back_makes_no_step_early() -> None:
    history = History(settings())
    run(history, [fail, 60])
    history.now -= timedelta(days=1)
    run(history, [119])
    assert history.phase(A) == "Tainted/None"
    run(history, [1])
    assert history.phase(A) == "Tainted/NoSchedule"


def test_other_steps_take_effect() -> None:
    history = History(settings())
    run(history, [fail, 1800])
    history.settings = settings(Step("None"), Step("NoSchedule", 10 * SECONDS))
    run(history, [1])
    assert history.phase(A) == "Tainted/NoSchedule"


FLEET_OF_ONE = settings(*NOW_CLOSED, limits=(Limit("Fleet", 1),))


@pytest.mark.parametrize("order", list(permutations([A, B, C])))
def test_a_limit_holds_in_every_order(order: tuple[str, ...]) -> None:
    history = History(FLEET_OF_ONE, devices=3)
    for device in order:
        history.fail(device)
        history.decide(reversed(list(history.seen)))
        history.now += SECONDS

    assert history.unavailable() == [order[0]]
    assert {history.phase(device) for device in order[1:]} == {"HeldBack/"}
    message = history.states[order[1]].message
    assert message == "NoSchedule waits: 1 of 1 devices of the policy unavailable"


def test_a_device_that_is_given_back_lets_the_next_one_in() -> None:
    history = History(FLEET_OF_ONE, devices=3)
    history.fail(A)
    history.wait(1)
    history.fail(B)
    history.wait(1)
    history.recover(A)
    history.wait(1)

    assert history.unavailable() == [B]


def test_severe_faults_come_first() -> None:
    history = History(FLEET_OF_ONE, devices=3)
    history.fail(A, MINOR)
    history.fail(C, CRITICAL)
    history.wait(0)

    assert history.unavailable() == [C]


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        (Limit("Fleet", 0), 0),
        (Limit("Fleet", "50%"), 3),
        (Limit("Fleet", "1%"), 1),
        (Limit("Pool", 1), 3),
        (Limit("Pool", "100%"), 6),
    ],
)
def test_counts_and_percentages(limit: Limit, want: int) -> None:
    history = History(settings(*NOW_CLOSED, limits=(limit,)), devices=6)
    for device in list(history.seen):
        history.fail(device)
    history.wait(0)

    assert len(history.unavailable()) == want


def test_a_stronger_step_needs_no_place() -> None:
    history = History(settings(limits=(Limit("Fleet", 1),)), devices=2)
    history.fail(A)
    history.wait(1800)

    assert history.phase(A) == "Tainted/NoExecute"


STORMY = settings(storm=StormLimit(2, 60 * SECONDS))


def test_a_storm_stops_further_steps_until_it_is_resumed() -> None:
    history = History(STORMY, devices=3)
    history.fail(A)
    history.wait(130)
    history.fail(B)
    history.fail(C)
    history.wait(9999)

    assert history.storm_since is not None
    assert [history.phase(device) for device in (A, B, C)] == [
        "HeldBack/NoSchedule",
        "HeldBack/",
        "HeldBack/",
    ]
    history.resumed_at = history.now
    history.wait(0)
    assert history.storm_since is None
    assert [history.phase(device) for device in (A, B, C)] == ["Tainted/NoExecute"] * 3


def test_devices_recover_in_a_storm() -> None:
    history = History(STORMY, devices=3)
    history.fail(A)
    history.wait(130)
    history.fail(B)
    history.fail(C)
    history.wait(1)
    history.recover(A)
    history.wait(1)

    assert history.phase(A) == ""
    assert history.storm_since is not None


def test_what_is_declared_by_a_clock_ahead_counts_when_it_is_time() -> None:
    history = History(replace(STORMY, needs_proof=True), devices=3)
    history.fail(A)
    history.fail(B)
    history.wait(130)
    history.resumed_at = history.now + 60 * SECONDS
    history.wait(59)
    assert history.unavailable() == []
    history.wait(2)
    assert history.unavailable() == [A, B]
    history.recover(A)
    history.observe(A, cleared_at=history.now + 60 * SECONDS)
    history.wait(59)
    assert history.unavailable() == [A, B]
    history.wait(2)
    assert history.unavailable() == [B]


def test_faults_one_after_the_other_are_not_a_storm() -> None:
    history = History(STORMY, devices=3)
    for device in (A, B, C):
        history.fail(device)
        history.wait(60)

    assert history.storm_since is None
