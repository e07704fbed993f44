"""`sully controllers`: run controllers against an API server, in a process of their own."""

import asyncio
import gc
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import (
    choice_option,
    compat_option,
    connection_options,
    evictor_option,
    feature_gates_option,
    impersonation,
    parse_address,
)
from sully.cli.command import USAGE_ERROR, CommandError, Options, command, report_warning
from sully.cli.run.announce import announce
from sully.cli.run.controller_options import (
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
from sully.machinery.compat import Compat
from sully.machinery.gates import GateError, Gates, parse_gates

if TYPE_CHECKING:
    from sully.domain.capabilities.duties import Evictor
    from sully.domain.capabilities.offers import Offer
    from sully.remote import Remote, RemoteConfig
    from sully.runtime.metrics_server import Protection

_HELP = """\
Run controllers against an API server over HTTP, as the user of a kubeconfig.

Of all processes that share a lease, one is the leader and the others wait. Ctrl-C finishes current
work and releases the lease, so that another process takes over immediately.
"""
_EXAMPLES = """\
# Run an API server, and its controllers in another process
sully up --disable-controllers &
sully controllers --kubeconfig data/kubeconfig

# Run only some controllers, without leader election
sully controllers --kubeconfig K --only eviction,scheduling \\
    --leader-elect=false
"""


@command("controllers", help=_HELP, examples=_EXAMPLES)
@connection_options
@click.option(
    "--only",
    default="",
    metavar="A,B",
    show_default="all",
    help="Run only these controllers. An unknown name lists the known ones.",
)
@evictor_option(
    "Who evicts pods on a Kubernetes cluster. Use sully only where the eviction controller of the"
    " cluster is disabled. auto leaves evictions to the cluster if it may have one."
)
@feature_gates_option("As passed to the server. An unknown name lists the known ones.")
@compat_option("As passed to the server.")
@eviction_options
@history_options
@notification_options
@prometheus_options
@placement_options
@choice_option(
    "--leader-elect",
    choices=("true", "false"),
    flag_value="true",
    is_flag=False,
    metavar="BOOL",
    help_="Run controllers only while holding a lease.",
)
@click.option(
    "--lease",
    default="",
    metavar="NAMESPACE/NAME",
    show_default="kube-system/sully-controllers, followed by the names in --only",
    help="Lease to hold. Processes with different controllers need different leases.",
)
@lease_options
@click.option(
    "--metrics-listen",
    default="",
    metavar="HOST:PORT",
    help="Serve /metrics, /healthz and /readyz there; without HOST on 127.0.0.1. On other addresses"
    " over TLS with a self-signed certificate, and /metrics only for bearer tokens of users who may"
    " get the path /metrics, by TokenReview and SubjectAccessReview.",
)
@log_options
def controllers(options: Options) -> int:
    from sully.client.kubeconfig.credentials import AccessError
    from sully.runtime.log import configure as configure_log

    configure_log(options.log_format, level=options.log_level)
    try:
        gates = parse_gates(options.feature_gates, Compat.named(options.compat))
        config = _config(options, gates)
        text = options.metrics_listen
        listen = parse_address("--metrics-listen", text, 9090) if text else None
    except (AccessError, GateError, ValueError) as error:
        # A ValueError too, but not a usage error.
        code = 1 if isinstance(error, AccessError) else USAGE_ERROR
        raise CommandError(str(error), code) from error
    warn_of_placement(options)
    return _run(config, listen)


def _config(options: Options, gates: Gates) -> "RemoteConfig":
    # Late imports: `--help` does not need them.
    from sully.client.kubeconfig.kubeconfig import find_access
    from sully.remote import RemoteConfig, chosen_controllers, lease_of

    chosen = chosen_controllers(options.only)
    receivers = notification_receivers(options)
    if receivers and chosen is not None and "devicemetrics" not in chosen:
        raise ValueError("--notifications: needs the controller devicemetrics in --only")
    return RemoteConfig(
        access=find_access(options.kubeconfig, options.context, impersonate=impersonation(options)),
        gates=gates,
        compat=Compat.named(options.compat),
        controllers=chosen,
        evictor=options.evictor,
        eviction=eviction_settings(options),
        placement=placement_settings(options),
        history=history_retention(options),
        receivers=receivers,
        prometheus_servers=prometheus_servers(options),
        otlp_endpoint=options.otlp_endpoint or "",
        leader_elect=options.leader_elect == "true",
        lease=lease_of(options.lease, chosen),
        timing=lease_timing(options),
    )


def _run(config: "RemoteConfig", listen: tuple[str, int] | None) -> int:
    import uvloop

    from sully.domain.capabilities.duties import DutyError

    gc.set_threshold(50_000, 20, 100)  # as in `sully up`: objects here live long
    try:
        problem = uvloop.run(_work(config, listen))
    except (DutyError, OSError) as error:
        code = USAGE_ERROR if isinstance(error, DutyError) else 1
        raise CommandError(str(error), code) from error
    if problem:
        raise CommandError(problem)
    return 0


async def _work(config: "RemoteConfig", listen: tuple[str, int] | None) -> str:
    from sully.remote import remote
    from sully.runtime.metrics_server import serving

    async with remote(config) as running:
        manager = running.manager
        manager.on_change(lambda: announce(running.status(), "status", status=running.status()))
        running.on_offer(lambda offer: _show(offer, config.evictor))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, manager.stop)
        server = config.access.server
        announce(f"API server:  {server}", "starting", server=server)
        await _discover(running)
        if listen is None:
            await manager.run()
        else:
            protection = _protection(listen[0], running)
            async with serving(*listen, running.pages(), protection) as port:
                scheme = "http" if protection is None else "https"
                url = f"{scheme}://{listen[0]}:{port}/metrics"
                announce(f"metrics:     {url}", "serving metrics", url=url)
                await manager.run()
    announce("stopped", "stopped")
    return running.problem


def _protection(host: str, running: "Remote") -> "Protection | None":
    """Return what protects metrics on an address that others can reach; None on a local one."""
    from socket import gethostname

    from sully.runtime.clock import SystemClock
    from sully.runtime.metrics_server import Protection, is_local
    from sully.server.net.tls import self_signed_context

    if is_local(host):
        return None
    return Protection(
        self_signed_context(gethostname(), SystemClock().now()), running.access().check
    )


async def _discover(running: "Remote") -> None:
    """Report what the server supports, if it answers; each term as leader discovers it again."""
    from sully.client.transport import UnreachableError, UnreadableError
    from sully.machinery.errors import ApiError

    with suppress(ApiError, UnreachableError, UnreadableError):
        await running.discover()


def _show(offer: "Offer", flag: "Evictor") -> None:
    from sully.cli.run.capabilities_printer import document, show
    from sully.domain.capabilities.duties import evictor, two_evictors_warning
    from sully.runtime.log import get_logger, is_json

    # On Sully's server all controllers run: there is nothing to report.
    if offer.own:
        return
    if is_json():
        get_logger("sully").info("capabilities", **document(offer, flag))
    else:
        show(offer, flag)
    if warning := two_evictors_warning(evictor(offer, flag)):
        report_warning(warning)
