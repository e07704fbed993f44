"""How much one client may have under way, and the answer to those who want more."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from serving import Asgi, local
from sully.machinery.errors import TooManyRequests
from sully.server.authorization.attributes import Attributes, Decision
from sully.server.flowcontrol.limits import BODY, READ, WATCH, WRITE, Allowance, Limits, Slot
from sully.server.flowcontrol.priority import (
    EXEMPT,
    GLOBAL_DEFAULT,
    NODE_HIGH,
    WORKLOAD_LOW,
    Flow,
)
from sully.server.http.access import AccessControl
from sully.server.requests import User


def flow(name: str, level: str = GLOBAL_DEFAULT) -> Flow:
    return Flow(level, level, name)


ALICE, BOB, CAROL = flow("alice"), flow("bob"), flow("carol")
NODE, ACCOUNT, ROOT = flow("node", NODE_HIGH), flow("ns", WORKLOAD_LOW), flow("root", EXEMPT)
SMALL = Allowance(reads=4, writes=2, watches=3)
# Of 100 seats 10 are reserved for users, as many for accounts, 20 for nodes, and 28 are shared.
LARGE = Allowance(reads=100, writes=100, body_bytes=100)

# name → (the allowance, who holds what already, who wants what, whether there is team)
CASES: dict[str, tuple[Allowance, list[tuple[Any, ...]], tuple[Any, ...], bool]] = {
    "nothing going on": (SMALL, [], (ALICE, READ), True),
    "below her half": (SMALL, [(ALICE, READ)], (ALICE, READ), True),
    "at her half": (SMALL, [(ALICE, READ)] * 2, (ALICE, READ), False),
    "others have team then": (SMALL, [(ALICE, READ)] * 2, (BOB, READ), True),
    "all is taken": (SMALL, [(ALICE, READ)] * 2 + [(BOB, READ)] * 2, (CAROL, READ), False),
    "reads do not take from writes": (SMALL, [(ALICE, READ)] * 2, (ALICE, WRITE), True),
    "one write together": (SMALL, [(ALICE, WRITE)], (ALICE, WRITE), False),
    "watches do not take from reads": (SMALL, [(ALICE, WATCH)] * 3, (ALICE, READ), True),
    "watches have their own limit": (SMALL, [(ALICE, WATCH)] * 3, (ALICE, WATCH), False),
    "watches are counted by flow only": (SMALL, [(ALICE, WATCH)] * 3, (BOB, WATCH), True),
    "the masters always": (SMALL, [(ROOT, READ)] * 9, (ROOT, READ), True),
    "the masters take from nobody": (SMALL, [(ROOT, READ)] * 9, (ALICE, READ), True),
    "what is shared can be borrowed": (LARGE, [(ALICE, WRITE)] * 18, (ALICE, WRITE), True),
    "half of what a level can have": (LARGE, [(ALICE, WRITE)] * 19, (ALICE, WRITE), False),
    "a level at its end": (
        LARGE,
        [(ALICE, WRITE)] * 19 + [(BOB, WRITE)] * 19,
        (CAROL, WRITE),
        False,
    ),
    "another level has its own": (
        LARGE,
        [(ALICE, WRITE)] * 19 + [(BOB, WRITE)] * 19,
        (NODE, WRITE),
        True,
    ),
    "its own, and no more": (
        LARGE,
        [(ALICE, WRITE)] * 19 + [(BOB, WRITE)] * 19 + [(NODE, WRITE)] * 20,
        (NODE, WRITE),
        False,
    ),
    "two levels share the rest": (
        LARGE,
        [(ALICE, WRITE)] * 19 + [(ACCOUNT, WRITE)] * 19,
        (BOB, WRITE),
        True,
    ),
    "bytes are counted as they are": (LARGE, [(ALICE, BODY, 19)], (ALICE, BODY, 1), False),
    "what is larger than the limit counts as the limit": (LARGE, [], (ALICE, BODY, 99), True),
    "and leaves no team beside it": (LARGE, [(ALICE, BODY, 99)], (ALICE, BODY, 1), False),
}


@pytest.mark.parametrize("name", CASES)
def test_room(name: str) -> None:
    allowance, held, expected, team = CASES[name]
    limits = Limits(allowance)
    for seats in held:
        limits.enter(*seats)

    if team:
        limits.enter(*expected)
        return
    with pytest.raises(TooManyRequests) as refused:
        limits.enter(*expected)
    assert refused.value.message == "Too many requests, please try again later."
    assert refused.value.headers == {"Retry-After": "1"}
    assert refused.value.details == {"retryAfterSeconds": 1}


@pytest.mark.parametrize("allowance", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("seed", range(5))
def test_every_seat_comes_back(seed: int, allowance: Allowance) -> None:
    rng, limits, held = random.Random(seed), Limits(allowance), list[Slot]()
    for _ in range(600):
        if held and rng.random() < 0.4:
            slot = held.pop(rng.randrange(len(held)))
            slot.release()
            slot.release()
            continue
        try:
            who = rng.choice((ALICE, BOB, NODE, ACCOUNT, ROOT))
            slot = limits.enter(who, rng.choice((READ, WRITE, WATCH, BODY)))
            held.append(slot)
            slot.grow(rng.randrange(30))
        except TooManyRequests:
            continue
    for slot in held:
        slot.release()

    assert limits.idle
    taken = [limits.enter(ALICE, READ), limits.enter(ALICE, READ)]
    taken += [limits.enter(ALICE, WATCH) for _ in range(3)]
    assert len(taken) == 5


@pytest.mark.parametrize("seed", range(5))
def test_a_level_always_gets_what_is_reserved(seed: int) -> None:
    rng, limits, held = random.Random(seed), Limits(LARGE), list[Slot]()
    for number in range(500):
        if held and rng.random() < 0.2:
            held.pop(rng.randrange(len(held))).release()
            continue
        with suppress(TooManyRequests):
            level = rng.choice((GLOBAL_DEFAULT, WORKLOAD_LOW))
            held.append(limits.enter(flow(f"user-{number % 7}", level), WRITE))

    # 20 reserved seats, of which one node may have no more than half of 20 + 28.
    assert [limits.enter(NODE, WRITE) for _ in range(20)]


def test_zero_means_no_limit() -> None:
    limits = Limits(Allowance(reads=0, writes=0, watches=0))

    assert all(limits.enter(ALICE, kind) for kind in (READ, WRITE, WATCH) * 500)


class Anything:
    """Allows everything, so that limits alone refuse."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return Decision(allowed=True)


@asynccontextmanager
async def limited(allowance: Allowance) -> AsyncIterator[Asgi]:
    async with local() as server:
        access: AccessControl = server.app._access
        access.limits = Limits(allowance)
        access.authorizer = Anything()
        server.user = User("alice")
        yield server


async def test_a_user_with_too_many_watches_gets_retry_after() -> None:
    async with limited(Allowance(watches=1)) as server:
        path = "/api/v1/namespaces"
        async with server.watch(path) as first:
            await first.until(lambda answer: answer.code == 200)
            answer = await server.call("GET", f"{path}?watch=1")
            assert (answer.code, answer.header("retry-after")) == (429, "1")
            assert answer.json == {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "Too many requests, please try again later.",
                "reason": "TooManyRequests",
                "details": {"retryAfterSeconds": 1},
                "code": 429,
            }
            assert (await server.call("GET", path)).code == 200
        async with server.watch(path) as second:
            await second.until(lambda answer: answer.code == 200)


async def test_what_ends_gives_its_place_back() -> None:
    async with limited(Allowance(reads=2, writes=2)) as server:
        for _ in range(20):
            assert (await server.call("GET", "/api/v1/namespaces")).code == 200
            assert (await server.call("GET", "/api/v1/nothing")).code == 404
            assert (await server.call("POST", "/api/v1/namespaces", "{")).code == 400


async def test_who_is_impersonated_pays_nothing() -> None:
    async with limited(Allowance(watches=2)) as server:
        path, bob = "/api/v1/namespaces", {"impersonate-user": "bob"}
        async with server.watch(path) as first, server.watch(path, headers=bob) as second:
            await first.until(lambda answer: answer.code == 200)
            await second.until(lambda answer: answer.code == 200)
            carol = {"impersonate-user": "carol"}
            assert (await server.call("GET", f"{path}?watch=1", headers=carol)).code == 429
            server.user = User("bob")
            async with server.watch(path) as third:
                await third.until(lambda answer: answer.code == 200)
