"""`sully up`: run a control plane until it is stopped."""

import asyncio
import errno
import gc
import os
import signal
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from sully.cli.client.options import data_dir_option, parse_address
from sully.cli.command import USAGE_ERROR, CommandError, Options, command, report_error
from sully.cli.data.etcd_options import etcd_address, etcd_options
from sully.cli.run.announce import announce
from sully.cli.run.controller_options import (
    event_options,
    event_retention,
    eviction_options,
    eviction_settings,
    history_options,
    history_retention,
    lease_options,
    lease_timing,
    log_options,
    notification_options,
    notification_receivers,
    placement_options,
    placement_settings,
    prometheus_options,
    prometheus_servers,
    warn_of_placement,
)
from sully.cli.run.up.options import (
    access_options,
    api_options,
    controller_switches,
    limit_options,
    listen_option,
    store_option,
)
from sully.cli.run.up.simulated import (
    check_simulation,
    demo_hints,
    exports,
    simulated_clusters,
    simulated_nodes,
    simulation_options,
)
from sully.machinery.compat import Compat
from sully.machinery.gates import GateError, Gates, parse_gates
from sully.machinery.runtimeconfig import parse_runtime_config
from sully.store.errors import StoreError
from sully.store.etcd.address import SCHEME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sully.app import Config, ControlPlane, OpenIdentity
    from sully.client.kubeconfig.access import Access
    from sully.dashboard.app import Dashboard

_STARTED = time.perf_counter()
_LISTEN_ERRORS = {
    errno.EADDRINUSE: "address already in use; stop what listens there or use another --listen",
    errno.EACCES: "permission denied; use a port from 1024",
    errno.EADDRNOTAVAIL: "not an address of this machine; use 0.0.0.0:PORT for all of them",
}
_HELP = """\
Run a control plane in this process: an API server with its store and controllers.

Ctrl-C stops it: watches are closed, and all acknowledged writes are on disk.
"""
_EXAMPLES = """\
# Serve https://127.0.0.1:8443, with data in ./data
sully up

# Serve on all addresses, with data elsewhere
sully up --data-dir /var/lib/sully --listen 0.0.0.0:6443 --log-format json

# Serve on a free port, and store nothing
sully up --store memory --listen 127.0.0.1:0

# Run one of several replicas that share an etcd
sully up --store etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379

# Run with simulated nodes and devices, or with simulated clusters
sully up --simulated-nodes 10 --devices-per-node 4
sully up --simulated-clusters 20

# Run with a demo of GPUs in use
sully up --demo
"""


@command("up", help=_HELP, examples=_EXAMPLES)
@data_dir_option("Data directory. Created if it does not exist.")
@listen_option
@store_option
@etcd_options
@lease_options
@api_options
@controller_switches
@eviction_options
@history_options
@notification_options
@prometheus_options
@event_options
@placement_options
@simulation_options
@access_options
@limit_options
@log_options
def up(options: Options) -> int:
    from sully.runtime.log import configure as configure_log

    configure_log(options.log_format, level=options.log_level)
    try:
        host, port = parse_address("--listen", options.listen, 8443)
        check_simulation(options)
        etcd_address(options.store, options)
        lease_timing(options)
        notification_receivers(options)
        prometheus_servers(options)
        gates = parse_gates(options.feature_gates, Compat.named(options.compat))
        _check_versions(options)
    except (GateError, ValueError) as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    warn_of_placement(options)
    return _run(options, host, port, gates)


def _check_versions(options: Options) -> None:
    """Refuse versions that do not exist, before anything is started."""
    runtime = parse_runtime_config(options.runtime_config)
    if runtime.requested:
        from sully.api import build_scheme  # late: it reads the tables of all kinds

        build_scheme(Compat.named(options.compat), runtime=runtime)


def _run(options: Options, host: str, port: int, gates: Gates) -> int:
    # Late imports: help and usage errors do not need them.
    from sully.cli.run.up.forked import ForkedCall
    from sully.machinery.errors import ApiError
    from sully.runtime import descriptors

    descriptors.raise_limit()
    # Until it is ready: almost everything that a start creates is kept.
    gc.disable()
    code = 0
    try:
        # First: the other process imports its libraries while this one imports the server.
        open_identity = ForkedCall(_open_identity)
        import uvloop

        config = _config(options, host, port, gates)
        uvloop.run(_serve(config, open_identity, demo=options.demo))
    except* (StoreError, ApiError, OSError) as group:
        report_error(_start_error(group, options))
        code = 1
    return code


def _start_error(error: BaseException, options: Options) -> str:
    """Return why the control plane could not start, or had to stop."""
    from sully.server.net.listen import ListenError
    from sully.store.errors import InUseError

    if isinstance(error, BaseExceptionGroup):
        # Many writes that fail together fail alike.
        return _start_error(error.exceptions[0], options)
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


def _config(options: Options, host: str, port: int, gates: Gates) -> "Config":
    from sully.app import Config
    from sully.server.flowcontrol.limits import Allowance
    from sully.server.net.connections import ConnectionLimits
    from sully.server.net.listen import ConnectionSettings

    return Config(
        data_dir=options.data_dir,
        host=host,
        port=port,
        store=etcd_address(options.store, options) or options.store,
        leader_elect=options.store.startswith(SCHEME),
        timing=lease_timing(options),
        gates=gates,
        runtime=parse_runtime_config(options.runtime_config),
        compat=Compat.named(options.compat),
        names=tuple(options.tls_san),
        anonymous=options.anonymous_auth == "true",
        audit_log=options.audit_log,
        audit_reads=options.audit_reads,
        eviction=eviction_settings(options),
        placement=placement_settings(options),
        allowance=Allowance(
            reads=options.max_requests_inflight,
            writes=options.max_mutating_requests_inflight,
            watches=options.max_watches_per_user,
        ),
        connections=ConnectionSettings(
            ConnectionLimits(
                total=options.max_connections,
                per_address=options.max_connections_per_address,
                per_user=options.max_connections_per_user,
            )
        ),
        controllers=_controllers(options),
        restart_controllers=True,
        history=history_retention(options),
        receivers=notification_receivers(options),
        prometheus_servers=prometheus_servers(options),
        otlp_endpoint=options.otlp_endpoint or "",
        event_ttl=event_retention(options),
        simulated_nodes=simulated_nodes(options),
        simulated_clusters=simulated_clusters(options),
    )


def _controllers(options: Options) -> frozenset[str] | None:
    from sully.controller_setup import CONTROLLERS

    if options.disable_controllers:
        return frozenset()
    return frozenset(CONTROLLERS) - {"scheduling"} if options.disable_scheduler else None


def _open_identity() -> "OpenIdentity":
    from sully.server.net.issuing import open_identity

    return open_identity


async def _serve(config: "Config", open_identity: "OpenIdentity", *, demo: bool) -> None:
    from sully.app import running
    from sully.runtime import log
    from sully.runtime.garbage import GarbageTuner

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(running(config, open_identity=open_identity))
        GarbageTuner().start()
        dashboard = await stack.enter_async_context(_dashboard(plane))
        took = time.perf_counter() - _STARTED
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
async def _dashboard(plane: "ControlPlane") -> "AsyncIterator[Dashboard]":
    """Serve the dashboard; its client is like any other: HTTP, as the admin or with a token."""
    from sully.cli.run.dashboard import load_routes
    from sully.dashboard.app import PREFIX, Dashboard
    from sully.runtime.clock import SystemClock

    async with Dashboard(partial(_access, plane), load_routes, SystemClock()) as dashboard:
        with plane.mounted(PREFIX, dashboard):
            yield dashboard


def _access(plane: "ControlPlane") -> "Access":
    from sully.client.kubeconfig.kubeconfig import find_access

    return find_access(str(plane.kubeconfig))


async def _fill(plane: "ControlPlane") -> None:
    from sully.client.direct import DirectTransport
    from sully.client.discovery.resources import of_scheme
    from sully.demo.filling import Filler

    announce(demo_hints(plane.kubeconfig), "creating the demo")
    await Filler(DirectTransport(plane.direct()), of_scheme(plane.api.scheme)).fill()
