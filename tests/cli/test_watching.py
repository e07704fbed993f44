"""What a watch computes again, and what it prints while the server is unreachable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cli.commandlines import parsed
from client.foreign import Authority
from sully.cli.client.session import Session
from sully.cli.client.watching import (
    REST_SECONDS,
    PendingChanges,
    ReportedOutages,
    rest_after,
)
from sully.cli.inspect.devices.watch import views_of
from sully.cli.inspect.evictions.command import kinds_for
from sully.cli.inspect.evictions.watch import changes_of
from sully.client.discovery.adapting import AdaptingTransport
from sully.client.informers.cache import Cache
from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.credentials import AccessError, Credential
from sully.client.transport import UnreachableError
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.devices.pools import PoolId
from sully.machinery.errors import Forbidden, Unauthorized
from sully.testing.builders import (
    DRIVER,
    GPU,
    claim,
    class_,
    device,
    meta,
    node,
    pod,
    rule,
    select,
    slice_,
    taint,
)
from sully.testing.clock import NOON, FakeClock
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, PATCHES, RULES, SLICES
from sully.views.snapshot.kinds import NODES
from sully.views.watching import Caches

KINDS = (SLICES, CLASSES, RULES, PATCHES, CONSUMER_PODS, CLAIMS, NODES)
ONE, TWO = PoolId(DRIVER, "pool-1"), PoolId(DRIVER, "pool-2")
RULE = rule("r", select(pool="pool-1"))
LOST = claim("lost", GPU._replace(pool="pool-3", device="gone"))
END = {"sully.dev/expires-at": "2030-01-01T13:00:00Z"}


def session(*arguments: str, clock: FakeClock | None = None, command: str = "devices") -> Session:
    return Session(
        parsed(command, *arguments), command, clock or FakeClock(), server="https://server"
    )


def world() -> Caches:
    caches = Caches()
    for kind in KINDS:
        copy: Cache[Any] = Cache(kind)
        caches.put(copy)
    caches.of(SLICES).replace(
        [
            slice_("1", device("gpu-0"), device("gpu-1"), pool="pool-1"),
            slice_("2", device("gpu-0"), pool="pool-2"),
        ]
    )
    caches.of(CLASSES).replace([class_("all", "true")])
    caches.of(RULES).replace([RULE])
    caches.of(CLAIMS).replace([claim("c", GPU), LOST])
    caches.of(CONSUMER_PODS).replace([pod("pod", "c")])
    return caches


def _status(caches: Caches) -> None:
    """Change what changes with every evicted pod."""
    later = msgspec.structs.replace(RULE.metadata, resource_version="2")
    caches.of(RULES).replace([msgspec.structs.replace(RULE, metadata=later)])


def _end(caches: Caches) -> None:
    noted = meta("r", version="2", generation=1, annotations=END)
    caches.of(RULES).replace([msgspec.structs.replace(RULE, metadata=noted)])


def _rules(*more: Any) -> Callable[[Caches], None]:
    return lambda caches: caches.of(RULES).replace([RULE, *more])


CHANGES = {
    "the status of a rule": (_status, set()),
    "the end of a rule": (_end, {ONE}),
    "a rule that is new": (_rules(rule("n", select(pool="pool-2"))), {TWO}),
    "a rule for a device of which there are many": (
        _rules(rule("n", select(device="gpu-1"))),
        {ONE},
    ),
    "a rule that hits what nobody publishes any more": (
        _rules(rule("n", select(pool="pool-3"))),
        {PoolId(DRIVER, "pool-3")},
    ),
    "a rule that is gone": (lambda caches: caches.of(RULES).replace([]), {ONE}),
    "a driver that marks a device": (
        lambda caches: caches.of(SLICES).replace(
            [
                slice_("1", device("gpu-0"), device("gpu-1"), pool="pool-1"),
                slice_("2", device("gpu-0", taint()), pool="pool-2", version="2"),
            ]
        ),
        {TWO},
    ),
    "a pod that is gone": (lambda caches: caches.of(CONSUMER_PODS).replace([]), {ONE}),
    "a node that is cordoned": (
        lambda caches: caches.of(NODES).replace([node("node-1", spec={"unschedulable": True})]),
        {ONE, TWO},
    ),
    "a claim that is free": (lambda caches: caches.of(CLAIMS).replace([LOST]), {ONE}),
}


@pytest.mark.parametrize(("change", "want"), CHANGES.values(), ids=CHANGES)
async def test_what_is_requeued(change: Callable[[Caches], None], want: set[PoolId]) -> None:
    caches = world()
    asked = session()
    changes, _ = views_of(asked, caches, ControlPlane.SULLY)

    change(caches)

    assert await taken(changes, asked, caches) == want


async def taken(changes: PendingChanges, asked: Session, caches: Caches) -> set[Any]:
    """Return what is new, which may be nothing."""
    assert isinstance(asked.clock, FakeClock)
    changes.add("the end")
    taking = asyncio.create_task(changes.wait(asked, caches))
    await asked.clock.sleepers()
    asked.clock.advance(REST_SECONDS)
    return set(await taking) - {"the end"}


async def test_a_class_that_was_asked_for_and_changes_is_looked_at_everywhere() -> None:
    caches = world()
    asked = session("--class", "all")
    changes, choice = views_of(asked, caches, ControlPlane.SULLY)
    caches.of(CLASSES).replace(
        [msgspec.structs.replace(class_("all", "false"), metadata=meta("all", version="2"))]
    )

    assert await taken(changes, asked, caches) == {ONE, TWO}
    assert not list(choice.all(NOON))


async def test_evictions_are_requeued_whatever_they_are_made_of() -> None:
    asked = session("-n", "team", command="evictions")
    for kind in kinds_for(asked):
        caches = Caches()
        for item in kinds_for(asked):
            caches.put(Cache(item))
        changes = changes_of(asked, caches)
        caches.of(kind).replace([{"metadata": {"name": "one", "uid": "1", "resourceVersion": "1"}}])

        assert await taken(changes, asked, caches), kind.plural


async def test_after_an_outage_nothing_is_shown_before_all_are_back() -> None:
    clock = FakeClock()
    asked = session(clock=clock)
    outages, changes = ReportedOutages(asked), PendingChanges()
    for who in ("rules", "pods"):
        outages.failed(who, AWAY)
    changes.add("the state of the rules")
    taking = asyncio.create_task(changes.wait(asked, Caches(outages)))

    outages.recovered("rules", "rules")
    await clock.sleepers()
    clock.advance(REST_SECONDS)
    await clock.sleepers()
    early = taking.done()
    outages.recovered("pods", "pods")
    clock.advance(REST_SECONDS)

    assert await taking == ["the state of the rules"]
    assert not early


AWAY = UnreachableError("connection refused")
GONE = "https://server is unreachable: connection refused\n"
GOES_ON = "  the watch resumes when the server answers again\n"
BACK = "https://server answers again, after 8s\n"


def test_an_outage_is_reported_once_and_when_it_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    outages = ReportedOutages(session(clock=clock))

    changes = [outages.failed(who, AWAY) for who in ("pods", "claims", "pods")]
    clock.advance(8)
    for who in ("pods", "claims"):
        outages.recovered(who, who)

    assert changes == [False] * 3  # nothing is left for the log
    assert capsys.readouterr().err == GONE + GOES_ON + BACK


def test_what_may_no_longer_be_seen_is_reported_and_when_that_is_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = FakeClock()
    outages = ReportedOutages(session(clock=clock))

    outages.failed("pods", Forbidden("pods is forbidden"))
    clock.advance(8)
    outages.recovered("pods", "pods")

    reported = "cannot watch: pods is forbidden\n"
    over = "watching pods again, after 8s\n"
    assert capsys.readouterr().err == reported + GOES_ON + over


def test_rejected_credentials_end_a_watch(capsys: pytest.CaptureFixture[str]) -> None:
    outages = ReportedOutages(session())

    with pytest.raises(Unauthorized):
        outages.failed("pods", Unauthorized("Unauthorized"))

    assert not capsys.readouterr().err


class LateCredentials:
    """A plugin that fails at first, as it needs the same network, and then has an old answer."""

    def __init__(self) -> None:
        certificate, key = Authority().issue("late", ends=NOON)
        self._answers = iter([None, Credential(certificate=certificate, key=key)])
        self.failed = asyncio.Event()

    async def current(self) -> Credential:
        answer = next(self._answers)
        if answer is None:
            self.failed.set()
            raise AccessError("no network")
        return answer

    def reject(self, credential: Credential) -> bool:
        return False


async def test_an_expired_certificate_ends_a_watch_of_an_unreachable_server() -> None:
    late, clock = LateCredentials(), FakeClock(NOON + timedelta(seconds=1))
    async with AdaptingTransport(Access(server="https://server", credentials=late)) as transport:
        asked = Session(parsed("devices"), "devices", clock, transport, "https://server")
        outages = ReportedOutages(asked)
        ending = asyncio.create_task(outages.fail_when_expired())
        outages.failed("pods", AWAY)
        await late.failed.wait()
        outages.failed("pods", AWAY)

        with pytest.raises(UnreachableError):
            await ending


RESTS = {"nothing": (0.0, REST_SECONDS), "little": (0.01, REST_SECONDS), "much": (0.5, 2.0)}


@pytest.mark.parametrize(("spent", "want"), RESTS.values(), ids=RESTS)
def test_a_watch_leaves_most_of_a_core_to_others(spent: float, want: float) -> None:
    assert rest_after(spent) == want
    assert rest_after(spent) <= rest_after(1000) < 10
