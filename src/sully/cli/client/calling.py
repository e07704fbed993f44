"""How a command speaks to a server: connect, work, and say in one line what went wrong.

def run(options: argparse.Namespace) -> int:
    return call(options, "devices", _show)

async def _show(session: Session) -> int: ...
"""

import argparse
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from errno import ENOSPC
from typing import TYPE_CHECKING

from sully.cli.client.flags import impersonation
from sully.cli.process import INTERRUPTED, PIPE_CLOSED, hush

if TYPE_CHECKING:
    from sully.client.http.transport import HttpTransport
    from sully.runtime.clock import Clock


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
    kept: dict[str, bytes] = field(default_factory=dict)
    """What can be read only once: the standard input, as `-`."""

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

    from sully.cli.client.failures import inaccessible, refused
    from sully.client.kubeconfig.credentials import AccessError
    from sully.client.transport import UnreadableError
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
        code, text = 1, refused(error)
    except BrokenPipeError:
        # Whoever read has enough (`| head`).
        hush()
        return PIPE_CLOSED
    except AccessError as error:
        code, text = 1, inaccessible(error)
    except (UnreadableError, OSError) as error:
        if isinstance(error, OSError) and error.errno == ENOSPC:
            # It is the output, and whoever runs us says so (process.py).
            raise
        code, text = 1, str(error)
    except UnicodeEncodeError as error:
        # Bytes of the command line that are no letters; a server takes only text.
        code, text = 2, f"{error.object!a} is no text in UTF-8"
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
    from sully.client.kubeconfig.credentials import AccessError
    from sully.machinery.errors import ApiError

    async with _session(options, command) as session:
        try:
            return await work(session)
        except (CommandError, ApiError, AccessError, OSError):
            raise
        except Exception as error:
            # A file may hold anything, and what comes of that is not foreseen wherever it is read.
            from sully.cli.client.blaming import blame

            text = blame(session, error)
            if not text:
                raise
            raise CommandError(text) from error


@asynccontextmanager
async def _session(options: argparse.Namespace, command: str) -> AsyncIterator[Session]:
    from sully.cli.client.failures import unreachable
    from sully.client.discovery.adapting import AdaptingTransport
    from sully.client.http.aiohttp_import import import_aiohttp
    from sully.client.kubeconfig.kubeconfig import find_access
    from sully.client.transport import UnreachableError
    from sully.runtime.clock import SystemClock

    if getattr(options, "snapshot", ()):
        yield Session(options, command, SystemClock())
        return
    access = find_access(options.kubeconfig, options.context, impersonate=impersonation(options))
    clock, namespace = SystemClock(), access.namespace or "default"
    if access.server.startswith("https:"):
        import_aiohttp()
    async with AdaptingTransport(access) as transport:
        try:
            yield Session(options, command, clock, transport, access.server, namespace)
        except UnreachableError as error:
            raise CommandError(await unreachable(error, access, clock.now())) from error
