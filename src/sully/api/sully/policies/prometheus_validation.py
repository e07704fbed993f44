"""Validation of sources that query Prometheus: where to, what, and how often."""

import base64
import binascii
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from sully.api.sully.durations import duration, validate_duration
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.addresses import REFUSED_ADDRESS, is_refused

Obj = dict[str, Any]
Errors = Iterator[FieldError]

QUERY_MAX = 4096
URL_MAX = 2048
TIMEOUT_MAX = timedelta(seconds=60)
TIMEOUT_TOO_LONG = "must be at most 60s"
DEFAULTS: Obj = {"interval": "30s", "timeout": "10s"}
DEVICE_LABELS = ("index", "node", "pciAddress", "uuid")


def default_prometheus(source: Obj) -> None:
    """Set what the client left out of a source."""
    prometheus = source.get("prometheus")
    if isinstance(prometheus, dict):
        for name, value in DEFAULTS.items():
            prometheus[name] = prometheus.get(name) or value


def validate_prometheus(source: Obj, at: Path) -> Errors:
    """Yield everything wrong with a query."""
    yield from _url(source["url"], at.child("url"))
    query, where = source["query"], at.child("query")
    if not query.strip():
        yield where.required()
    elif len(query.encode()) > QUERY_MAX:
        yield where.too_long(QUERY_MAX)
    for name in ("interval", "timeout"):
        yield from validate_duration(source[name], at.child(name), required=True)
    if duration(source["interval"]).total_seconds() < 1:
        yield at.child("interval").invalid(source["interval"], "must be at least 1s")
    elif duration(source["timeout"]) > duration(source["interval"]):
        yield at.child("timeout").invalid(source["timeout"], "must not exceed the interval")
    if duration(source["timeout"]) > TIMEOUT_MAX:
        yield at.child("timeout").invalid(source["timeout"], TIMEOUT_TOO_LONG)
    for name in sorted(source.get("labels") or {}):
        if name not in DEVICE_LABELS:
            yield at.child("labels").key(name).not_supported(name, list(DEVICE_LABELS))
    yield from _certificates(source.get("caBundle", ""), at.child("caBundle"))


def url_problem(url: str) -> str:
    """Return why a URL cannot be queried; empty if it can."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "must be a URL"
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return "must be an http or https URL with a host"
    if parts.username is not None or parts.password is not None:
        return "must not have credentials: policies can be read by many"
    if is_refused(host):
        return REFUSED_ADDRESS
    if parts.query or parts.fragment:
        return "must not have a query or a fragment"
    return ""


def _url(url: str, at: Path) -> Errors:
    if not url:
        yield at.required()
    elif len(url.encode()) > URL_MAX:
        yield at.too_long(URL_MAX)
    elif problem := url_problem(url):
        yield at.invalid(url, problem)


def _certificates(bundle: str, at: Path) -> Errors:
    try:
        text = base64.b64decode(bundle, validate=True)
    except binascii.Error:
        yield at.invalid("", "must be base64")
        return
    if bundle and b"-----BEGIN CERTIFICATE-----" not in text:
        yield at.invalid("", "must have certificates in PEM")
