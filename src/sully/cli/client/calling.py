"""How a command speaks to a server: connect, work, and say in one line what went wrong.

def run(options: argparse.Namespace) -> int:
    return call(options, "devices", _show)

async def _show(session: Session) -> int: ...
"""

import argparse
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sully.client.http import HttpTransport
    from sully.client.transport import Kind
    from sully.runtime.clock import Clock
    from sully.views.snapshot import Snapshot

INTERRUPTED = 130
"""The exit code of what was ended by Ctrl-C, as shells have it."""
PIPE_CLOSED = 141
"""The exit code of what nobody reads any more."""


class CommandError(Exception):
    """A command cannot go on; the text names the object and the remedy."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with."""

    options: argparse.Namespace
    command: str
    clock: "Clock"
    connection: "HttpTransport | None" = None
    server: str = ""
    """Where the server is, for people."""
    default_namespace: str = "default"
    """The one that the kubeconfig names; for commands that need exactly one."""

    @property
    def transport(self) -> "HttpTransport":
        """Return the way to the server; a command that was given a file has none."""
        if self.connection is None:
            raise CommandError("this needs a server, and --snapshot is a file", code=2)
        return self.connection

    @property
    def namespace(self) -> str:
        """Return the namespace to look into; empty means all."""
        return str(getattr(self.options, "namespace", "") or "")

    def warn(self, text: str) -> None:
        """Say something beside the answer."""
        print(f"sully {self.command}: {text}", file=sys.stderr)


def call(
    options: argparse.Namespace, command: str, work: Callable[[Session], Awaitable[int]]
) -> int:
    """Run the work of a command and return its exit code; failures become one line each."""
    # Late imports: `--help` needs none of this.
    import uvloop

    from sully.client.credentials import AccessError
    from sully.client.transport import UnreachableError, UnreadableError
    from sully.machinery.errors import ApiError

    # What a single answer reads lives until the end; looking for garbage in it is wasted.
    wasteful = not getattr(options, "watch", False) and gc.isenabled()
    if wasteful:
        gc.disable()
    try:
        return int(uvloop.run(_work(options, command, work)))
    except CommandError as error:
        code, text = error.code, str(error)
    except ApiError as error:
        code, text = 1, _explained(error)
    except UnreachableError as error:
        code, text = 1, f"{error}\n  is the server running, and is this the right kubeconfig?"
    except BrokenPipeError:
        # Whoever read has enough (`| head`); the interpreter must not complain at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (AccessError, UnreadableError, OSError) as error:
        code, text = 1, str(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if wasteful:
            gc.enable()
    print(f"sully {command}: {text}", file=sys.stderr)
    return code


async def _work(
    options: argparse.Namespace, command: str, work: Callable[[Session], Awaitable[int]]
) -> int:
    async with _session(options, command) as session:
        return await work(session)


@asynccontextmanager
async def _session(options: argparse.Namespace, command: str) -> AsyncIterator[Session]:
    from sully.client.adapting import AdaptingTransport
    from sully.client.kubeconfig import find_access
    from sully.runtime.clock import SystemClock

    if getattr(options, "snapshot", ""):
        yield Session(options, command, SystemClock())
        return
    access = find_access(options.kubeconfig, options.context)
    async with AdaptingTransport(access) as transport:
        yield Session(
            options, command, SystemClock(), transport, access.server, access.namespace or "default"
        )


def _explained(error: Any) -> str:
    from sully.machinery.errors import Forbidden, Unauthorized

    if isinstance(error, Unauthorized):
        return f"{error.message}\n  the kubeconfig's credentials are not accepted; get new ones"
    if isinstance(error, Forbidden):
        return f"{error.message}\n  ask an admin for a role that allows it"
    return str(error.message)


async def take(
    session: Session,
    kinds: Iterable["Kind[Any]"],
    *,
    needed: Sequence["Kind[Any]"] = (),
    namespace: str = "",
) -> "Snapshot":
    """Return a snapshot of these kinds: of the server, or from the file that the user named.

    Without the `needed` kinds there is no answer; what else may not be seen is warned of.
    """
    from sully.views.loading import load

    file = getattr(session.options, "snapshot", "")
    if file:
        found = read_file(file, session)
    else:
        found = await load(session.transport, kinds, now=session.clock.now(), namespace=namespace)
    for gap in found.gaps:
        if gap.kind in needed and gap.why != "not in the file":
            raise CommandError(_missing(gap.kind.plural, gap.message))
        if gap.why == "not allowed":
            session.warn(f"warning: {gap.message}; the answer goes without {gap.kind.plural}")
    return found


def _missing(plural: str, message: str) -> str:
    return f"{message}\n  without {plural} there is no answer"


def read_file(name: str, session: Session) -> "Snapshot":
    """Return the snapshot in a file; `-` is the standard input."""
    from sully.views.snapshotfile import SnapshotError, read_snapshot

    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return read_snapshot(data, now=session.clock.now())
    except SnapshotError as error:
        raise CommandError(f"{name}: {error}") from error
