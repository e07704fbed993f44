"""The flags of `sully up` about hollow nodes and the demo, and what they mean together."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings

DEMO_NODES = 12
DEVICES = 8


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    parser.add_argument(
        "--hollow-nodes",
        type=_number(10_000),
        metavar="N",
        help="have this many nodes that only look like nodes; those of a former start beyond N are"
        " removed, without the flag all stay as they are",
    )
    parser.add_argument(
        "--devices-per-node",
        type=_number(512),
        metavar="M",
        help=f"devices that each hollow node publishes (default: {DEVICES})",
    )
    parser.add_argument(
        "--hollow-start-seconds",
        type=_seconds,
        metavar="S",
        help="how long pods on hollow nodes take to start (default: 0.5)",
    )
    parser.add_argument(
        "--hollow-stop-seconds",
        type=_seconds,
        metavar="S",
        help="how long they take to stop, at most their grace period (default: 1)",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help=f"fill it with a fleet of GPUs, teams and troubles; {DEMO_NODES} hollow nodes unless"
        " said otherwise",
    )


def _number(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) > most:
            raise argparse.ArgumentTypeError(f"must be a number from 0 to {most}, not {text!r}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 86_400:
        raise argparse.ArgumentTypeError(f"must be seconds, for example 0.5, not {text!r}")
    return found


def check(options: argparse.Namespace) -> None:
    """Refuse flags that make no sense together."""
    if options.demo and options.compat == "reference":
        raise ValueError("--demo shows what is ours, and --compat reference has nothing of ours")
    if options.hollow_nodes is None and not options.demo:
        for name in ("devices_per_node", "hollow_start_seconds", "hollow_stop_seconds"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} needs --hollow-nodes")


def settings(options: argparse.Namespace) -> "SimulatedNodeSettings | None":
    """Return which machines there are to be, or None if hollow nodes are not asked for."""
    from sully.controllers.simulatednodes.wiring import SimulatedNodeSettings
    from sully.demo.faults import FAULTS
    from sully.domain.simulated.fleet import Fleet, Pace

    nodes = options.hollow_nodes
    if nodes is None:
        if not options.demo:
            return None
        nodes = DEMO_NODES
    devices = DEVICES if options.devices_per_node is None else options.devices_per_node
    start, stop = options.hollow_start_seconds, options.hollow_stop_seconds
    usual = Pace()
    return SimulatedNodeSettings(
        Fleet(nodes, devices, FAULTS if options.demo else {}),
        Pace(usual.start if start is None else start, usual.stop if stop is None else stop),
    )


def hints(kubeconfig: Path) -> str:
    """Return what to try with the demo."""
    return f"""\

In another terminal, while the demo fills up:
{exports(kubeconfig)}
  kubectl get pods -A -o wide                        who runs where
  kubectl -n team-lab describe pod -l app=big-model  why it is pending
  sully devices --tainted                            what is wrong, who says so
  sully explain rule a100-firmware                   what a rule would do
  sully evictions --watch                            who has to leave
  sully plan device 'gpu.sully.dev/hollow-0001/*' example.com/hot:NoExecute
"""


def exports(kubeconfig: Path) -> str:
    """Return how another terminal finds the server, and this program if it would not by itself."""
    found = f"  export KUBECONFIG={quote(str(kubeconfig.resolve()))}"
    if which("sully"):
        return found
    return f"{found}\n  export PATH={quote(str(Path(sys.executable).parent))}:$PATH"
