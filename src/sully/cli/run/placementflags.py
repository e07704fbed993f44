"""The flags that say when clusters leave placements; commands that run controllers share them."""

import argparse
import sys
from typing import TYPE_CHECKING

from sully.machinery.compat import Compat

if TYPE_CHECKING:
    from sully.controllers.placement.settings import PlacementSettings

_DIGITS = 9
"""Thirty years in seconds; more is no number of anything here."""


def add_placement_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    parser.add_argument(
        "--default-cluster-toleration-seconds",
        type=_number,
        metavar="N",
        help="how long placements that say nothing about it keep clusters that are unreachable or"
        " unavailable (default: not at all)",
    )
    parser.add_argument(
        "--cluster-leave-budget-per-minute",
        type=_number,
        metavar="N",
        help="how many clusters may leave their placements in a minute because of their health; 0"
        " holds all of them (default: no limit)",
    )


def warn_of_placement(options: argparse.Namespace, command: str) -> None:
    """Say which of the flags nothing comes of."""
    if Compat.named(options.compat).allows_placement_limits:
        return
    for name in ("default_cluster_toleration_seconds", "cluster_leave_budget_per_minute"):
        if getattr(options, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            text = f"sully {command}: {flag} has no effect with --compat reference"
            print(text, file=sys.stderr)


def placement_settings(options: argparse.Namespace) -> "PlacementSettings":
    """Return what the flags say."""
    # A late import: `--help` needs none of this.
    from sully.controllers.placement.settings import PlacementSettings

    return PlacementSettings(
        toleration_seconds=options.default_cluster_toleration_seconds,
        leaves_per_minute=options.cluster_leave_budget_per_minute,
    )


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at most {_DIGITS} digits, not {text!r}"
        )
    return int(text)
