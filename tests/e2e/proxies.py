"""A proxy to test with: it opens tunnels, and notes which."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """A running proxy. Wherever one asks to be led, it leads to the one server it knows."""

    url: str
    target: tuple[str, int]
    asked: list[str] = field(default_factory=list)
    """Where to, in the order of asking."""
    shown: set[str] = field(default_factory=set)
    """What was shown to it as authorization."""


class _Tunnel(socketserver.StreamRequestHandler):
    proxy: Proxy

    def handle(self) -> None:
        verb, where, _ = self.rfile.readline().decode().split()
        headers = {}
        while line := self.rfile.readline().decode().strip():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        self.proxy.asked.append(f"{verb} {where}")
        self.proxy.shown.add(headers.get("proxy-authorization", ""))
        with socket.create_connection(self.proxy.target) as there:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_carry, args=(there, self.connection), daemon=True)
            back.start()
            _carry(self.connection, there)
            back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    # Whoever listens on either side must hear that there is no more.
    for item in (source, target):
        with suppress(OSError):
            item.shutdown(socket.SHUT_RDWR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def proxy_to(target: tuple[str, int]) -> Iterator[Proxy]:
    """Run a proxy until the block ends."""
    proxy = Proxy("", target)
    handler = type("Tunnel", (_Tunnel,), {"proxy": proxy})
    with _Server(("127.0.0.1", 0), handler) as server:
        proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            server.shutdown()
