"""A program `sully` for shells, which starts without loading Python and Sully each time.

with program(folder):
    subprocess.run(["bash", "-c", "sully devices | head -1"], env={"PATH": f"{folder}:..."})

The program passes its arguments, environment and standard streams to this process, which has the
command forked (forkserver.py) and answers with its exit code. Signals do not reach the command.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sully.testing.forkserver import start

_MOST_BYTES = 1 << 20
_SCRIPT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({address!r})
    order = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(server, [order], [0, 1, 2])
    code = int(server.recv(32) or 1)
os._exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def program(folder: Path) -> Iterator[None]:
    """Put a program `sully` into a folder that works until the block ends."""
    with (
        # The path of a socket has to be short.
        tempfile.TemporaryDirectory(prefix="sully-") as name,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
    ):
        address = f"{name}/socket"
        server.bind(address)
        server.listen()
        path = folder / "sully"
        path.write_text(_SCRIPT.format(python=sys.executable, address=address))
        path.chmod(0o755)
        serving = threading.Thread(target=_serve, args=(server,), daemon=True)
        serving.start()
        try:
            yield
        finally:
            # Closing a socket does not wake a thread that waits for a connection.
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(server: socket.socket) -> None:
    with suppress(OSError):  # shut down
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_run, args=(connection,), daemon=True).start()


def _run(connection: socket.socket) -> None:
    with connection:
        data, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
        arguments, environment, directory = json.loads(data)
        stdin, stdout, stderr = streams
        try:
            child = start(
                *arguments,
                env=environment,
                cwd=directory,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        finally:
            for stream in streams:
                os.close(stream)
        # The client may have been killed meanwhile.
        with suppress(OSError):
            connection.send(str(child.wait()).encode())
