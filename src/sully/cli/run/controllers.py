"""`sully controllers`: run controllers against an API server, in a process of their own."""

import argparse
import asyncio
import gc
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from sully.cli.client.flags import add_connection_flags, impersonation
from sully.cli.run.evictionflags import add_eviction_flags, eviction_settings
from sully.cli.run.historyflags import add_history_flags, history_kept
from sully.cli.run.leaseflags import add_lease_flags, lease_timing
from sully.cli.run.logflags import add_log_flags
from sully.cli.run.placementflags import (
    add_placement_flags,
    placement_settings,
    warn_of_placement,
)
from sully.machinery.compat import Compat
from sully.machinery.gates import GateError, Gates, parse_gates

if TYPE_CHECKING:
    from sully.domain.capabilities.duties import Evictor
    from sully.domain.capabilities.offers import Offer
    from sully.remote import Remote, RemoteConfig
    from sully.runtime.pages import Protection

_EPILOG = """\
examples:
  sully up --disable-controllers &                  an API server alone
  sully controllers --kubeconfig data/kubeconfig    its controllers; start a second for safety
  sully controllers --kubeconfig K --only eviction,scheduling --leader-elect=false

Of those that share a lease one works and the others wait. Ctrl-C ends the work first and then
releases the lease, so that the next one takes over at once.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.description = "Run controllers against an API server, by HTTP, as a kubeconfig's user."
    parser.epilog = _EPILOG
    add_connection_flags(parser)
    parser.add_argument(
        "--only",
        default="",
        metavar="A,B",
        help="run only these controllers; an unknown name lists the known ones (default: all)",
    )
    parser.add_argument(
        "--evictor",
        default="auto",
        choices=("auto", "server", "sully"),
        help="who evicts on a Kubernetes cluster: sully only where its own eviction controller is"
        " switched off (default: auto, which is the server's own where there may be one)",
    )
    parser.add_argument(
        "--feature-gates",
        default="",
        metavar="A=true,B=false",
        help="as given to the server; an unknown name lists the known ones",
    )
    parser.add_argument(
        "--compat",
        default="sully",
        choices=("sully", "reference"),
        help="as given to the server (default: sully)",
    )
    add_eviction_flags(parser)
    add_history_flags(parser)
    add_placement_flags(parser)
    _add_election_flags(parser)
    _add_telling_flags(parser)


def _add_election_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--leader-elect",
        default="true",
        nargs="?",
        const="true",
        choices=("true", "false"),
        help="work only while holding a lease (default: true)",
    )
    parser.add_argument(
        "--lease",
        default="",
        metavar="NAMESPACE/NAME",
        help="which lease to hold; those with other controllers need another one"
        " (default: kube-system/sully-controllers, with --only the names behind it)",
    )
    add_lease_flags(parser, short=True)


def _add_telling_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics-listen",
        default="",
        metavar="HOST:PORT",
        help="serve /metrics, /healthz and /readyz there; without HOST on 127.0.0.1. On any address"
        " that others reach: over TLS with a certificate of its own, and /metrics only for bearer"
        " tokens whose user may get the path /metrics, as TokenReview and SubjectAccessReview say"
        " (default: nowhere)",
    )
    add_log_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Run until SIGINT or SIGTERM."""
    from sully.client.kubeconfig.credentials import AccessError

    try:
        gates = parse_gates(options.feature_gates, Compat.named(options.compat))
        config = _config(options, gates)
        listen = _address(options.metrics_listen)
    except (AccessError, GateError, ValueError) as error:
        print(f"sully controllers: {error}", file=sys.stderr)
        # A ValueError too, but the command was right.
        return 1 if isinstance(error, AccessError) else 2
    warn_of_placement(options, "controllers")
    return _run(options, config, listen)


def _config(options: argparse.Namespace, gates: Gates) -> "RemoteConfig":
    # Late imports: `--help` needs none of this.
    from sully.client.kubeconfig.kubeconfig import find_access
    from sully.remote import RemoteConfig, chosen_controllers, lease_of

    chosen = chosen_controllers(options.only)
    return RemoteConfig(
        access=find_access(options.kubeconfig, options.context, impersonate=impersonation(options)),
        gates=gates,
        compat=Compat.named(options.compat),
        controllers=chosen,
        evictor=options.evictor,
        eviction=eviction_settings(options),
        placement=placement_settings(options),
        history=history_kept(options),
        leader_elect=options.leader_elect == "true",
        lease=lease_of(options.lease, chosen),
        timing=lease_timing(options),
    )


def _address(text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--metrics-listen must be HOST:PORT, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _run(
    options: argparse.Namespace, config: "RemoteConfig", listen: tuple[str, int] | None
) -> int:
    import uvloop

    from sully.domain.capabilities.duties import DutyError
    from sully.runtime.log import configure as configure_log

    configure_log(options.log_format, level=options.log_level)
    gc.set_threshold(50_000, 20, 100)  # as in `sully up`: objects here live long
    try:
        problem = uvloop.run(_work(config, listen))
    except (DutyError, OSError) as error:
        print(f"sully controllers: {error}", file=sys.stderr)
        return 2 if isinstance(error, DutyError) else 1
    if problem:
        print(f"sully controllers: {problem}", file=sys.stderr)
    return 1 if problem else 0


async def _work(config: "RemoteConfig", listen: tuple[str, int] | None) -> str:
    from sully.remote import remote
    from sully.runtime.pages import serving

    async with remote(config) as found:
        crew = found.manager
        crew.on_change(lambda: print(found.status(), flush=True))
        found.on_offer(lambda offer: _show(offer, config.evictor))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, crew.stop)
        print(f"API server:  {config.access.server}", flush=True)
        await _first_look(found)
        if listen is None:
            await crew.run()
        else:
            protection = _protection(listen[0], found)
            async with serving(*listen, found.pages(), protection) as port:
                scheme = "http" if protection is None else "https"
                print(f"metrics:     {scheme}://{listen[0]}:{port}/metrics", flush=True)
                await crew.run()
    print("stopped", flush=True)
    return found.problem


def _protection(host: str, found: "Remote") -> "Protection | None":
    """Return what keeps metrics from others who reach the address, None where nobody does."""
    from socket import gethostname

    from sully.runtime.clock import SystemClock
    from sully.runtime.pages import Protection, is_local
    from sully.server.net.tls import self_signed_context

    if is_local(host):
        return None
    return Protection(self_signed_context(gethostname(), SystemClock().now()), found.access().check)


async def _first_look(found: "Remote") -> None:
    """Say at once what the server is, where it answers; a term asks again."""
    from sully.client.transport import UnreachableError, UnreadableError
    from sully.machinery.errors import ApiError

    with suppress(ApiError, UnreachableError, UnreadableError):
        await found.discover()


def _show(offer: "Offer", evictor: "Evictor") -> None:
    from sully.cli.run.capabilities import show

    # Our own server leaves everything to us: there is nothing to tell.
    if not offer.own:
        show(offer, evictor)
