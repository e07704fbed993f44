"""Sends a query to a Prometheus server.

The URL comes from a policy, so the server is not trusted: redirects are not followed, no cookies
are sent, and credentials only where the administrator configured them for the URL; proxies of the
environment are not used, link-local addresses are refused, the response is limited in size and
time, and nothing of it but samples is ever shown.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Sequence
from pathlib import Path

from sully.api.sully.policies.prometheus_validation import url_problem
from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.client.http.connection_errors import describe_connection_error
from sully.client.http.resolver import guarded_resolver
from sully.domain.devicepolicies.sources.prometheus import BODY_MAX, QueryError, timeout_of
from sully.domain.devicepolicies.sources.prometheus_servers import PrometheusServer, server_of

_PATH = "/api/v1/query"
_CHUNK = 1 << 16


async def query(
    source: DeviceTaintPolicyPrometheus, servers: Sequence[PrometheusServer] = ()
) -> bytes:
    """Return the body of a successful response; raise QueryError with the reason otherwise."""
    import aiohttp

    from sully.client.http.connector import Connector

    if problem := url_problem(source.url):
        # Another server may have stored it.
        raise QueryError(f"the url {problem}")
    seconds, server = timeout_of(source).total_seconds(), server_of(servers, source.url)
    tls = await asyncio.to_thread(_tls, source, server)
    headers = {"Accept-Encoding": "identity"}
    if server is not None and server.bearer_token_file:
        token = (await asyncio.to_thread(_read, server.bearer_token_file)).strip()
        headers["Authorization"] = f"Bearer {token}"
    try:
        async with (
            aiohttp.ClientSession(
                connector=Connector(ssl=tls, resolver=guarded_resolver()),
                timeout=aiohttp.ClientTimeout(total=seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.get(
                source.url.rstrip("/") + _PATH,
                params={"query": source.query, "timeout": f"{seconds:g}s"},
                headers=headers,
                allow_redirects=False,
            ) as answer,
        ):
            if answer.status != 200:
                raise QueryError(f"the server answered {answer.status}")
            return await _body(answer)
    except TimeoutError:
        raise QueryError(f"no response within {seconds:g}s") from None
    except (aiohttp.ClientError, ValueError) as error:
        raise QueryError(describe_connection_error(error)) from None


async def _body(answer: object) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):  # type: ignore[attr-defined]  # aiohttp is imported late
        body += chunk
        if len(body) > BODY_MAX:
            raise QueryError(f"the response has more than {BODY_MAX} bytes")
    return bytes(body)


def _read(path: str) -> str:
    """Read a file of the configuration; it may change while the controller runs."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        # Users who read the status of a policy need not know paths.
        raise QueryError("a file of the configured credentials cannot be read") from None


def _tls(source: DeviceTaintPolicyPrometheus, server: PrometheusServer | None) -> ssl.SSLContext:
    """Return whom to trust; what the administrator configured counts more than the policy.

    Otherwise a policy could name a CA of its own for a server that gets a token.
    """
    if server is not None and server.ca_file:
        return _trusting(_read(server.ca_file), "the configured caFile")
    has_token = server is not None and server.bearer_token_file
    if source.ca_bundle and not has_token:
        try:
            text = base64.b64decode(source.ca_bundle).decode()
        except ValueError:
            text = ""
        return _trusting(text, "caBundle")
    return ssl.create_default_context()


def _trusting(certificates: str, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=certificates)
    except (ValueError, ssl.SSLError):
        raise QueryError(f"{name} has no valid certificates") from None
    return context
