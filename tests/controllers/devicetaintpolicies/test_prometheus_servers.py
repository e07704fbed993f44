"""Which Prometheus servers get a token: only those that the administrator names."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.client.http.prometheus import query
from sully.domain.devicepolicies.sources.prometheus import QueryError
from sully.domain.devicepolicies.sources.prometheus_servers import (
    PrometheusServer,
    ServersError,
    parse_servers,
    server_of,
)
from sully.runtime.clock import SystemClock
from sully.server.net.issuing import ServerCertificate
from sully.server.net.tls import Authority

URL = "https://prometheus.example.com:9090"
WRONG: dict[str, tuple[Any, str]] = {
    "nothing": (None, "Expected `object`, got `null`"),
    "a field that does not exist": ({"servers": [{"url": URL, "token": "x"}]}, "token"),
    "no URL": ({"servers": [{"url": "x", "caFile": "f"}]}, "servers[0]: url: must be an http"),
    "nothing to send": ({"servers": [{"url": URL}]}, "needs bearerTokenFile or caFile"),
    "a token in plain text": (
        {"servers": [{"url": "http://p", "bearerTokenFile": "f"}]},
        "must be an https URL",
    ),
}


@pytest.mark.parametrize(("document", "want"), WRONG.values(), ids=WRONG.keys())
def test_refused(document: Any, want: str) -> None:
    with pytest.raises(ServersError) as error:
        parse_servers(document)

    assert want in str(error.value)


def test_read() -> None:
    got = parse_servers({"servers": [{"url": URL, "bearerTokenFile": "t", "caFile": "c"}]})

    assert got == (PrometheusServer(URL, "t", "c"),)


OTHERS = {
    f"{URL}/": URL,
    f"{URL}/a": f"{URL}/a",
    f"{URL}/a/b/": f"{URL}/a",
    f"{URL}/ab": URL,
    f"{URL}/a/../c": "",
    "https://prometheus.example.com": "",
    "http://prometheus.example.com:9090": "",
    "https://prometheus.example.com.evil.test:9090": "",
    "https://evil.test:9090/prometheus.example.com": "",
    "https://prometheus.example.com:x": "",
}


@pytest.mark.parametrize(("url", "want"), OTHERS.items())
def test_which_server_a_url_is_of(url: str, want: str) -> None:
    servers = [PrometheusServer(URL, "t"), PrometheusServer(f"{URL}/a", "u")]
    server = server_of(servers, url)

    assert (server.url if server is not None else "") == want


async def test_a_token_over_tls(tmp_path: Path) -> None:
    clock = SystemClock()
    authority = Authority.open(tmp_path, clock.now())
    serving = ServerCertificate(tmp_path, authority, ("127.0.0.1",))
    serving.ensure(clock.now())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")

    async def respond(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("Authorization", "none"))

    app = web.Application()
    app.router.add_get("/{path:.*}", respond)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    url, token, ca = f"https://127.0.0.1:{port}", tmp_path / "token", tmp_path / "ca.crt"
    bundle = base64.b64encode(ca.read_bytes()).decode()
    own = DeviceTaintPolicyPrometheus(url=url, query="up", ca_bundle=bundle)
    source = DeviceTaintPolicyPrometheus(url=url, query="up")
    configured = [PrometheusServer(url, str(token), str(ca))]
    try:
        assert await query(own) == b"none"
        with pytest.raises(QueryError, match="credentials cannot be read"):
            await query(source, configured)
        token.write_text("secret\n")
        assert await query(source, configured) == b"Bearer secret"
        # It may be rotated.
        token.write_text("other")
        assert await query(source, configured) == b"Bearer other"
        # A policy names no CA for a server that gets a token.
        with pytest.raises(QueryError):
            await query(own, [PrometheusServer(url, str(token))])
        with pytest.raises(QueryError, match="caFile has no valid certificates"):
            await query(source, [PrometheusServer(url, "", str(token))])
    finally:
        await runner.cleanup()
