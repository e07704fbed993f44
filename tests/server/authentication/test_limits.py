"""How much one user may have going on, and what those hear who want more."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from serving import Asgi, local
from sully.machinery.errors import TooManyRequests
from sully.server.authorization.attributes import Attributes, Verdict
from sully.server.http.door import Door
from sully.server.limits import READ, WATCH, WRITE, Allowance, Limits
from sully.server.requests import User

ALICE, BOB, CAROL = (User(name, ("system:authenticated",)) for name in ("alice", "bob", "carol"))
ROOT = User("root", ("system:masters",))
SMALL = Allowance(reads=4, writes=2, watches=3)

# name → (who holds what already, who wants what, whether there is room)
CASES = {
    "nothing going on": ([], (ALICE, READ), True),
    "below her half": ([(ALICE, READ)], (ALICE, READ), True),
    "at her half": ([(ALICE, READ)] * 2, (ALICE, READ), False),
    "others have room then": ([(ALICE, READ)] * 2, (BOB, READ), True),
    "all is taken": ([(ALICE, READ)] * 2 + [(BOB, READ)] * 2, (CAROL, READ), False),
    "reads do not take from writes": ([(ALICE, READ)] * 2, (ALICE, WRITE), True),
    "one write at once": ([(ALICE, WRITE)], (ALICE, WRITE), False),
    "watches do not take from reads": ([(ALICE, WATCH)] * 3, (ALICE, READ), True),
    "watches have their own limit": ([(ALICE, WATCH)] * 3, (ALICE, WATCH), False),
    "watches are counted by user only": ([(ALICE, WATCH)] * 3, (BOB, WATCH), True),
    "the masters always": ([(ROOT, READ)] * 9, (ROOT, READ), True),
    "the masters take from nobody": ([(ROOT, READ)] * 9, (ALICE, READ), True),
}


@pytest.mark.parametrize("name", CASES)
def test_room(name: str) -> None:
    held, (user, kind), room = CASES[name]
    limits = Limits(SMALL)
    for who, what in held:
        limits.enter(who, what)

    if room:
        limits.enter(user, kind)
        return
    with pytest.raises(TooManyRequests) as refused:
        limits.enter(user, kind)
    assert refused.value.message == "Too many requests, please try again later."
    assert refused.value.headers == {"Retry-After": "1"}
    assert refused.value.details == {"retryAfterSeconds": 1}


@pytest.mark.parametrize("seed", range(5))
def test_every_place_comes_back(seed: int) -> None:
    chance, limits, held = random.Random(seed), Limits(SMALL), []
    for _ in range(300):
        if held and chance.random() < 0.5:
            slot = held.pop(chance.randrange(len(held)))
            slot.release()
            slot.release()
            continue
        try:
            user, kind = chance.choice((ALICE, BOB, ROOT)), chance.choice((READ, WRITE, WATCH))
            held.append(limits.enter(user, kind))
        except TooManyRequests:
            continue
    for slot in held:
        slot.release()

    taken = [limits.enter(ALICE, READ), limits.enter(ALICE, READ)]
    taken += [limits.enter(ALICE, WATCH) for _ in range(3)]
    assert len(taken) == 5
    for slot in taken:
        slot.release()
    assert not limits._users


def test_zero_means_no_limit() -> None:
    limits = Limits(Allowance(reads=0, writes=0, watches=0))

    assert all(limits.enter(ALICE, kind) for kind in (READ, WRITE, WATCH) * 500)


class Anything:
    """Allows everything, so that limits alone refuse."""

    def decide(self, user: User, attributes: Attributes) -> Verdict:
        return Verdict(allowed=True)


@asynccontextmanager
async def limited(allowance: Allowance) -> AsyncIterator[Asgi]:
    async with local() as server:
        door: Door = server.app._door
        door.limits = Limits(allowance)
        door.authorizer = Anything()
        yield server


HER = {"impersonate-user": "alice"}


async def test_a_user_with_too_many_watches_is_told_to_come_back() -> None:
    async with limited(Allowance(watches=1)) as server:
        path = "/api/v1/namespaces"
        headers = {"impersonate-user": "alice"}
        async with server.watch(path, headers=headers) as first:
            await first.until(lambda answer: answer.code == 200)
            answer = await server.call("GET", f"{path}?watch=1", headers=headers)
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
            assert (await server.call("GET", path, headers=headers)).code == 200
        async with server.watch(path, headers=headers) as second:
            await second.until(lambda answer: answer.code == 200)


async def test_what_ends_gives_its_place_back() -> None:
    async with limited(Allowance(reads=2, writes=2)) as server:
        for _ in range(20):
            assert (await server.call("GET", "/api/v1/namespaces", headers=HER)).code == 200
            assert (await server.call("GET", "/api/v1/nothing", headers=HER)).code == 404
            assert (await server.call("POST", "/api/v1/namespaces", "{", headers=HER)).code == 400
