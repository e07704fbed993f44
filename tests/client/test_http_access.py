"""The HTTP transport: who asks, who is trusted, and through whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from client.foreign import KEY, A, Authority, Foreign, connected, serving, status
from client.scripted import THINGS
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.credentials import (
    AccessError,
    Credential,
    FileCredentials,
    FixedCredentials,
)
from sully.client.transport import (
    Key,
    Kind,
    UnreachableError,
)
from sully.machinery.errors import (
    Unauthorized,
)
from sully.testing.clock import FakeClock

NODES = Kind("", "v1", "nodes", "Node", dict, namespaced=False)


async def call(foreign: Foreign, use: Any, **access: Any) -> Any:
    async with connected(foreign, **access) as http:
        return await use(http)


class TestCredentials:
    """Tokens and certificates, also those that change."""

    async def test_refused_token_is_read_again_once(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("old")
        seen: list[str] = []

        async def answer(request: web.Request) -> web.StreamResponse:
            seen.append(request.headers["Authorization"])
            if seen[-1] == "Bearer new":
                return web.json_response(A)
            file.write_text("new")
            return status(401, reason="Unauthorized", message="Unauthorized")

        credentials = FileCredentials(token_file=file, clock=FakeClock())
        async with (
            serving(answer) as server,
            HttpTransport(Access(server=server, credentials=credentials)) as http,
        ):
            await http.get(THINGS, KEY)

        assert seen == ["Bearer old", "Bearer new"]

    async def test_refused_for_good(self) -> None:
        foreign = Foreign([status(401, reason="Unauthorized", message="Unauthorized")])
        credentials = FixedCredentials(Credential("secret"))
        with pytest.raises(Unauthorized):
            await call(foreign, lambda http: http.get(THINGS, KEY), credentials=credentials)

        assert len(foreign.requests) == 1

    async def test_impersonation(self) -> None:
        foreign = Foreign([A])
        headers = {"Impersonate-User": "bob", "Impersonate-Group": ("dev", "ops")}
        await call(foreign, lambda http: http.get(THINGS, KEY), headers=headers, compression=False)

        got = foreign.requests[0].headers
        assert got["impersonate-user"] == ["bob"]
        assert got["impersonate-group"] == ["dev", "ops"]
        assert got["accept-encoding"] == ["identity"]

    @pytest.mark.parametrize(
        ("access", "name"),
        [
            ({"credentials": FixedCredentials(Credential("secret\n"))}, "Authorization"),
            ({"headers": {"Impersonate-User": "bob\r\nX: y"}}, "Impersonate-User"),
        ],
    )
    async def test_what_no_header_can_carry_is_reported(self, access: Any, name: str) -> None:
        with pytest.raises(UnreachableError, match=f"cannot send {name}: ") as reported:
            await call(Foreign([A]), lambda http: http.get(THINGS, KEY), **access)

        assert "secret" not in str(reported.value)

    async def test_no_credential_is_unreachable(self, tmp_path: Path) -> None:
        credentials = FileCredentials(token_file=tmp_path / "gone", clock=FakeClock())
        with pytest.raises(UnreachableError, match="gone"):
            await call(Foreign([A]), lambda http: http.get(THINGS, KEY), credentials=credentials)


class TestTls:
    """Who trusts whom."""

    async def show(self, folder: Path, authority: Authority, host: str = "", **access: Any) -> str:
        """Call a server that reports the certificate it received."""

        async def answer(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            subject = (request.transport.get_extra_info("peercert") or {}).get("subject", ())
            name = dict(pair for part in subject for pair in part).get("commonName", "nobody")
            return web.json_response({"metadata": {"name": name}})

        context = authority.server_context(folder, host=host or "127.0.0.1")
        async with connected(answer, context, **access) as http:
            return (await http.get(THINGS, KEY)).metadata.name

    async def test_client_certificate(self, tmp_path: Path) -> None:
        authority = Authority()
        certificate, key = authority.issue("ann")
        credentials = FixedCredentials(Credential(certificate=certificate, key=key))

        assert await self.show(tmp_path, authority, ca=authority.pem) == "nobody"
        shown = await self.show(tmp_path, authority, ca=authority.pem, credentials=credentials)
        assert shown == "ann"

    async def test_renewed_certificate_is_shown(self, tmp_path: Path) -> None:
        authority, clock = Authority(), FakeClock()
        files: dict[str, Any] = {
            "certificate_file": tmp_path / "tls.crt",
            "key_file": tmp_path / "tls.key",
        }
        names = []

        async def answer(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            names.append(request.transport.get_extra_info("peercert")["subject"][0][0][1])
            return web.json_response(A)

        context, credentials = (
            authority.server_context(tmp_path),
            FileCredentials(**files, clock=clock),
        )
        async with connected(answer, context, ca=authority.pem, credentials=credentials) as http:
            for name in ("ann", "bob", "bob"):
                for file, data in zip(files.values(), authority.issue(name), strict=True):
                    file.write_bytes(data)
                clock.advance(60)
                await http.get(THINGS, KEY)

        assert names == ["ann", "bob", "bob"]

    async def test_stranger_is_not_trusted(self, tmp_path: Path) -> None:
        with pytest.raises(UnreachableError, match="certificate"):
            await self.show(tmp_path, Authority(), ca=Authority().pem)

    async def test_no_verification(self, tmp_path: Path) -> None:
        assert await self.show(tmp_path, Authority(), insecure=True) == "nobody"

    async def test_server_name(self, tmp_path: Path) -> None:
        authority = Authority()
        with pytest.raises(UnreachableError, match="certificate"):
            await self.show(tmp_path, authority, "api.internal", ca=authority.pem)
        name = await self.show(
            tmp_path, authority, "api.internal", ca=authority.pem, tls_server_name="api.internal"
        )
        assert name == "nobody"

    async def test_bad_authority(self, tmp_path: Path) -> None:
        with pytest.raises(UnreachableError, match="is not a PEM certificate") as caught:
            await self.show(tmp_path, Authority(), ca=b"rubbish")
        assert isinstance(caught.value.__cause__, AccessError)

    async def test_key_of_another_certificate(self, tmp_path: Path) -> None:
        authority = Authority()
        credential = Credential(
            certificate=authority.issue("ann")[0], key=authority.issue("ann")[1]
        )
        with pytest.raises(UnreachableError, match="do not work together"):
            await self.show(
                tmp_path, authority, ca=authority.pem, credentials=FixedCredentials(credential)
            )


async def test_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Foreign([A])
    async with serving(proxy) as address:
        access = Access(server="http://cluster.invalid", proxy_url=address)
        async with HttpTransport(access) as http:
            await http.get(NODES, Key("", "n"))
        monkeypatch.setenv("http_proxy", address)
        async with HttpTransport(Access(server="http://other.invalid")) as http:
            await http.get(NODES, Key("", "n"))

    assert [request.headers["host"] for request in proxy.requests] == [
        ["cluster.invalid"],
        ["other.invalid"],
    ]
