"""The configuration file of Prometheus servers: which get a token, and whose CA they have.

    servers:
    - url: https://prometheus.monitoring.svc:9090
      bearerTokenFile: /etc/sully/prometheus/token
      caFile: /etc/sully/prometheus/ca.crt

Policies name only a URL. The administrator decides which servers get a token, so nobody who writes
a policy can have it sent elsewhere. The file has no secrets: it names the files that have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from sully.api.sully.policies.prometheus_validation import url_problem


class ServersError(ValueError):
    """The configuration cannot be used."""


class PrometheusServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How queries to a server authenticate."""

    url: str
    bearer_token_file: str = ""
    ca_file: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    servers: tuple[PrometheusServer, ...]


def parse_servers(document: Any) -> tuple[PrometheusServer, ...]:
    """Read the configuration; raise ServersError if it cannot be used."""
    try:
        servers = msgspec.convert(document, _File).servers
    except msgspec.ValidationError as error:
        raise ServersError(str(error)) from error
    for number, server in enumerate(servers):
        if problem := _problem(server):
            raise ServersError(f"servers[{number}]: {problem}")
    return servers


def _problem(server: PrometheusServer) -> str:
    if problem := url_problem(server.url):
        return f"url: {problem}"
    if not server.bearer_token_file and not server.ca_file:
        return "needs bearerTokenFile or caFile"
    if urlsplit(server.url).scheme != "https":
        return "url: must be an https URL: others could read the token"
    return ""


def server_of(servers: Iterable[PrometheusServer], url: str) -> PrometheusServer | None:
    """Return the configuration for a URL: of the same server, and of the same path or above it."""
    servers_below = (server for server in servers if _is_below(url, server.url))
    return max(servers_below, key=lambda server: len(server.url), default=None)


def _is_below(url: str, base: str) -> bool:
    try:
        requested, known = urlsplit(url), urlsplit(base)
        same = (requested.scheme, requested.hostname, requested.port or 443) == (
            known.scheme,
            known.hostname,
            known.port or 443,
        )
    except ValueError:
        return False
    # A server could resolve dots in a path to another one.
    path = f"{requested.path.rstrip('/')}/"
    return same and "/." not in path and path.startswith(f"{known.path.rstrip('/')}/")
