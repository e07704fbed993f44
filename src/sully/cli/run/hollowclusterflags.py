"""The flags of `sully up` about hollow clusters: members of the hub that exist only in the API."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.domain.simulated.clusters import Members

_MOST = 10_000
_LONGEST = 86_400


def add_hollow_cluster_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    parser.add_argument(
        "--hollow-clusters",
        type=_number(0, _MOST),
        metavar="N",
        help="have this many managed clusters whose agents only pretend; those of a former start"
        " beyond N are removed, without the flag all stay as they are and fall silent",
    )
    parser.add_argument(
        "--hollow-cluster-lease-seconds",
        type=_number(1, _LONGEST),
        default=0,
        metavar="S",
        help="lease duration of hollow clusters; after five of them a silent one is unreachable"
        " (default: 60, more for more than 1200 clusters)",
    )


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            wanted = f"must be a number from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{wanted}, not {text!r}")
        return int(text)

    return read


def check_hollow_clusters(options: argparse.Namespace) -> None:
    """Refuse flags that make no sense alone."""
    if options.hollow_cluster_lease_seconds and options.hollow_clusters is None:
        raise ValueError("--hollow-cluster-lease-seconds needs --hollow-clusters")


def hollow_clusters(options: argparse.Namespace) -> "Members | None":
    """Return which clusters there are to be, or None if they are not asked for."""
    from sully.domain.simulated.clusters import Members

    if options.hollow_clusters is None:
        return None
    return Members(options.hollow_clusters, options.hollow_cluster_lease_seconds)
