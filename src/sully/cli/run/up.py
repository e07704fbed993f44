"""`sully up`: run a control plane until it is told to stop."""

import argparse
import asyncio
import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sully.cli.data.etcdflags import add_etcd_flags, etcd_address
from sully.cli.process import hush
from sully.cli.run import hollow
from sully.cli.run.evictionflags import add_eviction_flags, eviction_settings
from sully.cli.run.failing import explain
from sully.cli.run.historyflags import (
    add_event_flags,
    add_history_flags,
    events_kept,
    history_kept,
)
from sully.cli.run.hollowclusterflags import (
    add_hollow_cluster_flags,
    check_hollow_clusters,
    hollow_clusters,
)
from sully.cli.run.leaseflags import add_lease_flags, lease_timing
from sully.cli.run.logflags import add_log_flags
from sully.cli.run.placementflags import (
    add_placement_flags,
    placement_settings,
    warn_of_placement,
)
from sully.machinery.compat import Compat
from sully.machinery.gates import GateError, Gates, parse_gates
from sully.machinery.runtimeconfig import parse_runtime_config
from sully.store.etcd.address import SCHEME

if TYPE_CHECKING:
    from sully.app import Config, ControlPlane

_STARTED = time.perf_counter()
_EPILOG = """\
examples:
  sully up                                  data in ./data, API on https://127.0.0.1:8443
  sully up --data-dir /var/lib/sully --listen 0.0.0.0:6443 --log-format json
  sully up --store memory --listen 127.0.0.1:0      nothing survives, any free port
  sully up --store etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379     one of several replicas
  sully up --hollow-nodes 10 --devices-per-node 4   with nodes that only look like nodes
  sully up --hollow-clusters 20                     a hub with clusters that only look like it
  sully up --demo                                   with a fleet of GPUs in use

Ctrl-C stops it: watches are told to end, what was acknowledged is on disk.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Run an API server with its store and controllers in this process."
    parser.epilog = _EPILOG
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="D",
        help="where everything is kept; created if missing (default: ./data)",
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:8443",
        metavar="HOST:PORT",
        help="address to serve on; port 0 takes a free one (default: 127.0.0.1:8443)",
    )
    parser.add_argument(
        "--store",
        default="sqlite",
        type=_store,
        metavar="sqlite|memory|etcd://…",
        help="sqlite keeps data in the data directory, memory forgets it, etcd://HOST:PORT,…[/PREFIX]"
        " shares it with other replicas (default: sqlite)",
    )
    add_etcd_flags(parser)
    add_lease_flags(parser)
    _add_api_flags(parser)
    _add_controller_flags(parser)
    add_eviction_flags(parser)
    add_history_flags(parser)
    add_event_flags(parser)
    add_placement_flags(parser)
    hollow.add_flags(parser)
    add_hollow_cluster_flags(parser)
    _add_access_flags(parser)
    _add_limit_flags(parser)
    _add_connection_flags(parser)
    add_log_flags(parser)


def _add_api_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--feature-gates",
        default="",
        metavar="A=true,B=false",
        help="switch features on or off; an unknown name lists the known ones",
    )
    parser.add_argument(
        "--runtime-config",
        default="",
        metavar="GROUP/VERSION=false,…",
        help="switch versions of the API off, also by stage: api/beta=false,api/alpha=false leaves"
        " what Kubernetes serves by default (default: all are served)",
    )
    parser.add_argument(
        "--compat",
        default="sully",
        choices=("sully", "reference"),
        help="reference: behave as Kubernetes does, quirks included, and nothing of ours",
    )


def _add_controller_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--disable-controllers",
        action="store_true",
        help="serve the API alone; 'sully controllers' runs them in a process of their own",
    )
    parser.add_argument(
        "--disable-scheduler",
        action="store_true",
        help="leave pods to a scheduler of your own",
    )


def _add_access_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tls-san",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name or address of the server, for its certificate; may be repeated",
    )
    parser.add_argument(
        "--anonymous-auth",
        default="false",
        choices=("true", "false"),
        help="true: roles decide what system:anonymous may do; false: without credentials nothing"
        " but health and version answers (default: false; true with --compat reference)",
    )
    parser.add_argument(
        "--audit-log",
        metavar="FILE",
        help="where to write audit events (writes, refused and impersonated requests) as JSON"
        " lines; - for the standard output, '' for none. Requests of clients that are not"
        " authenticated go to FILE-unauthenticated, at a limited rate"
        " (default: audit.log in the data directory)",
    )
    parser.add_argument(
        "--audit-reads",
        action="store_true",
        help="also audit reads that were allowed; many more events",
    )


def _add_limit_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-requests-inflight",
        type=int,
        default=400,
        metavar="N",
        help="concurrent reads of all clients except system:masters; each priority level has a"
        " reserved share, and one user gets at most half of what the level can use; 0: no limit"
        " (default: 400)",
    )
    parser.add_argument(
        "--max-mutating-requests-inflight",
        type=int,
        default=200,
        metavar="N",
        help="concurrent writes, divided in the same way; 0: no limit (default: 200)",
    )
    parser.add_argument(
        "--max-watches-per-user",
        type=int,
        default=1000,
        metavar="N",
        help="watches that one user, or the service accounts of one namespace together, may have"
        " open; 0: no limit (default: 1000)",
    )


def _add_connection_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-connections",
        type=int,
        default=0,
        metavar="N",
        help="connections open at the same time; a tenth is reserved for system:masters, a tenth"
        " for them, nodes and other system users; 0: as many as the limit of open files allows"
        " (default: 0)",
    )
    parser.add_argument(
        "--max-connections-per-address",
        type=int,
        default=1000,
        metavar="N",
        help="connections from one address (IPv6: one /64 network) on which nobody has been"
        " authenticated; a new one closes the oldest; 0: no limit (default: 1000)",
    )
    parser.add_argument(
        "--max-connections-per-user",
        type=int,
        default=2000,
        metavar="N",
        help="connections of one user, or of all service accounts of one namespace; a new one"
        " closes the one that has been idle longest; system:masters has no limit; 0: no limit"
        " (default: 2000)",
    )


def _store(text: str) -> str:
    if text not in ("sqlite", "memory") and not text.startswith(SCHEME):
        raise argparse.ArgumentTypeError(
            f"there is no store {text!r}; use sqlite, memory or etcd://HOST:PORT,…"
        )
    return text


def run(options: argparse.Namespace) -> int:
    """Run until SIGINT or SIGTERM."""
    try:
        host, port = _address(options.listen)
        hollow.check(options)
        check_hollow_clusters(options)
        etcd_address(options.store, options)
        lease_timing(options)
        gates = parse_gates(options.feature_gates, Compat.named(options.compat))
        _check_versions(options)
    except (GateError, ValueError) as error:
        print(f"sully up: {error}", file=sys.stderr)
        return 2
    warn_of_placement(options, "up")
    return _run(options, host, port, gates)


def _check_versions(options: argparse.Namespace) -> None:
    """Refuse versions that do not exist, before anything is started."""
    runtime = parse_runtime_config(options.runtime_config)
    if runtime.wanted:
        from sully.api import build_scheme  # late: it reads the tables of all kinds

        build_scheme(Compat.named(options.compat), runtime=runtime)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--listen must be HOST:PORT, not {text!r}; for example 127.0.0.1:8443")
    return host.strip("[]") or "127.0.0.1", int(port)


def _run(options: argparse.Namespace, host: str, port: int, gates: Gates) -> int:
    # Late imports: `sully up --help` and usage errors need none of this.
    import uvloop

    from sully.machinery.errors import ApiError
    from sully.runtime import descriptors
    from sully.runtime.log import configure as configure_log
    from sully.store.errors import StoreError

    configure_log(options.log_format, level=options.log_level)
    descriptors.raise_limit()
    # Fewer, larger collections: objects here live long, and young ones die by reference count.
    gc.set_threshold(50_000, 20, 100)
    code = 0
    try:
        uvloop.run(_serve(_config(options, host, port, gates), demo=options.demo))
    except* (StoreError, ApiError, OSError) as group:
        print(f"sully up: {explain(group, options)}", file=sys.stderr)
        code = 1
    return code


def _config(options: argparse.Namespace, host: str, port: int, gates: Gates) -> "Config":
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
        history=history_kept(options),
        event_ttl=events_kept(options),
        simulated_nodes=hollow.settings(options),
        simulated_clusters=hollow_clusters(options),
    )


def _controllers(options: argparse.Namespace) -> frozenset[str] | None:
    from sully.controller_setup import CONTROLLERS

    if options.disable_controllers:
        return frozenset()
    return frozenset(CONTROLLERS) - {"scheduling"} if options.disable_scheduler else None


async def _serve(config: "Config", *, demo: bool) -> None:
    from sully.app import running
    from sully.runtime.garbage import GarbageTuner

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(config) as plane:
        GarbageTuner().start()
        took = time.perf_counter() - _STARTED
        _say(f"API server:  {plane.url}")
        _say(f"kubeconfig:  {plane.kubeconfig}")
        _say(f"ready after  {took:.2f} s  (pid {os.getpid()}; Ctrl-C stops)")
        if sys.stdout.isatty() and not demo:
            _say(f"\nIn another terminal:\n{hollow.exports(plane.kubeconfig)}\n")
        async with asyncio.TaskGroup() as tasks:
            filling = tasks.create_task(_fill(plane)) if demo else None
            await stop.wait()
            if filling is not None:
                filling.cancel()
        _say("stopping: ending watches, finishing writes")


def _say(text: str) -> None:
    """Tell whoever started us; when nobody listens any more, a server has better things to do."""
    try:
        print(text, flush=True)
    except OSError:
        hush()


async def _fill(plane: "ControlPlane") -> None:
    """Let the demo come in, as an admin with kubectl would bring it."""
    from sully.client.direct import DirectTransport
    from sully.client.discovery.resources import of_scheme
    from sully.demo.filling import Filler

    _say(hollow.hints(plane.kubeconfig))
    await Filler(DirectTransport(plane.direct()), of_scheme(plane.api.scheme)).fill()
