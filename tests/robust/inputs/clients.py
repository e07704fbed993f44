"""Clients that send exactly the given bytes, right or wrong."""

import base64
import contextlib
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from hostile.target import parse, receive
from sully.testing.patience import PATIENCE


class Client:
    """Connects as the admin of a kubeconfig."""

    def __init__(self, kubeconfig: Path, scratch: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = str(cluster["server"])
        self.ca, self.pem = scratch / "ca.pem", scratch / "admin.pem"
        self.ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        self.pem.write_bytes(
            base64.b64decode(user["client-certificate-data"])
            + base64.b64decode(user["client-key-data"])
        )
        self.context = ssl.create_default_context(cafile=str(self.ca))
        self.context.load_cert_chain(self.pem)

    def connect(self) -> ssl.SSLSocket:
        """Open a connection."""
        place = urlsplit(self.url)
        plain = socket.create_connection((place.hostname, place.port), timeout=PATIENCE)
        return self.context.wrap_socket(plain, server_hostname=place.hostname)

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        media: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Send one request as it is; return the code and the body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        if body:
            head += f"content-type: {media}\r\ncontent-length: {len(body)}\r\n"
        with self.connect() as connection:
            # It may refuse before it has read all; then the answer is there already.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                connection.sendall(head.encode() + b"\r\n" + body)
            return parse(receive(connection))
