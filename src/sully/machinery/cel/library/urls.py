"""URLs: absolute ones, or absolute paths, as an HTTP request line may have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.values import register

URL: Final = types.opaque("kubernetes.URL")
_PARTS: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?]*))?"
    r"(?P<path>[^?]*)(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_HOST: Final = re.compile(r"[ \"<>\\^`{|}]")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_SAFE_PATH: Final = "/:@!$&'()*+,;=~-._"


class Url:
    """A parsed URL."""

    __slots__ = ("host", "path", "query", "scheme", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        match = _PARTS.fullmatch(text)
        if match is None or not text or _CONTROL.search(text):
            raise _invalid(text)
        self.scheme = (match["scheme"] or "").lower()
        self.path = match["path"]
        self.query = match["query"] or ""
        self.host = _host(text, match["authority"])
        absolute = bool(self.scheme) or self.path.startswith("/")
        if not absolute or _BAD_ESCAPE.search(self.path):
            raise _invalid(text)

    @property
    def hostname(self) -> str:
        """Return the host without a port and without the brackets of an IPv6 address."""
        if self.host.startswith("["):
            return self.host[1 : self.host.index("]")]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        """Return the port, or nothing."""
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def escaped_path(self) -> str:
        """Return the path in the form a request has it."""
        return quote(unquote(self.path), safe=_SAFE_PATH) if _needs_escape(self.path) else self.path

    def parameters(self) -> dict[str, list[str]]:
        """Return the query: every key with its values, in order."""
        parameters_by_name: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            key, _, value = pair.partition("=")
            if pair and ";" not in pair and not _BAD_ESCAPE.search(pair):
                parameters_by_name.setdefault(_decoded(key), []).append(_decoded(value))
        return parameters_by_name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


register(Url, URL)


def _invalid(text: str) -> EvaluationError:
    return EvaluationError(
        f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
    )


def _host(text: str, authority: str | None) -> str:
    host = (authority or "").rpartition("@")[2]
    bracketed = host.startswith("[")
    if bracketed and "]" not in host:
        raise _invalid(text)
    tail = host.rpartition("]")[2] if bracketed else host[len(host.partition(":")[0]) :]
    if not _PORT.fullmatch(tail) or _BAD_HOST.search(host):
        raise _invalid(text)
    return host


def _needs_escape(path: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9/:@!$&'()*+,;=~._%\[\]-]*", path) is None


def _decoded(text: str) -> str:
    return unquote(text.replace("+", " "))


def _is_url(text: str) -> bool:
    try:
        Url(text)
    except EvaluationError:
        return False
    return True


def _rows() -> Iterator[Row]:
    name = URL.name
    yield "string_to_url", f"url(string) -> {name}", Url
    yield "is_url_string", "isURL(string) -> bool", _is_url
    yield "url_get_scheme", f"{name}:getScheme() -> string", lambda url: url.scheme
    yield "url_get_host", f"{name}:getHost() -> string", lambda url: url.host
    yield "url_get_hostname", f"{name}:getHostname() -> string", lambda url: url.hostname
    yield "url_get_port", f"{name}:getPort() -> string", lambda url: url.port
    yield "url_get_escaped_path", f"{name}:getEscapedPath() -> string", lambda u: u.escaped_path
    yield "url_get_query", f"{name}:getQuery() -> map(string, list(string))", Url.parameters


def urls() -> Library:
    return library(_rows(), {URL.name: URL})
