"""Flags for how a lease is kept, named as Kubernetes' own controllers name them.

`sully up` has them for replicas on etcd, `sully controllers` for processes of its kind.
"""

import argparse
from typing import TYPE_CHECKING

from sully.cli.client.durations import seconds

if TYPE_CHECKING:
    from sully.client.leases import LeaseTiming

_FLAGS = (
    ("lease-duration", 15.0, "how long others wait for a leader that is silent"),
    ("renew-deadline", 10.0, "after how long without a renewal a leader stops"),
    ("retry-period", 2.0, "how long to pause between two tries"),
)


def add_lease_flags(parser: argparse.ArgumentParser, *, short: bool = False) -> None:
    """Add the three times; `short` also without what all of them begin with."""
    for name, default, what in _FLAGS:
        parser.add_argument(
            f"--leader-elect-{name}",
            *([f"--{name}"] if short else []),
            dest=name.replace("-", "_"),
            type=seconds,
            default=default,
            metavar="T",
            help=f"{what} (default: {default:g}s)",
        )


def lease_timing(options: argparse.Namespace) -> "LeaseTiming":
    """Return what the flags say; `ValueError` if two could lead by it, or none."""
    # Late: `--help` needs none of this.
    from sully.client.leases import LeaseTiming

    return LeaseTiming(options.lease_duration, options.renew_deadline, options.retry_period)
