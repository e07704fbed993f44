"""Sends a query to a Prometheus server.

The URL comes from a policy, so the server is not trusted: redirects are not followed, no
credentials or cookies are sent, proxies of the environment are not used, link-local addresses are
refused, the response is limited in size and time, and nothing of it but samples is ever shown.
"""

from __future__ import annotations

import base64
import ssl

from sully.api.sully.prometheus_validation import url_problem
from sully.api.sully.types import DeviceTaintPolicyPrometheus
from sully.client.http.connection_errors import describe_connection_error
from sully.client.http.resolver import guarded_resolver
from sully.domain.devicepolicies.prometheus import BODY_MAX, QueryError, timeout_of

_PATH = "/api/v1/query"
_CHUNK = 1 << 16


async def query(source: DeviceTaintPolicyPrometheus) -> bytes:
    """Return the body of a successful response; raise QueryError with the reason otherwise."""
    import aiohttp

    if problem := url_problem(source.url):
        # Another server may have stored it.
        raise QueryError(f"the url {problem}")
    seconds, tls = timeout_of(source).total_seconds(), _tls(source)
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=tls, resolver=guarded_resolver()),
                timeout=aiohttp.ClientTimeout(total=seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.get(
                source.url.rstrip("/") + _PATH,
                params={"query": source.query, "timeout": f"{seconds:g}s"},
                headers={"Accept-Encoding": "identity"},
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


def _tls(source: DeviceTaintPolicyPrometheus) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if source.ca_bundle:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=base64.b64decode(source.ca_bundle).decode())
        except (ValueError, ssl.SSLError):
            raise QueryError("caBundle has no valid certificates") from None
    return context
