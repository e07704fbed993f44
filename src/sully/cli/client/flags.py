"""The flags of commands that speak to a server, as kubectl has them."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.client.kubeconfig.kubeconfig import Impersonation

TABLES = ("table", "wide")
OUTPUTS = (*TABLES, "json", "yaml")
_ALL = "(default: all)"
"""How the help for `-n` ends where nothing means everything."""
NAMES = "name"
"""The output that has nothing but names, a line each."""


def add_client_flags(
    parser: argparse.ArgumentParser,
    *,
    namespace: str = f"only what is in this namespace {_ALL}",
    outputs: Sequence[str] = OUTPUTS,
) -> None:
    """Describe the flags; `namespace` says what `-n` means here, and empty that there is none."""
    add_connection_flags(parser)
    if namespace:
        parser.add_argument("-n", "--namespace", default="", metavar="NS", help=namespace)
    if namespace.endswith(_ALL):
        # The hands of those who know kubectl type it anyway.
        parser.add_argument(
            "-A",
            "--all-namespaces",
            dest="namespace",
            action="store_const",
            const="",
            help="what is in all namespaces, as without -n",
        )
    if outputs:
        parser.add_argument(
            "-o",
            "--output",
            default=outputs[0],
            choices=outputs,
            help=f"how to print it (default: {outputs[0]})",
        )


def add_connection_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags that say where the server is, and as whom to ask."""
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="how to reach the server (default: KUBECONFIG, ~/.kube/config, the pod's own account)",
    )
    parser.add_argument("--context", default="", metavar="C", help="which context of it to use")
    parser.add_argument(
        "--as",
        dest="as_user",
        default="",
        metavar="USER",
        help="act as this user, if yours may (to impersonate)",
    )
    parser.add_argument(
        "--as-group",
        dest="as_groups",
        action="append",
        default=[],
        metavar="GROUP",
        help="and as a member of this group; may be repeated",
    )


def impersonation(options: argparse.Namespace) -> "Impersonation":
    """Return whom the flags say to act as."""
    from sully.client.kubeconfig.kubeconfig import Impersonation

    return Impersonation(options.as_user, tuple(options.as_groups))


def add_headers_flag(parser: argparse.ArgumentParser) -> None:
    """Describe the flag that leaves out the titles of a table."""
    parser.add_argument(
        "--no-headers", action="store_true", help="print tables without their titles"
    )


def add_snapshot_flag(parser: argparse.ArgumentParser) -> None:
    """Describe the flag that answers from a file instead of a server."""
    parser.add_argument(
        "--snapshot",
        action="append",
        default=[],
        metavar="FILE",
        help="answer from a file that 'sully snapshot' or 'kubectl get … -o yaml' wrote, without"
        " a server; - reads the standard input; may be repeated",
    )
