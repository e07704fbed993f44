"""A foreign API server on a real socket, whose answers the test writes.

For what the embedded server never does: proxies' error pages, torn streams, refused tokens,
certificates of strangers.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.transport import Key

A = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7"}}
KEY = Key("default", "a")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Answer every request with a handler; yield the address."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(
    handler: Handler, tls: ssl.SSLContext | None = None, *, seconds: float = 10.0, **access: Any
) -> AsyncIterator[HttpTransport]:
    """Yield a transport to a server that answers with a handler."""
    async with serving(handler, tls) as server:
        made = Access(server=server, **access)
        async with HttpTransport(made, request_seconds=seconds) as transport:
            yield transport


@dataclass
class Request:
    """What arrived."""

    line: str
    headers: dict[str, list[str]]
    body: Any


@dataclass
class Foreign:
    """Answers requests in turn with what the test prepared, the last one indefinitely."""

    answers: Sequence[web.Response | dict[str, Any]]
    requests: list[Request] = field(default_factory=list)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        headers = {name.lower(): request.headers.getall(name) for name in request.headers}
        line = f"{request.method} {request.path_qs}"
        self.requests.append(Request(line, headers, json.loads(data) if data else None))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, dict):
            return web.json_response(answer)
        # A response object can be sent once only.
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


def status(code: int, **fields: Any) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, **fields}, status=code)


class Authority:
    """Signs certificates for tests."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-ca")])
        self._certificate = self._sign(self._name, self._key, ca=True)

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, name: str, *, host: str = "127.0.0.1", ends: datetime | None = None
    ) -> tuple[bytes, bytes]:
        """Return a certificate for a name and its key; it ends in an hour by default."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, host=host, ends=ends)
        return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def server_context(self, folder: Path, *, host: str = "127.0.0.1") -> ssl.SSLContext:
        """Return what a server needs that asks for client certificates."""
        certificate, key = self.issue("server", host=host)
        (folder / "server.crt").write_bytes(certificate)
        (folder / "server.key").write_bytes(key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        context.load_verify_locations(cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        ca: bool = False,
        host: str = "",
        ends: datetime | None = None,
    ) -> x509.Certificate:
        end = ends or datetime.now(UTC) + timedelta(hours=1)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - timedelta(hours=2))
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if host:
            numeric = host.replace(".", "").isdigit()
            name = x509.IPAddress(ip_address(host)) if numeric else x509.DNSName(host)
            builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
        return builder.sign(self._key, hashes.SHA256())
