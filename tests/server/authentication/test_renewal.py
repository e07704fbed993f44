"""Certificates that are replaced while the server runs, and the names they are good for."""

from __future__ import annotations

import socket
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from sully.app import Config, running
from sully.server.identity import Pair
from sully.server.net.issuing import ServerCertificate
from sully.server.net.listen import host_names
from sully.server.net.renewal import CHECK_INTERVAL
from sully.server.net.tls import Authority, names_of
from sully.testing.clock import FakeClock
from sully.testing.patience import PATIENCE

DAY = timedelta(days=1).total_seconds()


def certificate(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / "server.crt").read_bytes())


def shown(url: str) -> bytes:
    """Return the certificate that a new connection is shown."""
    host, port = url.removeprefix("https://").split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as plain,
        context.wrap_socket(plain) as secure,
    ):
        result = secure.getpeercert(binary_form=True)
    assert result
    return result


async def later(clock: FakeClock, days: float) -> None:
    """Let time pass until everything that sleeps has looked around again."""
    sleeping = clock.sleeping
    clock.advance(days * DAY)
    await clock.sleepers(sleeping)


async def test_a_running_server_renews(tmp_path: Path) -> None:
    import asyncio

    clock = FakeClock(datetime.now(UTC))
    config = Config(data_dir=tmp_path, port=0, store="memory")
    async with running(config, clock) as plane:
        first, login = certificate(tmp_path), plane.kubeconfig.read_bytes()
        await later(clock, 300)
        assert certificate(tmp_path) == first

        await later(clock, 36)

        second = certificate(tmp_path)
        assert second.serial_number != first.serial_number
        assert second.not_valid_after_utc > first.not_valid_after_utc + timedelta(days=300)
        seen = await asyncio.to_thread(shown, plane.url)
        assert x509.load_der_x509_certificate(seen) == second
        assert plane.kubeconfig.read_bytes() != login
        assert stat.S_IMODE((tmp_path / "server.key").stat().st_mode) == 0o600
        assert stat.S_IMODE(plane.kubeconfig.stat().st_mode) == 0o600


async def test_it_looks_often_enough() -> None:
    assert timedelta(days=1) >= CHECK_INTERVAL


async def test_a_disk_that_fails_is_tried_again(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC))
    config = Config(data_dir=tmp_path, port=0, store="memory")
    async with running(config, clock):
        first = certificate(tmp_path)
        # A folder where the new key is to be written.
        obstacle = tmp_path / "server.key"
        obstacle.unlink()
        obstacle.mkdir()
        (obstacle / "x").touch()
        await later(clock, 340)
        assert certificate(tmp_path) == first
        (obstacle / "x").unlink()
        obstacle.rmdir()
        await later(clock, 1)
        assert certificate(tmp_path) != first


def ensured(folder: Path, *names: str, days: float = 0.0) -> bool:
    clock = FakeClock()
    clock.advance(days * DAY)
    authority = Authority.open(folder, clock.now())
    return ServerCertificate(folder, authority, names).ensure(clock.now())


def test_a_certificate_is_kept_as_long_as_it_will_do(tmp_path: Path) -> None:
    assert ensured(tmp_path, "a.example", "10.0.0.1")
    assert not ensured(tmp_path, "a.example")
    assert not ensured(tmp_path, "10.0.0.1", days=334)
    assert ensured(tmp_path, "a.example", "b.example")
    assert ensured(tmp_path, "a.example", days=336)


def test_another_authority_means_another_certificate(tmp_path: Path) -> None:
    assert ensured(tmp_path, "a.example")
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).unlink()

    assert ensured(tmp_path, "a.example")


@pytest.mark.parametrize("damaged", ["server.crt", "server.key"])
@pytest.mark.parametrize("other", ["", "ca.key", "ca.crt"], ids=["empty", "a key", "a certificate"])
def test_what_is_not_a_certificate_with_its_key_is_recreated(
    damaged: str, other: str, tmp_path: Path
) -> None:
    assert ensured(tmp_path, "a.example")
    (tmp_path / damaged).write_bytes((tmp_path / other).read_bytes() if other else b"")

    assert ensured(tmp_path, "a.example")
    assert not ensured(tmp_path, "a.example")


@pytest.mark.parametrize(
    ("host", "least"),
    [
        ("127.0.0.1", {"127.0.0.1"}),
        ("sully.example", {"sully.example"}),
        ("0.0.0.0", {socket.gethostname()}),
        ("::", {socket.gethostname()}),
    ],
)
def test_names_of_an_address(host: str, least: set[str]) -> None:
    assert least <= set(host_names(host))


async def test_where_it_listens_and_what_is_configured_is_in_the_certificate(
    tmp_path: Path,
) -> None:
    config = Config(
        data_dir=tmp_path,
        host="127.0.0.2",
        port=0,
        store="memory",
        names=("api.example", "10.9.8.7"),
    )
    async with running(config) as plane:
        pair = Pair((tmp_path / "server.crt").read_bytes(), b"")

        assert {"127.0.0.2", "localhost", "api.example", "10.9.8.7"} <= names_of(pair)
        assert plane.url.startswith("https://127.0.0.2:")
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        host, port = plane.url.removeprefix("https://").split(":")
        import asyncio

        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writer.transport.abort()


def test_nothing_outlives_its_authority(tmp_path: Path) -> None:
    now: Any = FakeClock().now()
    authority = Authority.open(tmp_path, now)

    pair = authority.client("alice", [], now, timedelta(days=36500))

    ends = x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc
    assert ends == authority.ends
