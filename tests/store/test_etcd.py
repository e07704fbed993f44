"""What only a store in etcd promises: several processes, one truth, members that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from cuts import Wire, wire_to
from etcds import Etcd
from store.impatient import impatient
from storekeys import pod
from sully.runtime.clock import SystemClock
from sully.runtime.deadlines import within
from sully.store.base import Delete, Put, StoreKey
from sully.store.errors import (
    CompactedError,
    ConflictError,
    TooLargeError,
    UnavailableError,
    UncertainError,
)
from sully.store.etcd.address import Address, Keys
from sully.store.etcd.client import Client
from sully.store.etcd.follower import Follower
from sully.store.etcd.store import EtcdStore, begin_at
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.slow


A, B = pod("a"), pod("b")


@pytest.fixture(scope="module")
def etcd() -> Iterator[Etcd]:
    """One etcd for the tests of this module, which use prefixes of their own."""
    with Etcd() as made:
        yield made


@pytest.fixture
def address(etcd: Etcd, request: pytest.FixtureRequest) -> Address:
    return replace(etcd.address, prefix=f"/{request.node.name}")


@pytest.fixture
async def pair(address: Address) -> AsyncIterator[tuple[EtcdStore, EtcdStore]]:
    """Two replicas of one store."""
    async with await EtcdStore.open(address) as one, await EtcdStore.open(address) as two:
        yield one, two


async def increment(store: EtcdStore, key: StoreKey) -> None:
    """Add one, as often as it takes; a conflict means that another was quicker."""
    while True:
        current = store.newest(key)
        value, expect = (int(current.value), current.revision) if current else (0, 0)
        try:
            await store.commit([Put(key, str(value + 1).encode(), expect)])
        except ConflictError:
            continue
        return


class TestReplicas:
    async def test_a_read_sees_what_any_replica_acknowledged(
        self, pair: tuple[EtcdStore, EtcdStore]
    ) -> None:
        one, two = pair
        for n in range(50):
            written = await one.commit([Put(A, str(n).encode())])
            record = await two.get(A)
            assert record is not None
            assert (record.value, record.revision) == (str(n).encode(), written.revision)
            one, two = two, one
        await one.commit([Delete(A)])
        assert await two.get(A) is None
        assert (await two.list("pods")).records == []

    async def test_both_show_the_same_events(self, pair: tuple[EtcdStore, EtcdStore]) -> None:
        one, two = pair
        watches = [store.watch("pods", after=store.revision) for store in pair]
        await one.commit([Put(A, b"1"), Put(B, b"1")])
        await two.commit([Put(A, b"2")])
        await one.commit([Delete(A)])
        for store in pair:
            await store.catch_up()

        takens = [
            [(event.kind, event.record.key, event.record.value, event.revision) for event in taken]
            for taken in (watch.take() for watch in watches)
        ]

        assert takens[0] == takens[1]
        assert [message[0] for message in takens[0]] == ["ADDED", "ADDED", "MODIFIED", "DELETED"]

    async def test_increments_from_both_sides_are_all_counted(
        self, pair: tuple[EtcdStore, EtcdStore]
    ) -> None:
        await asyncio.gather(*(increment(store, A) for store in pair for _ in range(30)))

        stores = [await store.get(A) for store in pair]
        assert [record and record.value for record in stores] == [b"60", b"60"]

    async def test_one_of_two_creates_wins(self, pair: tuple[EtcdStore, EtcdStore]) -> None:
        for n in range(20):
            outcomes = await asyncio.gather(
                *(store.commit([Put(pod(str(n)), b"", expect=0)]) for store in pair),
                return_exceptions=True,
            )
            assert sorted(type(outcome).__name__ for outcome in outcomes) == [
                "Commit",
                "ConflictError",
            ]

    async def test_a_version_of_the_other_replica_is_accepted(
        self, pair: tuple[EtcdStore, EtcdStore]
    ) -> None:
        one, two = pair
        for _ in range(20):
            written = await one.commit([Put(A, b"1")])
            await two.commit([Put(A, b"2", expect=written.revision)])

    async def test_other_users_of_the_same_etcd_do_not_matter(
        self, etcd: Etcd, pair: tuple[EtcdStore, EtcdStore]
    ) -> None:
        one, two = pair
        written = await one.commit([Put(A, b"1")])
        async with await EtcdStore.open(replace(etcd.address, prefix="/others")) as others:
            await others.commit([Put(A, b"theirs")])

        record = await two.get(A)

        assert record is not None
        assert (record.value, two.revision) == (b"1", written.revision)

    async def test_a_replica_that_comes_later_can_show_the_past(
        self, address: Address, pair: tuple[EtcdStore, EtcdStore]
    ) -> None:
        one, _ = pair
        then = (await one.commit([Put(A, b"1")])).revision
        await one.commit([Put(A, b"2")])
        async with await EtcdStore.open(address) as late:
            page = await late.list("pods", at=then)
            events = late.watch("pods", after=then).take()

        assert [record.value for record in page.records] == [b"1"]
        assert [(event.kind, event.record.value) for event in events] == [("MODIFIED", b"2")]


async def test_all_pages_are_read_at_the_start(address: Address) -> None:
    async with await EtcdStore.open(address) as store:
        for part in range(11):
            await store.commit([Put(pod(f"{part}-{n}"), b"v") for n in range(100)])
        before = await store.list("pods")
        # History begins here, so the next one must read all of them as they are.
        await store.compact(store.revision)
    async with await EtcdStore.open(address) as store:
        after = await store.list("pods")

    assert len(after.records) == 1100
    assert [(r.key, r.revision) for r in after.records] == [
        (r.key, r.revision) for r in before.records
    ]


async def test_a_store_can_begin_at_any_revision(address: Address) -> None:
    start = 10**9
    await begin_at(address, start)
    async with await EtcdStore.open(address) as one, await EtcdStore.open(address) as two:
        first = await one.commit([Put(A, b"1", expect=0)])
        with pytest.raises(ConflictError):
            await two.commit([Put(A, b"2", expect=start)])
        second = await two.commit([Put(A, b"2", expect=first.revision)])
        past = await one.list("pods", at=first.revision)
        watch = one.watch("pods", after=first.revision)
        await one.catch_up()
        reported = watch.take()
        await one.compact(second.revision)
        third = await one.commit([Delete(A, expect=second.revision), Put(B, b"1")])
    async with await EtcdStore.open(address) as later:
        result = await later.list("pods")

    assert start < first.revision < second.revision < third.revision == result.revision
    assert [record.value for record in past.records] == [b"1"]
    assert [event.revision for event in reported] == [second.revision]
    assert [(record.key, record.revision) for record in result.records] == [(B, third.revision)]


async def test_names_with_any_character_come_back(address: Address) -> None:
    keys = [StoreKey("g.io/things", "", "system:a/b%2F"), StoreKey("pods", "n", "ü")]
    async with await EtcdStore.open(address) as store:
        await store.commit([Put(key, b"") for key in keys])
    async with await EtcdStore.open(address) as store:
        assert [await store.get(key) is not None for key in keys] == [True, True]


async def test_what_etcd_finds_too_large_is_refused_as_such(address: Address) -> None:
    async with await EtcdStore.open(address) as store:
        with pytest.raises(TooLargeError):
            await store.commit([Put(pod(str(n)), bytes(1 << 20)) for n in range(8)])
        await store.commit([Put(A, b"1")])
        assert len((await store.list("pods")).records) == 1


class TestCutOff:
    """A replica whose way to etcd is cut."""

    @pytest.fixture
    async def wire(self, etcd: Etcd) -> AsyncIterator[Wire]:
        async with wire_to(etcd.members[0].client) as wire:
            yield wire

    @pytest.fixture
    async def far(self, address: Address, wire: Wire) -> AsyncIterator[EtcdStore]:
        through = replace(address, endpoints=(f"127.0.0.1:{wire.port}",))
        async with await EtcdStore.open(through) as store:
            yield store

    async def test_it_refuses_to_answer_from_the_past(
        self, address: Address, wire: Wire, far: EtcdStore
    ) -> None:
        async with await EtcdStore.open(address) as near:
            await near.commit([Put(A, b"1")])
            await far.get(A)
            wire.cut()
            await near.commit([Put(A, b"2")])

            with impatient(far), pytest.raises(UnavailableError):
                await far.get(A)
            with impatient(far), pytest.raises(UnavailableError):
                await far.commit([Put(B, b"1")])
            wire.mend()

            record = await far.get(A)
            assert record is not None
            assert record.value == b"2"
            assert far.problem == ""

    async def test_it_continues_where_it_was(
        self, address: Address, wire: Wire, far: EtcdStore
    ) -> None:
        watch = far.watch("pods", after=far.revision)
        async with await EtcdStore.open(address) as near:
            wire.cut()
            for n in range(5):
                await near.commit([Put(pod(str(n)), b"")])
            wire.mend()
            await far.catch_up()

        assert [event.record.key.name for event in watch.take()] == list("01234")

    async def test_watchers_are_reported_a_gap_that_cannot_be_closed(
        self, address: Address, wire: Wire, far: EtcdStore
    ) -> None:
        quiet = far.watch("nodes", after=far.revision)
        watch = far.watch("pods", after=far.revision)
        async with await EtcdStore.open(address) as near:
            await near.commit([Put(A, b"1")])
            wire.cut()
            await near.commit([Put(B, b"1"), Delete(A)])
            await near.compact(near.revision)
            wire.mend()
            await far.catch_up()

            for item in (quiet, watch):
                with pytest.raises(CompactedError):
                    item.take()
            assert [r.key for r in (await far.list("pods")).records] == [B]
            again = far.watch("pods", after=far.revision)
            await near.commit([Put(A, b"3")])
            await far.catch_up()
            assert [event.kind for event in again.take()] == ["ADDED"]

    async def test_a_write_whose_answer_is_lost_happens_once(
        self, address: Address, wire: Wire, far: EtcdStore
    ) -> None:
        async with await EtcdStore.open(address) as near:
            await far.commit([Put(A, b"0")])
            await near.catch_up()
            watch = near.watch("pods", after=near.revision)
            wire.stalled = True
            writing = asyncio.ensure_future(increment(far, A))
            await wire.swallowed.wait()
            await watch.wait()
            wire.mend()
            wire.cut()
            wire.mend()
            await writing

            record = await near.get(A)
            assert record is not None
            assert record.value == b"1"
            assert len(watch.take()) == 1

    async def test_a_write_that_may_have_happened_is_not_acknowledged(
        self, address: Address, wire: Wire, far: EtcdStore
    ) -> None:
        async with await EtcdStore.open(address) as near:
            watch = near.watch("pods", after=near.revision)
            wire.stalled = True
            with (
                impatient(far),
                pytest.raises(UncertainError, match="whether etcd has applied the write"),
            ):
                await far.commit([Put(A, b"1")])
            assert far.newest(A) is None
            await near.catch_up()
            assert len(watch.take()) == 1


async def test_nobody_answers() -> None:
    client = Client(Address(("127.0.0.1:1", "127.0.0.1:2")), SystemClock(), timeout=0.3)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(UnavailableError, match="no etcd member answers"):
            await client.compact(1)
        await client.close()


async def test_other_users_do_not_make_a_quiet_store_fall_out_of_its_history() -> None:
    flags = ("--experimental-watch-progress-notify-interval", "50ms")
    clock = SystemClock()
    with Etcd(flags=flags) as etcd:
        client = Client(etcd.address, clock)
        follower = Follower(client, Keys("/quiet"), clock)
        renewed: list[int] = []
        follower.renewed = renewed.append
        await follower.load()
        following = asyncio.ensure_future(follower.run())
        async with await EtcdStore.open(replace(etcd.address, prefix="/busy")) as busy:
            for n in range(20):
                await busy.commit([Put(pod(str(n)), b"")])
            # Known only from etcd's notification that there was nothing for us.
            while follower.resume <= busy.revision:  # noqa: ASYNC110 - etcd notifies nobody else
                await asyncio.sleep(0.01)
            await busy.compact(busy.revision)
        following.cancel()
        await asyncio.wait([following])
        following = asyncio.ensure_future(follower.run())
        async with await EtcdStore.open(replace(etcd.address, prefix="/quiet")) as quiet:
            done = await quiet.commit([Put(A, b"1")])
        await follower.reached(done.revision)
        following.cancel()
        await asyncio.wait([following])
        await client.close()

    assert renewed == []
    assert follower.state.get(A) is not None


async def test_a_write_is_not_begun_when_its_time_is_over(
    pair: tuple[EtcdStore, EtcdStore],
) -> None:
    one, two = pair
    with within(0), pytest.raises(UnavailableError, match="deadline exceeded"):
        await one.commit([Put(A, b"late", expect=0)])

    assert await two.get(A) is None
    await one.commit([Put(A, b"in time", expect=0)])
    assert [record and record.value for record in (await one.get(A), await two.get(A))] == [
        b"in time"
    ] * 2


async def test_a_read_is_everybodys_and_has_no_end_of_its_own(
    pair: tuple[EtcdStore, EtcdStore],
) -> None:
    one, two = pair
    await two.commit([Put(A, b"there", expect=0)])
    with within(0):
        result = await one.get(A)

    assert result is not None


async def test_what_was_written_is_not_reported_to_have_failed_because_no_watch_reports_it(
    address: Address,
) -> None:
    async with await EtcdStore.open(address) as store:
        store._following.cancel()
        with impatient(store), pytest.raises(UncertainError):
            await store.commit([Put(A, b"there", expect=0)])
    async with await EtcdStore.open(address) as other:
        result = await other.get(A)

    assert result is not None


async def test_a_full_etcd_refuses_writes_until_it_has_space(etcd: Etcd, address: Address) -> None:
    async with await EtcdStore.open(address) as store:
        await store.commit([Put(A, b"1", expect=0)])
        etcd.fill(etcd.members[0])
        try:
            with pytest.raises(UnavailableError, match="space exceeded") as refused:
                await store.commit([Put(A, b"2")])
            result = await store.get(A)
        finally:
            etcd.free(etcd.members[0])

        done = await store.commit([Put(A, b"3")])

    assert not isinstance(refused.value, UncertainError)
    assert result is not None
    assert result.value == b"1"
    assert done.revision > result.revision


@pytest.mark.parametrize("change", ["commit", "compact", "agree"])
async def test_close_waits_for_what_etcd_has_not_answered(
    etcd: Etcd, address: Address, change: str
) -> None:
    store = await EtcdStore.open(address)
    for value in (b"1", b"2"):
        await store.commit([Put(A, value)])
    calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "commit": lambda: store.commit([Put(A, b"3")]),
        "compact": lambda: store.compact(store.revision),
        "agree": lambda: store.agree("name", b"mine"),
    }
    etcd.freeze(etcd.members[0])
    begun = asyncio.ensure_future(calls[change]())
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.close())

    # A close that does not wait is over by then; one that does cannot be, however long this takes.
    await asyncio.wait([closing], timeout=0.2)
    waited = not closing.done()
    etcd.thaw(etcd.members[0])
    await closing

    assert waited
    assert begun.exception() is None
