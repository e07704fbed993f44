"""How a command talks to a server: connect, work, and report a failure as one error.

def devices(options: Options) -> int:
    return call(options, "devices", _show)

async def _show(session: Session) -> int: ...
"""

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from errno import ENOSPC
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from sully.cli.client.options import impersonation
from sully.cli.command import USAGE_ERROR, CommandError, Options
from sully.cli.process import INTERRUPTED, PIPE_CLOSED, discard_output

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from sully.client.discovery.adapting import AdaptingTransport
    from sully.runtime.clock import Clock

Run = Callable[..., Awaitable[Any]]
"""Calls a function that takes long and needs no event loop, and returns its result."""


async def run_here(work: Callable[..., Any], *args: Any) -> Any:
    """Call it immediately: a command has nothing else to do."""
    return work(*args)


class Session(msgspec.Struct, frozen=True):
    """What a command works with."""

    options: Options
    command: str
    clock: "Clock"
    connection: "AdaptingTransport | None" = None
    server: str = ""
    """The address of the server."""
    default_namespace: str = "default"
    """The namespace of the kubeconfig; for commands that need exactly one."""
    stdin: dict[str, bytes] = msgspec.field(default_factory=dict)
    """What can be read only once: standard input, as `-`."""
    stream: TextIO | None = None
    """Where texts are written; None: to standard output and standard error."""
    command_line: str = ""
    """The command line, if it is not that of this process."""

    @property
    def transport(self) -> "AdaptingTransport":
        """Return the connection; a command with --snapshot has none."""
        if self.connection is None:
            raise CommandError("this needs a server and cannot be used with --snapshot", code=2)
        return self.connection

    @property
    def namespace(self) -> str:
        """Return the namespace to list; empty means all."""
        if getattr(self.options, "all_namespaces", False):
            return ""
        return str(getattr(self.options, "namespace", "") or "")

    def show(self, text: str) -> None:
        """Print the answer."""
        print(text, file=self.stream or sys.stdout)

    def warn(self, text: str) -> None:
        """Print something that is not part of the answer."""
        print(text, file=self.stream or sys.stderr)


def call(
    options: Options,
    command: str,
    work: Callable[[Session], Awaitable[int]],
    *,
    lasting: bool = False,
) -> int:
    """Run a command and return its exit code; raise `CommandError` for any failure.

    A `lasting` command runs until it is stopped, as any command with --watch does.
    """
    # Late imports: `--help` needs none of this.
    import uvloop

    from sully.cli.client.errors import api_error_text, no_access_text, unreadable_text
    from sully.client.kubeconfig.credentials import AccessError
    from sully.client.transport import UnreadableError
    from sully.machinery.errors import ApiError

    # What a single answer reads lives until the end; garbage collection would be wasted.
    # main.py enables it again where the process continues: the first collection reads everything.
    if not lasting and not getattr(options, "watch", False):
        gc.disable()
    try:
        return int(uvloop.run(_work(options, command, work)))
    except ApiError as error:
        raise CommandError(api_error_text(error)) from error
    except BrokenPipeError:
        # The reader has read enough (`| head`).
        discard_output()
        return PIPE_CLOSED
    except AccessError as error:
        raise CommandError(no_access_text(error)) from error
    except UnreadableError as error:
        raise CommandError(unreadable_text(error)) from error
    except OSError as error:
        if error.errno == ENOSPC:
            # This is the output, which process.py reports.
            raise
        raise CommandError(str(error)) from error
    except UnicodeEncodeError as error:
        # Bytes of the command line that are not text.
        raise CommandError(f"{error.object!a} is not valid UTF-8", USAGE_ERROR) from error
    except KeyboardInterrupt:
        return INTERRUPTED


async def _work(options: Options, command: str, work: Callable[[Session], Awaitable[int]]) -> int:
    import asyncio

    from sully.client.kubeconfig.credentials import AccessError
    from sully.machinery.errors import ApiError

    asyncio.get_running_loop().set_exception_handler(report_unless_abandoned)
    async with _session(options, command) as session:
        try:
            return await work(session)
        except (CommandError, ApiError, AccessError, OSError):
            raise
        except Exception as error:
            # Files are not validated when they are read, so look for the cause in them now.
            from sully.cli.client.errors import invalid_file_text

            text = invalid_file_text(session, error)
            if not text:
                raise
            raise CommandError(text) from error


def report_unless_abandoned(loop: "AbstractEventLoop", context: dict[str, Any]) -> None:
    """Report what was not handled, except connections that failed.

    When two connections fail in the same moment, the first failure cancels the second request,
    which then does not read the failure of its own connection. The first one is reported. And a
    connection that the server closes while TLS still writes fails, which its request reports.
    """
    is_abandoned = "future" in context and isinstance(context.get("exception"), OSError)
    if not is_abandoned and "transport" not in context:
        loop.default_exception_handler(context)


@asynccontextmanager
async def _session(options: Options, command: str) -> AsyncIterator[Session]:
    from sully.cli.client.errors import unauthorized_text, unreachable_text
    from sully.client.discovery.adapting import AdaptingTransport
    from sully.client.http.aiohttp_import import import_aiohttp
    from sully.client.http.transport import REQUEST_SECONDS
    from sully.client.kubeconfig.kubeconfig import find_access
    from sully.client.transport import UnreachableError
    from sully.machinery.errors import Unauthorized
    from sully.runtime.clock import SystemClock

    if getattr(options, "snapshot", ()):
        yield Session(options, command, SystemClock())
        return
    access = find_access(options.kubeconfig, options.context, impersonate=impersonation(options))
    clock, namespace = SystemClock(), access.namespace or "default"
    if access.server.startswith("https:"):
        import_aiohttp()
    timeout = getattr(options, "request_timeout", None)
    request_seconds = REQUEST_SECONDS if timeout is None else timeout
    async with AdaptingTransport(access, request_seconds=request_seconds) as transport:
        try:
            yield Session(options, command, clock, transport, access.server, namespace)
        except UnreachableError as error:
            raise CommandError(await unreachable_text(error, access, clock.now())) from error
        except Unauthorized as error:
            raise CommandError(await unauthorized_text(error, access, clock.now())) from error
