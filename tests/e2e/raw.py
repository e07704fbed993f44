"""Plain HTTPS to a control plane, for what a client library would hide."""

import base64
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

from sully.testing.patience import PATIENCE


@dataclass(frozen=True, slots=True)
class Answer:
    """A status code and a body."""

    code: int
    body: bytes

    def json(self) -> Any:
        """Return the body's content."""
        return json.loads(self.body)


class Raw:
    """A user of the API without any library between."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        self._host = urlsplit(address).netloc
        self._context = context

    @classmethod
    def admin(cls, kubeconfig: Path, scratch: Path) -> Self:
        """Log in with the kubeconfig."""
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = trusting(authority(kubeconfig))
        certificate, key = scratch / "client.crt", scratch / "client.key"
        certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
        key.write_bytes(base64.b64decode(user["client-key-data"]))
        context.load_cert_chain(certificate, key)
        return cls(cluster["server"], context)

    def request(
        self, verb: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Answer:
        """Send one request on a connection of its own."""
        with self.open(verb, path, body, kind) as answer:
            return Answer(answer.status, answer.read())

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection; the caller closes it."""
        return http.client.HTTPSConnection(self._host, context=self._context, timeout=PATIENCE)

    @contextmanager
    def open(
        self, verb: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Iterator[http.client.HTTPResponse]:
        """Send one request and hand out the answer before its body has come."""
        connection = self.connect()
        try:
            content = None if body is None else json.dumps(body)
            connection.request(verb, path, content, {"Content-Type": kind})
            yield connection.getresponse()
        finally:
            connection.close()

    def announce(self, verb: str, path: str, headers: dict[str, str]) -> Answer:
        """Promise a body, never send it, and return the answer that comes all the same."""
        connection = self.connect()
        try:
            connection.putrequest(verb, path)
            for name, value in {"Content-Length": "1000", **headers}.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()


class KeptRaw(Raw):
    """One whose requests share a connection: most of the cost of a small request is its handshake.

    One at a time, and for a server that stays: it closes a connection only if that is idle.
    """

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        super().__init__(address, context)
        self._connection = self.connect()
        self._lock = threading.Lock()

    def request(
        self, verb: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Answer:
        """Send one request, on a new connection if the server has closed the last one."""
        content = None if body is None else json.dumps(body)
        with self._lock:
            try:
                return self._exchange(verb, path, content, kind)
            except (ConnectionError, ssl.SSLEOFError):
                self._connection.close()
                return self._exchange(verb, path, content, kind)

    def _exchange(self, verb: str, path: str, content: str | None, kind: str) -> Answer:
        self._connection.request(verb, path, content, {"Content-Type": kind})
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.read())

    def __del__(self) -> None:
        self._connection.close()


def authority(kubeconfig: Path) -> bytes:
    """Return the certificate of the authority that a kubeconfig trusts."""
    config = yaml.safe_load(kubeconfig.read_text())
    data = config["clusters"][0]["cluster"]["certificate-authority-data"]
    return base64.b64decode(data)


def trusting(certificate: bytes) -> ssl.SSLContext:
    """Return what checks a server against one authority only."""
    return ssl.create_default_context(cadata=certificate.decode())
