"""The flags of commands that speak to a server, as kubectl has them."""

import argparse
from collections.abc import Sequence

TABLES = ("table", "wide")
OUTPUTS = (*TABLES, "json", "yaml")


def add_client_flags(
    parser: argparse.ArgumentParser,
    *,
    namespace: str = "only what is in this namespace (default: all)",
    outputs: Sequence[str] = OUTPUTS,
) -> None:
    """Describe the flags; `namespace` says what `-n` means here, and empty that there is none."""
    _add_connection_flags(parser)
    if namespace:
        parser.add_argument("-n", "--namespace", default="", metavar="NS", help=namespace)
    if outputs:
        parser.add_argument(
            "-o",
            "--output",
            default=outputs[0],
            choices=outputs,
            help=f"how to print it (default: {outputs[0]})",
        )


def _add_connection_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="how to reach the server (default: KUBECONFIG, ~/.kube/config, the pod's own account)",
    )
    parser.add_argument("--context", default="", metavar="C", help="which context of it to use")


def add_snapshot_flag(parser: argparse.ArgumentParser) -> None:
    """Describe the flag that answers from a file instead of a server."""
    parser.add_argument(
        "--snapshot",
        default="",
        metavar="FILE",
        help="answer from a file that 'sully snapshot' or 'kubectl get … -o yaml' wrote, without"
        " a server; - reads the standard input",
    )
