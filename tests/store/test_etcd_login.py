"""A store in an etcd that asks for passwords: rights, tokens that etcd forgets, a new password."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cuts import wire_to
from etcds import Etcd
from store.impatient import impatient
from sully.store.base import Put, StoreKey
from sully.store.errors import UnavailableError, UncertainError
from sully.store.etcd.address import Address, Login
from sully.store.etcd.store import EtcdStore

pytestmark = pytest.mark.slow
ROOT = "root:r"
PREFIX = "/sully/"


def thing(n: int) -> StoreKey:
    return StoreKey("pods", "default", f"{n:04}")


@pytest.fixture
def open_etcd() -> Iterator[Etcd]:
    """An etcd with a user who may use our prefix, though nobody is asked yet."""
    with Etcd() as made:
        made.control("user", "add", ROOT)
        made.control("user", "grant-role", "root", "root")
        made.control("role", "add", "sully")
        made.control("role", "grant-permission", "sully", "--prefix=true", "readwrite", PREFIX)
        made.control("user", "add", "sully:secret")
        made.control("user", "grant-role", "sully", "sully")
        yield made


@pytest.fixture
def etcd(open_etcd: Etcd) -> Etcd:
    open_etcd.control("auth", "enable", user=ROOT)
    return open_etcd


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("secret\n")
    return path


def write(path: Path, password: str) -> None:
    path.write_text(password)


def address(etcd: Etcd, password: Path, user: str = "sully") -> Address:
    return replace(etcd.address, login=Login(user, password))


async def test_reads_writes_and_watches(etcd: Etcd, password: Path) -> None:
    where = address(etcd, password)
    async with await EtcdStore.open(where) as one, await EtcdStore.open(where) as two:
        watch = two.watch("pods", after=two.revision)
        await asyncio.gather(*(one.commit([Put(thing(n), b"")]) for n in range(20)))
        assert len((await two.list("pods")).records) == 20
        assert len(watch.take()) == 20
        await one.compact(one.revision)


async def test_without_a_name_nothing_is_answered(etcd: Etcd) -> None:
    with pytest.raises(UnavailableError, match="user name is empty"):
        await EtcdStore.open(etcd.address, call_timeout=0.5)


async def test_a_wrong_password_is_reported_immediately(etcd: Etcd, password: Path) -> None:
    write(password, "wrong")
    with pytest.raises(UnavailableError, match="invalid user ID or password"):
        await EtcdStore.open(address(etcd, password))


async def test_a_password_that_cannot_be_read(etcd: Etcd, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot read the password"):
        await EtcdStore.open(address(etcd, tmp_path / "none"))


async def test_a_prefix_that_is_not_ours(etcd: Etcd, password: Path) -> None:
    with pytest.raises(UnavailableError, match="permission denied"):
        await EtcdStore.open(replace(address(etcd, password), prefix="/others"))


async def test_passwords_are_asked_for_only_later(open_etcd: Etcd, password: Path) -> None:
    async with await EtcdStore.open(address(open_etcd, password)) as store:
        await store.commit([Put(thing(0), b"")])
        open_etcd.control("auth", "enable", user=ROOT)
        await store.commit([Put(thing(1), b"")])
        assert len((await store.list("pods")).records) == 2


async def test_a_member_that_forgot_its_tokens(etcd: Etcd, password: Path) -> None:
    (member,) = etcd.members
    async with await EtcdStore.open(address(etcd, password)) as store:
        watch = store.watch("pods", after=store.revision)
        await store.commit([Put(thing(0), b"")])
        etcd.kill(member)
        etcd.start(member)
        etcd.await_healthy(member)
        # Many together find the token gone.
        await asyncio.gather(*(store.commit([Put(thing(n), b"")]) for n in range(1, 30)))
        await store.catch_up()

        assert [event.record.key for event in watch.take()][:1] == [thing(0)]
        assert len((await store.list("pods")).records) == 30
        assert store.problem == ""


async def test_a_password_that_is_changed_meanwhile(etcd: Etcd, password: Path) -> None:
    (member,) = etcd.members
    async with await EtcdStore.open(address(etcd, password)) as store:
        await store.commit([Put(thing(0), b"")])
        etcd.control("user", "delete", "sully", user=ROOT)
        etcd.control("user", "add", "sully:new", user=ROOT)
        etcd.control("user", "grant-role", "sully", "sully", user=ROOT)
        write(password, "new")
        etcd.kill(member)
        etcd.start(member)
        etcd.await_healthy(member)

        await store.commit([Put(thing(1), b"")])
        assert len((await store.list("pods")).records) == 2


async def test_rights_that_are_taken_and_given_back(etcd: Etcd, password: Path) -> None:
    async with await EtcdStore.open(address(etcd, password)) as store:
        await store.commit([Put(thing(0), b"")])
        etcd.control("user", "revoke-role", "sully", "sully", user=ROOT)
        with impatient(store), pytest.raises(UnavailableError, match="permission denied"):
            await store.commit([Put(thing(1), b"")])
        etcd.control("user", "grant-role", "sully", "sully", user=ROOT)
        await store.commit([Put(thing(2), b"")])

        records = (await store.list("pods")).records
        assert [record.key for record in records] == [thing(0), thing(2)]


async def test_a_refusal_after_a_lost_answer_shows_nothing_about_the_write(
    etcd: Etcd, password: Path
) -> None:
    where = address(etcd, password)
    async with wire_to(etcd.members[0].client) as wire, await EtcdStore.open(where) as near:
        through = replace(where, endpoints=(f"127.0.0.1:{wire.port}",))
        async with await EtcdStore.open(through) as far:
            watch = near.watch("pods", after=near.revision)
            wire.stalled = True
            writing = asyncio.ensure_future(far.commit([Put(thing(0), b"")]))
            await watch.wait()
            etcd.control("user", "revoke-role", "sully", "sully", user=ROOT)
            wire.cut()
            wire.mend()

            with pytest.raises(UncertainError, match="permission denied"):
                await writing
            assert len(watch.take()) == 1
