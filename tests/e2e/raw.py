"""Plain HTTPS to a control plane, for what a client library would hide."""

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
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
    def admin(cls, kubeconfig: Path, scratch: Path) -> "Raw":
        """Log in as the kubeconfig says."""
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

    @contextmanager
    def open(
        self, verb: str, path: str, body: object = None, kind: str = "application/json"
    ) -> Iterator[http.client.HTTPResponse]:
        """Send one request and hand out the answer before its body has come."""
        connection = http.client.HTTPSConnection(
            self._host, context=self._context, timeout=PATIENCE
        )
        try:
            content = None if body is None else json.dumps(body)
            connection.request(verb, path, content, {"Content-Type": kind})
            yield connection.getresponse()
        finally:
            connection.close()

    def announce(self, verb: str, path: str, headers: dict[str, str]) -> Answer:
        """Promise a body, never send it, and return the answer that comes all the same."""
        connection = http.client.HTTPSConnection(
            self._host, context=self._context, timeout=PATIENCE
        )
        try:
            connection.putrequest(verb, path)
            for name, value in {"Content-Length": "1000", **headers}.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()


def authority(kubeconfig: Path) -> bytes:
    """Return the certificate of the authority that a kubeconfig trusts."""
    config = yaml.safe_load(kubeconfig.read_text())
    data = config["clusters"][0]["cluster"]["certificate-authority-data"]
    return base64.b64decode(data)


def trusting(certificate: bytes) -> ssl.SSLContext:
    """Return what checks a server against one authority only."""
    return ssl.create_default_context(cadata=certificate.decode())
