"""A store on three members of which one at a time is lost: killed, frozen, or without TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from etcds import Etcd, Files, Member
from store.impatient import impatient
from sully.server.net.tls import Authority
from sully.store.base import Put, StoreKey
from sully.store.errors import UnavailableError, UncertainError
from sully.store.etcd.address import Address
from sully.store.etcd.store import EtcdStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Etcd]:
    with Etcd(size=3) as made:
        yield made


def thing(n: int) -> StoreKey:
    return StoreKey("pods", "default", f"{n:04}")


LOSSES: dict[str, tuple[Callable[[Etcd, Member], None], Callable[[Etcd, Member], None]]] = {
    "killed": (Etcd.kill, Etcd.start),
    "frozen": (Etcd.freeze, Etcd.thaw),
}


async def insist(store: EtcdStore, n: int) -> None:
    """Write as the error asks: where it is unknown whether it was written, look first."""
    while True:
        try:
            await store.commit([Put(thing(n), b"", expect=0)])
        except UncertainError:
            # A member that is unreachable longer than a write is waited for, as on a busy machine.
            if await store.get(thing(n)) is None:
                continue
        return


@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("how", LOSSES)
async def test_what_was_acknowledged_survives_any_member(
    cluster: Etcd, how: str, victim: int
) -> None:
    lose, bring_back = LOSSES[how]
    member = cluster.members[victim]
    address = Address(cluster.address.endpoints, f"/{how}-{victim}")
    # One of the two talks to the member that is lost, whichever it is.
    turned = Address((*address.endpoints[victim:], *address.endpoints[:victim]), address.prefix)
    async with await EtcdStore.open(address) as one, await EtcdStore.open(turned) as two:
        watch = two.watch("pods", after=two.revision)
        for n in range(10):
            await one.commit([Put(thing(n), b"", expect=0)])
        lose(cluster, member)
        try:
            await asyncio.gather(*(insist((one, two)[n % 2], n) for n in range(10, 40)))
            stores = [await store.list("pods") for store in (one, two)]
            keys = [event.record.key for event in watch.take()]
        finally:
            bring_back(cluster, member)
            cluster.await_healthy(member)

    for page in stores:
        assert [record.key for record in page.records] == [thing(n) for n in range(40)]
    assert sorted(keys) == [thing(n) for n in range(40)]


@pytest.mark.parametrize("victim", [0, 1, 2])
async def test_a_member_that_dies_in_the_middle_of_writes(cluster: Etcd, victim: int) -> None:
    member = cluster.members[victim]
    address = Address(cluster.address.endpoints, f"/mid-write-{victim}")
    turned = Address((*address.endpoints[victim:], *address.endpoints[:victim]), address.prefix)
    async with await EtcdStore.open(address) as one, await EtcdStore.open(turned) as two:
        watch = one.watch("pods", after=one.revision)
        some = asyncio.Event()
        acknowledged: dict[StoreKey, int] = {}

        async def write(n: int) -> None:
            done = await (one, two)[n % 2].commit([Put(thing(n), b"", expect=0)])
            acknowledged[thing(n)] = done.revision
            if len(acknowledged) == 20:
                some.set()

        writing = asyncio.gather(*(write(n) for n in range(300)), return_exceptions=True)
        await some.wait()
        cluster.kill(member)
        try:
            outcomes = await writing
            page = await two.list("pods")
            await one.catch_up()
            events = [(event.record.key, event.revision) for event in watch.take()]
        finally:
            cluster.start(member)
            cluster.await_healthy(member)

    results = {record.key: record.revision for record in page.records}
    failed = [outcome for outcome in outcomes if outcome is not None]
    # A lost answer may leave doubt, but never a conflict with oneself.
    assert all(isinstance(item, UncertainError) for item in failed), failed
    assert acknowledged.items() <= results.items()
    assert len(results) <= len(acknowledged) + len(failed)
    assert dict(events) == results
    assert len(events) == len(results)


async def test_without_a_majority_nothing_is_acknowledged(cluster: Etcd) -> None:
    address = Address(cluster.address.endpoints, "/minority")
    async with await EtcdStore.open(address) as store:
        await store.commit([Put(thing(0), b"")])
        for member in cluster.members[:2]:
            cluster.kill(member)
        try:
            with impatient(store), pytest.raises(UnavailableError):
                await store.commit([Put(thing(1), b"")])
            with impatient(store), pytest.raises(UnavailableError):
                await store.get(thing(0))
        finally:
            for member in cluster.members[:2]:
                cluster.start(member)
            for member in cluster.members:
                cluster.await_healthy(member)
        assert await store.get(thing(0)) is not None


@pytest.fixture
def files(tmp_path: Path) -> Files:
    now = datetime.now(UTC)
    authority = Authority.open(tmp_path, now)
    (tmp_path / "ca.pem").write_bytes(authority.pair.certificate)
    for name, pair in {
        "server": authority.server(["127.0.0.1"], now),
        "client": authority.client("sully", [], now),
    }.items():
        (tmp_path / f"{name}.pem").write_bytes(pair.certificate)
        (tmp_path / f"{name}.key").write_bytes(pair.key)
    return Files(tmp_path)


async def test_tls_with_client_certificates(files: Files, tmp_path: Path) -> None:
    with Etcd(tls=files) as etcd:
        async with await EtcdStore.open(etcd.address) as store:
            await store.commit([Put(thing(0), b"")])
            assert await store.get(thing(0)) is not None
        with pytest.raises(UnavailableError):
            await EtcdStore.open(Address(etcd.address.endpoints), call_timeout=0.5)
