"""Starts `sully` commands without loading Python and Sully each time.

with start("devices", "--watch", env={...}, stdout=subprocess.PIPE) as child:
    ...child.send_signal(signal.SIGINT)

done = run("devices", "-o", "json")

with start_module("fakes.driver", "--nodes", "2", folder=TESTS) as child:
    ...

As the fork server of `multiprocessing`: a process that has imported what commands need forks for
each of them. A command is still a process of its own and a child of the caller, so signals, exit
codes and waiting are those of `subprocess`. Only the imports are shared: they are most of the
processor time of a short command. Where a fork could behave differently (another locale,
another user, no Linux), the command is started with an interpreter of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, TextIO

_MAIN = "sully.cli.main"
COMMAND = (sys.executable, "-m", _MAIN)
_SET_CHILD_SUBREAPER = 36  # prctl(2)
_MOST_BYTES = 1 << 20
_UTF8 = ("", "C", "POSIX", "C.UTF-8", "C.utf8", "en_US.UTF-8")
_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
_UNDERSTOOD = frozenset(("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"))
_NOT_LOADED = ("sully.testing", "sully.store.etcd")  # gRPC must not be forked
_IMPORTED_LATE = (
    "aiohttp",
    "apsw",
    "encodings.idna",
    "prometheus_client",
    "structlog",
    "uvloop",
    "yaml",
)
"""What commands import when they run, not with their modules."""


class _Order(NamedTuple):
    """A command to fork, as it is sent to the fork server."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    directory: str
    new_session: bool


class ForkedProcess(subprocess.Popen[Any]):
    """A `Popen` of a Python module that is forked where that makes no difference."""

    def _execute_child(self, args: list[str], *arguments: Any) -> None:
        # As `subprocess` passes them since Python 3.11.
        _, preexec, _, pass_fds, cwd, env = arguments[:6]
        stdin, to_stdin, from_stdout, stdout, from_stderr, stderr = arguments[9:15]
        gid, gids, uid, umask, new_session, group = arguments[16:]
        environment = dict(os.environ if env is None else env)
        module, *rest = args[len(COMMAND) - 1 :]
        if preexec is not None:
            # It would fork the caller, and gRPC's threads in it abort the forked process.
            raise ValueError("preexec_fn is not supported")
        changed = any(value is not None for value in (gid, gids, uid))
        if changed or pass_fds or umask >= 0 or group != -1 or not _can_fork(module, environment):
            start_new = super()._execute_child  # type: ignore[misc]  # private: not in the stubs
            start_new(args, *arguments)
            return
        directory = os.path.abspath(cwd or os.curdir)
        order = _Order(module, rest, environment, directory, bool(new_session))
        own = (stdin, stdout, stderr)
        streams = [number if fd == -1 else fd for number, fd in enumerate(own)]
        self.pid = _server().fork(order, streams)
        self._child_created = True
        close = self._close_pipe_fds  # type: ignore[attr-defined]  # private: not in the stubs
        close(stdin, to_stdin, from_stdout, stdout, from_stderr, stderr)


def start(*arguments: str, **options: Any) -> ForkedProcess:
    """Start a command; the options are those of `subprocess.Popen`."""
    return ForkedProcess([*COMMAND, *arguments], **options)


def start_module(
    name: str, *arguments: str, folder: os.PathLike[str], **options: Any
) -> ForkedProcess:
    """Start a module of a folder, as `python -m`; the options are those of `Popen`."""
    env = {**(options.pop("env", None) or os.environ), "PYTHONPATH": str(folder)}
    return ForkedProcess([*COMMAND[:-1], name, *arguments], env=env, **options)


def run(
    *arguments: str, stdin_text: str | None = None, timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; return what it printed. The options are those of `Popen`."""
    options.setdefault("stdin", None if stdin_text is None else subprocess.PIPE)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with start(*arguments, **pipes | options) as child:
        try:
            printed, failure = child.communicate(stdin_text, timeout=timeout)
        except BaseException:
            child.kill()
            raise
    return subprocess.CompletedProcess(child.args, child.returncode, printed, failure)


def _can_fork(module: str, environment: Mapping[str, str]) -> bool:
    """Report whether a module in this environment would run no differently when it is forked."""
    odd = {name for name in environment if name.startswith("PYTHON")} - _UNDERSTOOD
    if module != _MAIN:
        odd.discard("PYTHONPATH")  # for the module itself, not for those of Sully
    return (
        sys.platform == "linux"
        and all(environment.get(name, "") == os.environ.get(name, "") for name in (*odd, "TZ"))
        and all(environment.get(name, "") in _UTF8 for name in _LOCALE)
    )


class _ForkServer:
    """The client's end of a fork server, which lives as long as this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # A command's parent ends immediately; this makes the command a child of ours.
        if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            command = [sys.executable, "-m", "sully.testing.forkserver", str(theirs.fileno())]
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._socket = ours
        atexit.register(self.close)

    def fork(self, order: _Order, streams: list[int]) -> int:
        """Have a command forked with these standard streams; return its process id."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(order).encode()], streams)
            answer = self._socket.recv(32)
        if not answer:
            raise RuntimeError("the fork server ended")
        return int(answer)

    def close(self) -> None:
        """End the fork server; commands that still run are not stopped."""
        self._socket.close()
        self._child.wait()


_servers: dict[int, _ForkServer] = {}
_starting = threading.Lock()


def _server() -> _ForkServer:
    with _starting:
        own = os.getpid()
        if own not in _servers:
            _servers[own] = _ForkServer()
        return _servers[own]


def _load() -> None:
    """Import what commands and servers need, but nothing that depends on their environment."""
    import sully

    def failed(name: str) -> NoReturn:
        raise ImportError(name)

    for module in pkgutil.walk_packages(sully.__path__, "sully.", failed):
        if not module.name.startswith(_NOT_LOADED):
            importlib.import_module(module.name)
    for name in _IMPORTED_LATE:
        importlib.import_module(name)

    from sully.api import build_scheme

    build_scheme()  # its tables are then read for all servers


def _serve(connection: socket.socket) -> _Order | None:
    """Fork for each order; return the order in the forked process, None at the end of all."""
    _load()
    gc.collect()
    gc.freeze()
    while True:
        data, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
        if not data:
            return None
        order = _Order(*json.loads(data))
        reading, writing = os.pipe()
        middle = os.fork()
        if middle == 0:
            if (pid := os.fork()) != 0:
                os.write(writing, str(pid).encode())
                os._exit(0)
            os.close(reading)
            os.close(writing)
            connection.close()
            _take_over(order, streams)
            return order
        os.close(writing)
        for stream in streams:
            os.close(stream)
        os.waitpid(middle, 0)
        connection.send(os.read(reading, 32))
        os.close(reading)


def _take_over(order: _Order, streams: list[int]) -> None:
    """Bring a forked process into the state of a new interpreter."""
    if order.new_session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.directory)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = _text(0, "r")
    sys.stdout = _text(1, "w")
    sys.stderr = _text(2, "w")


def _text(number: int, mode: str) -> TextIO:
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    lines = os.isatty(number) or unbuffered or number == 2
    errors = "backslashreplace" if number == 2 else "surrogateescape"
    file = open(number, f"{mode}b", closefd=False)  # noqa: SIM115 - open as long as the process
    return io.TextIOWrapper(
        file, encoding="utf-8", errors=errors, line_buffering=lines, write_through=unbuffered
    )


def _run(order: _Order) -> int:
    if order.module != _MAIN:
        sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
        sys.argv = [order.module, *order.arguments]
        runpy.run_module(order.module, run_name="__main__", alter_sys=True)
        return 0

    from sully.cli import main

    sys.argv = [str(main.__file__), *order.arguments]
    return main.program()


def _end(code: int) -> NoReturn:
    """End a forked process as an interpreter does, but without freeing what it has loaded.

    To free it would copy every page that is shared with the fork server: most of the processor time
    of a short command.
    """
    wait_for_threads = threading._shutdown  # type: ignore[attr-defined]  # private: not in the stubs
    wait_for_threads()
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        sys.exit(code)  # the interpreter reports it
    os._exit(code)


if __name__ == "__main__":
    with contextlib.closing(socket.socket(fileno=int(sys.argv[1]))) as served:
        ordered = _serve(served)
    if ordered is not None:
        _end(_run(ordered))
