"""What has to be confirmed before pods are evicted, and how progress is read and shown."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from datetime import timedelta
from io import StringIO
from typing import Any, cast

import pytest
from msgspec.structs import replace

import manifests
from cli.commandlines import parsed
from client.foreign import Foreign, connected
from sully.api.resource.eviction_rate import EvictionRate
from sully.api.resource.types import DeviceTaintRule, DeviceTaintRuleStatus, ResourceClaim
from sully.cli.change.confirm import Question, fits_on, number_to_type
from sully.cli.change.output import confirmed
from sully.cli.change.progress import (
    FollowedEviction,
    PodTracker,
    outcome,
    state_of,
    still_evicting,
    watch,
    with_remaining,
    without_tolerating,
)
from sully.cli.change.progress_bar import UNREACHABLE, BarState, ProgressBar
from sully.cli.change.recorded_counts import RecordedCounts
from sully.cli.change.taint.rules import own_label
from sully.cli.change.taint.writes import with_expiry_from_now
from sully.cli.client.session import Session
from sully.cli.command import Options
from sully.client.discovery.adapting import AdaptingTransport
from sully.client.transport import Key, UnreachableError
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import TOGETHER
from sully.domain.eviction.loops import LoopCause
from sully.domain.planning.report import (
    DeviceChange,
    EvictionLoop,
    ObjectChange,
    Plan,
    PlannedEviction,
    Replacement,
    ReplacementOutcome,
)
from sully.domain.planning.rules.taint_rules import shared_label
from sully.machinery.errors import ServiceUnavailable
from sully.machinery.formats.timestamps import format_time
from sully.machinery.meta import Condition
from sully.testing.builders import DRIVER, claim, device, pod, rule, select, slice_
from sully.testing.clock import NOON, FakeClock
from sully.views.kinds import CLAIMS, CONSUMER_PODS, RULES, SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot


def plan(pods: int, devices: int, known: int) -> Plan:
    eviction = PlannedEviction(
        namespace="a",
        name="p",
        owner="o",
        node="n",
        eviction_time=NOON,
        after_seconds=0,
        devices=(),
        reasons=(),
        without_change=False,
        replacement=Replacement(outcome=ReplacementOutcome.RESCHEDULED),
    )
    device_change = DeviceChange(device="d", node="n")
    return Plan(
        start_time=NOON,
        changes=(),
        evictions=(eviction,) * pods,
        devices=(device_change,) * devices,
        total_devices=known,
    )


LOOP = EvictionLoop(
    namespace="a",
    owner="Deployment/web",
    pods=2,
    cause=LoopCause.TOLERATION_EXPIRES,
    message="",
    remedies=(),
    evictions_per_minute=400,
    after_seconds=0,
    claim="",
    devices=(),
    taints=(),
)
TYPED: dict[str, tuple[Plan, Any]] = {
    "pods evicted again and again": (
        replace(plan(30, 1, 100), eviction_loops=(LOOP, LOOP)),
        (4, "pods to evict again and again"),
    ),
    "little": (plan(1, 1, 100), None),
    "twenty pods": (plan(20, 10, 100), None),
    "more than twenty pods": (plan(21, 1, 100), (21, "pods to evict")),
    "a tenth of all devices": (plan(5, 10, 100), None),
    "more than a tenth": (plan(5, 11, 100), (5, "pods to evict")),
    "more than a tenth, and nobody on them": (plan(0, 11, 100), (11, "devices that change")),
}


@pytest.mark.parametrize(("plan", "want"), TYPED.values(), ids=TYPED)
def test_number_to_type(plan: Plan, want: Any) -> None:
    assert number_to_type(plan) == want


@pytest.mark.parametrize("flag", ["--yes", "--dry-run"])
async def test_what_is_written_at_once_is_not_announced(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    created = ObjectChange("DeviceTaintRule/new", "created")
    same = ObjectChange("DeviceTaintRule/old", "unchanged")
    changes = replace(plan(1, 1, 100), changes=(created, same))
    arguments = ("device", "a", "x:NoExecute", flag)
    session = Session(parsed("taint", *arguments), "taint", FakeClock())

    await confirmed(session, changes, Question("Taint device a"), ask=True)

    lines = capsys.readouterr().out.splitlines()
    announced = ["DeviceTaintRule/new would be created"] if flag == "--dry-run" else []
    assert lines[: len(announced) + 2] == [*announced, "DeviceTaintRule/old unchanged", ""]


def with_status(
    *conditions: tuple[str, str, str], name: str = "r", observed: int = 1
) -> DeviceTaintRule:
    reported = tuple(
        Condition(type=type_, status=status, reason="r", message=text, observed_generation=observed)
        for type_, status, text in conditions
    )
    return replace(rule(name), status=DeviceTaintRuleStatus(conditions=reported))


PENDING = ("EvictionInProgress", "True", "3 pods need to be evicted in 1 namespace.")
DONE = ("EvictionInProgress", "False", "2 pods evicted since starting the controller.")
EVICTED = ("sully.dev/Evicted", "True", "9 pods evicted.")
PAUSED = ("sully.dev/Paused", "True", "lunch")
TWO_RECORDED = {"uid-r": 2}
STATES: dict[str, tuple[list[DeviceTaintRule], RecordedCounts, BarState]] = {
    "no condition yet": ([with_status()], {}, BarState(False, 0, 0, False)),
    "a condition of an older generation": (
        [with_status(PENDING, observed=0)],
        {},
        BarState(False, 0, 0, False),
    ),
    "evicting": (
        [with_status(PENDING, EVICTED)],
        TWO_RECORDED,
        BarState(True, 3, 2, False, counted_twice=2),
    ),
    "paused": ([with_status(PENDING, PAUSED)], {}, BarState(True, 3, 0, True)),
    "over": ([with_status(DONE, EVICTED)], TWO_RECORDED, BarState(True, 0, 2, False)),
    "over, and records may not be read": (
        [with_status(DONE, EVICTED)],
        None,
        BarState(True, 0, 2, False),
    ),
    "two rules": (
        [with_status(PENDING, name="s"), with_status(DONE, EVICTED)],
        TWO_RECORDED,
        BarState(True, 3, 2, False),
    ),
    "all rules were deleted": ([], {}, BarState(True, 0, 0, False, deleted=True)),
}


def test_pods_evicted_before_a_rule_was_changed_are_not_counted() -> None:
    want = BarState(True, 3, 0, False)

    assert state_of([with_status(PENDING, EVICTED)], TWO_RECORDED, before=2) == want
    assert state_of([with_status(PENDING)], {}, before=2) == want


@pytest.mark.parametrize(("rules", "recorded", "want"), STATES.values(), ids=STATES)
def test_state_of(rules: list[DeviceTaintRule], recorded: RecordedCounts, want: BarState) -> None:
    state = state_of(rules, recorded)

    assert state == want
    assert state.over == (want.observed and not want.pending)


class Screen(StringIO):
    """A terminal of 80 columns, or a pipe."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        raise OSError("there is no terminal behind it")


SIGHT = {"a short plan": (10, True), "one line too many": (24, False), "it just fits": (23, True)}


@pytest.mark.parametrize(("lines", "want"), SIGHT.values(), ids=SIGHT)
def test_whether_a_plan_is_visible_with_the_question(lines: int, want: bool) -> None:
    assert fits_on(Screen(terminal=True), lines) == want


MANY = {Key("a", f"pod-{at}"): f"uid-{at}" for at in range(100)}
BARS: dict[str, tuple[BarState, FollowedEviction, bool, str]] = {
    "by the rate": (
        BarState(True, 20, 10, False, rate=EvictionRate(2)),
        FollowedEviction(["r"], EvictionRate(2), NOON),
        True,
        "━━━━━━━━━━╺━━━━━━━━━━━━━━━━━━━ 10/30 pods evicted, 2/s, about 10s left",
    ),
    "by the rate, before the first ten are evicted": (
        BarState(True, 22, 0, False, rate=EvictionRate(1)),
        FollowedEviction(["r"], EvictionRate(1), NOON),
        True,
        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 0/22 pods evicted, 1/s, about 12s left",
    ),
    "by the plan, where pods tolerate the taint": (
        BarState(True, 1, 1, False, rate=EvictionRate(10)),
        FollowedEviction(["r"], EvictionRate(10), NOON + timedelta(minutes=5)),
        True,
        "━━━━━━━━━━━━━━━╺━━━━━━━━━━━━━━ 1/2 pods evicted, 10/s, about 5m left",
    ),
    "by another rate than the planned one": (
        BarState(True, 90, 10, False, rate=EvictionRate(30)),
        FollowedEviction(["r"], EvictionRate(1), NOON + timedelta(seconds=90), MANY),
        True,
        "━━━╺━━━━━━━━━━━━━━━━━━━━━━━━━━ 10/100 pods evicted, 30/s, about 3s left",
    ),
    "by another rate, and by tolerations all the same": (
        BarState(True, 90, 10, False, rate=EvictionRate(30)),
        FollowedEviction(["r"], EvictionRate(1), NOON + timedelta(minutes=5), MANY),
        True,
        "━━━╺━━━━━━━━━━━━━━━━━━━━━━━━━━ 10/100 pods evicted, 30/s, about 5m left",
    ),
    "without a rate": (
        BarState(True, 1, 0, False),
        FollowedEviction(["r"], None),
        True,
        "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 0/1 pods evicted, about 1s left",
    ),
    "paused": (
        BarState(True, 1, 1, True),
        FollowedEviction(["r"], EvictionRate(10)),
        True,
        "━━━━━━━━━━━━━━━╺━━━━━━━━━━━━━━ 1/2 pods evicted, paused",
    ),
    "in a pipe, where a line that counts down would fill it": (
        BarState(True, 1, 1, False, rate=EvictionRate(10)),
        FollowedEviction(["r"], EvictionRate(10), NOON + timedelta(minutes=5)),
        False,
        "1/2 pods evicted, 10/s",
    ),
    "nobody": (BarState(True, 0, 0, False), FollowedEviction(["r"], EvictionRate(10)), True, ""),
    "nothing is reported yet": (
        BarState(False, 3, 0, False),
        FollowedEviction(["r"], EvictionRate(10)),
        True,
        "",
    ),
}


def drawn(shown: str) -> list[str]:
    """Return the lines that were drawn, one after the other, without control sequences."""
    plain = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", shown)
    return [line.rstrip() for line in re.split(r"[\r\n]+", plain) if line.strip()]


@pytest.mark.parametrize(("state", "what", "terminal", "want"), BARS.values(), ids=BARS)
def test_bars(state: BarState, what: FollowedEviction, terminal: bool, want: str) -> None:
    out = Screen(terminal=terminal)
    session = Session(Options(), "taint", FakeClock())
    line = ProgressBar(session, what, out)

    line.show(state)
    once = out.getvalue()
    line.show(state)

    assert drawn(once) == [want] * bool(want)
    assert out.getvalue() == once


def test_a_line_is_printed_above_the_bar_without_control_sequences() -> None:
    out = Screen(terminal=True)
    bar = ProgressBar(
        Session(Options(), "drain", FakeClock()), FollowedEviction(["r"], EvictionRate(2)), out
    )

    bar.show(BarState(True, 20, 10, False))
    bar.line("pod/web[1]\x1b[31m evicted")
    bar.close()

    bar_drawn, line, *rest = drawn(out.getvalue())
    assert line == "pod/web[1]\\x1b[31m evicted"
    assert set(rest) == {bar_drawn}


def test_a_bar_fits_a_terminal_that_became_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Screen(terminal=True)
    line = ProgressBar(
        Session(Options(), "taint", FakeClock()), FollowedEviction(["r"], EvictionRate(2)), out
    )

    line.show(BarState(True, 20, 10, False))
    monkeypatch.setitem(os.environ, "COLUMNS", "60")
    line.show(BarState(True, 19, 11, False))

    lines = drawn(out.getvalue())
    assert [line.partition("pods")[0][-6:] for line in lines] == ["10/30 ", "11/30 "]
    assert [len(line) <= width for line, width in zip(lines, (80, 60), strict=True)] == [True, True]


NARROW = {
    80: "━━━━━━━━━━╺━━━━━━━━━━━━━━━━━━━ 10/30 pods evicted, 2/s, about 10s left",
    60: "━━━━━━╺━━━━━━━━━━━━ 10/30 pods evicted, 2/s, about 10s left",
    40: "10/30 pods evicted, 2/s, about 10s left",
    30: "10/30 pods evicted, 2/s, about",
}


PLANNED_PODS = {"a pod": 1, "three pods": 3}


@pytest.mark.parametrize("planned", PLANNED_PODS.values(), ids=PLANNED_PODS)
def test_a_pod_that_is_recorded_before_the_status_reports_it_counts_once(planned: int) -> None:
    need = "1 pod needs" if planned == 1 else f"{planned} pods need"
    late = with_status(("EvictionInProgress", "True", f"{need} to be evicted in 1 namespace."))
    pods = dict(list(MANY.items())[:planned])
    bar = ProgressBar(
        Session(Options(), "taint", FakeClock()),
        FollowedEviction(["r"], EvictionRate(10), pods=pods),
        Screen(terminal=False),
    )

    texts = [bar.text(state_of([late], {"uid-r": count})) for count in range(planned + 1)]

    assert [text.partition(" ")[0] for text in texts] == [
        f"{count}/{planned}" for count in range(planned + 1)
    ]
    assert texts[-1] == f"{planned}/{planned} pods evicted"


def test_pods_that_have_to_be_evicted_in_addition_to_the_plan_are_counted() -> None:
    text = "2 pods need to be evicted in 1 namespace. 3 pods evicted since starting the controller."
    status = with_status(("EvictionInProgress", "True", text), EVICTED)
    planned = FollowedEviction(["r"], None, pods=dict(list(MANY.items())[:3]))
    bar = ProgressBar(Session(Options(), "taint", FakeClock()), planned, Screen(terminal=False))

    assert bar.text(state_of([status], {"uid-r": 3})) == "3/5 pods evicted"
    # A TaintRecord is newer than the status.
    assert bar.text(state_of([status], {"uid-r": 4})) == "4/5 pods evicted"


@pytest.mark.parametrize("columns", NARROW)
def test_the_bar_gives_way_to_the_text(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", str(columns))
    out = Screen(terminal=True)
    line = ProgressBar(
        Session(Options(), "taint", FakeClock()), FollowedEviction(["r"], EvictionRate(2)), out
    )

    line.show(BarState(True, 20, 10, False, rate=EvictionRate(2)))

    assert drawn(out.getvalue()) == [NARROW[columns]]


TWO = {Key("a", "one"): "1", Key("a", "two"): "2"}
MEASURED = {
    "as in the status": (
        BarState(True, 3, 1, False),
        FollowedEviction(["r"], EvictionRate(1)),
        (3, 1, 0),
    ),
    "pods that were seen to be evicted, whatever was evicted before": (
        BarState(True, 2, 1, False),
        FollowedEviction(["r"], EvictionRate(1), pods=TWO, before=7),
        (2, 1, 0),
    ),
    "all are evicted that are before it ends": (
        BarState(True, 3, 2, False),
        FollowedEviction(["r"], EvictionRate(1), pods=TWO, expires=True),
        (0, 2, 3),
    ),
    "one is still to be evicted before it ends": (
        BarState(True, 4, 1, False),
        FollowedEviction(["r"], EvictionRate(1), pods=TWO, expires=True),
        (4, 1, 0),
    ),
    "it does not end, so that all are evicted some time": (
        BarState(True, 3, 2, False),
        FollowedEviction(["r"], EvictionRate(1), pods=TWO),
        (3, 2, 0),
    ),
    "it ends, and is paused": (
        BarState(True, 3, 2, True),
        FollowedEviction(["r"], EvictionRate(1), pods=TWO, expires=True),
        (3, 2, 0),
    ),
}


@pytest.mark.parametrize(("state", "what", "want"), MEASURED.values(), ids=MEASURED)
def test_measured(state: BarState, what: FollowedEviction, want: tuple[int, int, int]) -> None:
    result = without_tolerating(state, what)

    assert (result.pending, result.evicted, result.tolerating) == want


def listed(uid: str, phase: str = "Running", *, terminating: bool = False) -> dict[str, Any]:
    deletion = {"deletionTimestamp": format_time(NOON)} if terminating else {}
    status = {"phase": phase}
    return manifests.pod(f"pod-{uid}", status=status, namespace="a", uid=uid, **deletion)


OVER, BUSY = BarState(True, 0, 2, False), BarState(True, 1, 1, False)
STRAGGLERS: dict[str, tuple[BarState, list[dict[str, Any]], BarState]] = {
    "all are gone": (OVER, [], OVER),
    "one shuts down": (
        OVER,
        [listed("1", terminating=True)],
        dataclasses.replace(OVER, terminating=1),
    ),
    "one need not be evicted any more": (
        OVER,
        [listed("2")],
        dataclasses.replace(OVER, remaining=1),
    ),
    "one came to its end by itself": (OVER, [listed("1", "Succeeded")], OVER),
    "others are of no concern": (OVER, [listed("3"), listed("4", terminating=True)], OVER),
    "others were evicted instead of one that is still to be evicted": (
        dataclasses.replace(OVER, tolerating=1),
        [listed("1")],
        dataclasses.replace(OVER, pending=1),
    ),
    "it is not over, and nobody asks": (BUSY, [listed("1")], BUSY),
}


@pytest.mark.parametrize(("state", "pods", "want"), STRAGGLERS.values(), ids=STRAGGLERS)
async def test_stragglers(state: BarState, pods: list[dict[str, Any]], want: BarState) -> None:
    answer = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods}
    async with connected(Foreign([answer])) as transport:
        # It answers without discovery.
        session = Session(Options(), "taint", FakeClock(), cast("AdaptingTransport", transport))

        assert (
            await with_remaining(session, FollowedEviction(["r"], EvictionRate(1), pods=TWO), state)
            == want
        )


def test_a_rule_lasts_from_when_it_is_written_and_not_from_the_plan() -> None:
    clock = FakeClock()
    session = Session(Options(lasts=3600.0), "taint", clock)
    body = {"metadata": {"name": "r", "annotations": {"sully.dev/expires-at": "before"}}}

    clock.advance(1800)

    assert with_expiry_from_now(session, body)["metadata"]["annotations"] == {
        "sully.dev/expires-at": format_time(NOON + timedelta(minutes=90))
    }


OUTCOMES = {
    "all evicted": (BarState(True, 0, 2, False), "2 pods evicted."),
    "one takes its time": (
        BarState(True, 0, 2, False, terminating=1),
        "2 pods evicted, 1 still terminating.",
    ),
    "a user weakened the rule": (
        BarState(True, 0, 2, False, remaining=3),
        "2 pods evicted, 3 pods not evicted.",
    ),
    "tolerations outlast the rule": (
        BarState(True, 0, 2, False, tolerating=1),
        "2 pods evicted, 1 pod tolerating the taint until it expires.",
    ),
    "the rule is gone": (
        BarState(True, 0, 0, False, deleted=True),
        "The rule was deleted or has expired.",
    ),
    "the rule is gone too early": (
        BarState(True, 0, 0, False, deleted=True, remaining=1),
        "The rule was deleted or has expired, 1 pod not evicted.",
    ),
}


@pytest.mark.parametrize(("state", "want"), OUTCOMES.values(), ids=OUTCOMES)
def test_outcome(state: BarState, want: str) -> None:
    assert outcome(state) == want


AT_WORK, FINISHED = BarState(True, 1, 2, False, rate=EvictionRate(1)), BarState(True, 0, 3, False)
OUTAGES: dict[str, tuple[list[BarState | Exception], str]] = {
    "a server that comes back": (
        [AT_WORK, UnreachableError("away"), UnreachableError("away"), FINISHED],
        f"2/3 pods evicted, 1/s\n{UNREACHABLE}\n3/3 pods evicted\n3 pods evicted.\n",
    ),
    "one that is not ready yet": (
        [ServiceUnavailable("no"), FINISHED],
        f"{UNREACHABLE}\n3/3 pods evicted\n",
    ),
}


@pytest.mark.parametrize(("answers", "want"), OUTAGES.values(), ids=OUTAGES)
async def test_a_server_may_be_away(answers: list[BarState | Exception], want: str) -> None:
    assert (await watched(answers)).startswith(want)


async def test_a_server_may_not_be_unreachable_indefinitely() -> None:
    with pytest.raises(UnreachableError, match="gone"):
        await watched([UnreachableError("gone")] * 200)


async def watched(answers: list[BarState | Exception]) -> str:
    """Return what a user sees to whom a server answers so."""
    out, clock, left = Screen(terminal=False), FakeClock(), iter(answers)
    session = Session(Options(), "taint", clock)

    async def look() -> BarState:
        result = next(left)
        if isinstance(result, Exception):
            raise result
        return result

    watching = asyncio.ensure_future(
        watch(session, ProgressBar(session, FollowedEviction(["r"], EvictionRate(1)), out), look)
    )
    while not watching.done():
        asleep = asyncio.ensure_future(clock.sleepers())
        await asyncio.wait([watching, asleep], return_when=asyncio.FIRST_COMPLETED)
        asleep.cancel()
        clock.advance(0.5)
    await watching
    return out.getvalue()


def made(name: str, group: str = "") -> dict[str, Any]:
    labels = {TOGETHER: group} if group else {}
    return manifests.rule(name, labels=labels)


LEFT: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "one rule": ([made("hot")], "pause hot\n", "devicetaintrule hot"),
    "the rules of a glob": (
        [made("hot-1f-a", "hot-1f"), made("hot-1f-b", "hot-1f")],
        f"pause -l {TOGETHER}=hot-1f\n",
        f"devicetaintrule -l {TOGETHER}=hot-1f",
    ),
    "rules of several taints": (
        [made("hot-1"), made("cold-2")],
        "pause hot-1 cold-2\n",
        "devicetaintrule hot-1 cold-2",
    ),
    "rules of several taints whose names begin alike": (
        [made("hot-1"), made("hot-2")],
        "pause hot-1 hot-2\n",
        "devicetaintrule hot-1 hot-2",
    ),
    "the rules of globs of several taints": (
        [made("hot-1-a", "hot-1"), made("hot-2-a", "hot-2")],
        "pause hot-1-a hot-2-a\n",
        "devicetaintrule hot-1-a hot-2-a",
    ),
}


@pytest.mark.parametrize(("bodies", "pause", "undo"), LEFT.values(), ids=LEFT)
def test_how_to_stop_what_was_left(bodies: list[dict[str, Any]], pause: str, undo: str) -> None:
    names = [body["metadata"]["name"] for body in bodies]

    text = still_evicting(FollowedEviction(names, None, group=shared_label(bodies)), pausable=True)

    assert f"sully evictions {pause}" in text
    assert text.endswith(f"kubectl delete {undo}")


def test_what_stops_it_names_the_server() -> None:
    """Otherwise a command that is copied changes another cluster."""
    eviction, flags = FollowedEviction(["hot"], None), " --context prod"

    assert still_evicting(eviction, pausable=True, flags=flags) == (
        "The rule hot remains, and evictions continue.\n"
        "  to watch:   sully evictions --watch --context prod\n"
        "  to pause:   sully evictions pause hot --context prod\n"
        "  to resume:  sully evictions resume hot --context prod\n"
        "  to undo:    kubectl delete devicetaintrule hot --context prod"
    )


OWN = {
    "nobody else has it": ((), "hot-1f"),
    "another one has it, too": (("hot-1f-c",), ""),
    "one of them was there": (("hot-1f-a",), "hot-1f"),
}


@pytest.mark.parametrize(("there", "want"), OWN.values(), ids=OWN)
def test_a_label_of_their_own(there: tuple[str, ...], want: str) -> None:
    """Rules of earlier days must not go with those that a user has just made."""
    labels = {TOGETHER: "hot-1f"}
    known = [rule(name, labels=labels) for name in there]
    bodies = [made("hot-1f-a", "hot-1f"), made("hot-1f-b", "hot-1f")]

    assert own_label(Snapshot([Objects(RULES, known)], taken=NOON), bodies) == want


def test_where_no_controller_honors_pauses_none_is_offered() -> None:
    assert still_evicting(FollowedEviction(["hot"], None), pausable=False) == (
        "The rule hot remains, and evictions continue.\n"
        "  to watch:   sully evictions --watch\n"
        "  to stop:    kubectl delete devicetaintrule hot"
    )


# -- from the pods themselves ---------------------------------------------------------------------

ALL = rule("r", select())


def holder(name: str, *, terminating: bool = False, uid: str = "") -> Pod:
    made = pod(name, name)
    end = NOON + timedelta(seconds=30) if terminating else None
    metadata = replace(made.metadata, deletion_timestamp=end, uid=uid or made.metadata.uid)
    return replace(made, metadata=metadata)


def held(name: str, *, by: bool = True) -> ResourceClaim:
    return claim(name, DeviceId(DRIVER, "pool-1", name), pods=(name,) if by else ())


PLANNED = {Key("default", name): holder(name).metadata.uid for name in ("a", "b")}
THERE: dict[str, tuple[list[Pod], list[ResourceClaim], BarState]] = {
    "no pod evicted yet": (
        [holder("a"), holder("b")],
        [held("a"), held("b")],
        BarState(True, 2, 0, False),
    ),
    "one is on its way out": (
        [holder("a", terminating=True), holder("b")],
        [held("a"), held("b")],
        BarState(True, 1, 1, False, 1),
    ),
    "one let go of its device before it was gone": (
        [holder("a", terminating=True), holder("b")],
        [held("a", by=False), held("b")],
        BarState(True, 1, 1, False, 1),
    ),
    "one is gone": ([holder("b")], [held("b")], BarState(True, 1, 1, False)),
    "one has come back under its name": (
        [holder("a", uid="new"), holder("b")],
        [held("b")],
        BarState(True, 1, 1, False),
    ),
    "all are gone": ([], [], BarState(True, 0, 2, False)),
    "one that nobody planned has come": (
        [holder("b"), holder("c")],
        [held("b"), held("c")],
        BarState(True, 2, 1, False),
    ),
}


@pytest.mark.parametrize(("pods", "claims", "want"), THERE.values(), ids=THERE)
def test_tracker(pods: list[Pod], claims: list[ResourceClaim], want: BarState) -> None:
    devices = [device(name) for name in ("a", "b", "c")]
    snapshot = Snapshot(
        [
            Objects(SLICES, [slice_("s", *devices)]),
            Objects(RULES, [ALL]),
            Objects(CLAIMS, claims),
            Objects(CONSUMER_PODS, pods),
        ],
        taken=NOON,
    )
    tracker = PodTracker(snapshot.exposures, PLANNED)

    assert tracker.state([ALL]) == want
    assert tracker.state([ALL, ALL]) == want
