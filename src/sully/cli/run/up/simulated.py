"""Flags of `sully up` for simulated nodes, simulated clusters and the demo."""

import sys
from pathlib import Path
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING

import click

from sully.cli.client.options import options as join
from sully.cli.client.options import whole_number
from sully.cli.command import Options
from sully.machinery.compat import Compat

if TYPE_CHECKING:
    from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
    from sully.domain.simulated.clusters import Members

DEMO_NODES = 12
DEVICES = 8
_DAY = 86_400


def non_negative_seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _DAY:
        raise click.BadParameter(f'invalid number of seconds "{text}" (for example 0.5)')
    return number


simulation_options = join(
    click.option(
        "--simulated-nodes",
        type=whole_number(maximum=10_000),
        metavar="N",
        help="Number of simulated nodes, like kwok's. Surplus nodes of an earlier start are"
        " deleted. Without the flag, existing nodes stay as they are.",
    ),
    click.option(
        "--devices-per-node",
        type=whole_number(maximum=512),
        metavar="N",
        show_default=str(DEVICES),
        help="Number of devices that each simulated node publishes.",
    ),
    click.option(
        "--simulated-start-seconds",
        type=non_negative_seconds,
        metavar="S",
        show_default="0.5",
        help="How long pods on simulated nodes take to start.",
    ),
    click.option(
        "--simulated-stop-seconds",
        type=non_negative_seconds,
        metavar="S",
        show_default="1",
        help="How long pods on simulated nodes take to stop, at most their grace period.",
    ),
    click.option(
        "--demo",
        is_flag=True,
        help=f"Create a demo with GPUs, teams and faults, on {DEMO_NODES} simulated nodes unless"
        " --simulated-nodes is set.",
    ),
    click.option(
        "--simulated-clusters",
        type=whole_number(maximum=10_000),
        metavar="N",
        help="Number of managed clusters with simulated agents. Surplus clusters of an earlier"
        " start are deleted. Without the flag, existing clusters stay, and no longer renew their"
        " leases.",
    ),
    click.option(
        "--simulated-cluster-lease-seconds",
        type=whole_number(1, _DAY),
        default=None,
        metavar="S",
        show_default="60, more for more than 1200 clusters",
        help="Lease duration of simulated clusters. A cluster is unreachable after five of them"
        " without a renewal.",
    ),
)


def check_simulation(options: Options) -> None:
    if options.demo and not Compat.named(options.compat).serves_sully_kinds:
        raise ValueError("--demo cannot be used with --compat reference")
    if options.simulated_nodes is None and not options.demo:
        for name in ("devices_per_node", "simulated_start_seconds", "simulated_stop_seconds"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} requires --simulated-nodes")
    if options.simulated_cluster_lease_seconds and options.simulated_clusters is None:
        raise ValueError("--simulated-cluster-lease-seconds requires --simulated-clusters")


def simulated_nodes(options: Options) -> "SimulatedNodeSettings | None":
    """Return which nodes to simulate; None without the flags."""
    nodes = options.simulated_nodes
    if nodes is None and not options.demo:
        return None
    from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
    from sully.demo.filling import FAULTS
    from sully.domain.simulated.fleet import Fleet, PodDelays

    devices = DEVICES if options.devices_per_node is None else options.devices_per_node
    start, stop = options.simulated_start_seconds, options.simulated_stop_seconds
    default = PodDelays()
    return SimulatedNodeSettings(
        Fleet(DEMO_NODES if nodes is None else nodes, devices, FAULTS if options.demo else {}),
        PodDelays(
            default.start if start is None else start, default.stop if stop is None else stop
        ),
    )


def simulated_clusters(options: Options) -> "Members | None":
    """Return which clusters to simulate; None without the flags."""
    from sully.domain.simulated.clusters import Members

    if options.simulated_clusters is None:
        return None
    return Members(options.simulated_clusters, options.simulated_cluster_lease_seconds or 0)


def demo_hints(kubeconfig: Path) -> str:
    return f"""\

In another terminal, while the demo starts:
{exports(kubeconfig)}
  kubectl get pods -A -o wide                        where each pod runs
  kubectl -n team-lab describe pod -l app=big-model  why it is pending
  sully devices --tainted                            taints and their sources
  sully explain rule a100-firmware                   what a rule would do
  sully evictions --watch                            which pods are evicted
  sully plan device 'gpu.sully.dev/worker-0001/*' example.com/hot:NoExecute
"""


def exports(kubeconfig: Path) -> str:
    """Return how another terminal finds the server, and this program if it is not in PATH."""
    export = f"  export KUBECONFIG={quote(str(kubeconfig.resolve()))}"
    if which("sully"):
        return export
    return f"{export}\n  export PATH={quote(str(Path(sys.executable).parent))}:$PATH"
