"""Runs a control plane with its dashboard until a signal stops it, and shows how to use it."""

import asyncio
import errno
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from sully.app import Config, OpenIdentity, RunningControlPlane, running
from sully.cli.command import Options
from sully.cli.run.announce import announce
from sully.cli.run.up.simulated import demo_hints, exports
from sully.dashboard.app import PREFIX, Dashboard
from sully.runtime import log
from sully.runtime.clock import SystemClock
from sully.runtime.garbage import GarbageTuner
from sully.server.net.listen import ListenError
from sully.store.errors import InUseError

if TYPE_CHECKING:
    from sully.client.kubeconfig.access import Access

_LISTEN_ERRORS = {
    errno.EADDRINUSE: "address already in use; stop what listens there or use another --listen",
    errno.EACCES: "permission denied; use a port from 1024",
    errno.EADDRNOTAVAIL: "not an address of this machine; use 0.0.0.0:PORT for all of them",
}


async def serve(config: Config, open_identity: OpenIdentity, *, started: float, demo: bool) -> None:
    """Serve until SIGINT or SIGTERM; `started`: when the process was, by `perf_counter`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(running(config, open_identity=open_identity))
        GarbageTuner().start()
        dashboard = await stack.enter_async_context(_dashboard(plane))
        took = time.perf_counter() - started
        announce(
            f"API server:  {plane.url}\nkubeconfig:  {plane.kubeconfig}\n"
            f"dashboard:   {dashboard.link(plane.url)}\n"
            f"ready after  {took:.2f} s  (pid {os.getpid()}; Ctrl-C stops)",
            "ready",
            server=plane.url,
            kubeconfig=str(plane.kubeconfig),
            seconds=round(took, 2),
            pid=os.getpid(),
        )
        if sys.stdout.isatty() and not demo and not log.is_json():
            announce(f"\nIn another terminal:\n{exports(plane.kubeconfig)}\n", "")
        # Only now, because it takes a tenth of the start.
        log.load()
        async with asyncio.TaskGroup() as tasks:
            filling = tasks.create_task(_fill(plane)) if demo else None
            await stop.wait()
            if filling is not None:
                filling.cancel()
        announce("stopping: closing watches, finishing writes", "stopping")


@asynccontextmanager
async def _dashboard(plane: RunningControlPlane) -> AsyncIterator[Dashboard]:
    """Serve the dashboard; its client is like any other: HTTP, as the admin or with a token."""
    from sully.cli.run.dashboard import load_routes

    async with Dashboard(partial(_access, plane), load_routes, SystemClock()) as dashboard:
        with plane.mounted(PREFIX, dashboard):
            yield dashboard


def _access(plane: RunningControlPlane) -> "Access":
    from sully.client.kubeconfig.kubeconfig import find_access

    return find_access(str(plane.kubeconfig))


async def _fill(plane: RunningControlPlane) -> None:
    from sully.client.direct import DirectTransport
    from sully.client.discovery.resources import of_scheme
    from sully.demo.filling import Filler

    announce(demo_hints(plane.kubeconfig), "creating the demo")
    await Filler(DirectTransport(plane.direct()), of_scheme(plane.api.scheme)).fill()


def start_error(error: BaseException, options: Options) -> str:
    """Return why the control plane could not start, or had to stop."""
    if isinstance(error, BaseExceptionGroup):
        # Many writes that fail together fail alike.
        return start_error(error.exceptions[0], options)
    if isinstance(error, InUseError):
        kubeconfig = (options.data_dir / "kubeconfig").resolve()
        return (
            f"{error}\n  to use that server:     export KUBECONFIG={quote(str(kubeconfig))}\n"
            "  to start another one:   sully up --data-dir DIR --listen 127.0.0.1:0"
        )
    if isinstance(error, ListenError):
        why = _LISTEN_ERRORS.get(error.errno or 0, str(error.strerror))
        return f"cannot listen on {options.listen}: {why}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot use {error.filename}: {error.strerror}"
    return str(error)
