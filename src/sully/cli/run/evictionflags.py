"""The flags that say how pods are evicted; commands that run controllers share them."""

import argparse
from typing import TYPE_CHECKING

from sully.cli.client.durations import seconds

if TYPE_CHECKING:
    from sully.evictor.settings import EvictionSettings


def add_eviction_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    parser.add_argument(
        "--default-evictions-per-second",
        type=rate,
        default=0,
        metavar="N",
        help="how fast pods leave because of a taint that does not say so itself, after a burst"
        " of 10; 0: no limit (default: 0)",
    )
    parser.add_argument(
        "--max-evictions-per-minute",
        type=rate,
        default=0,
        metavar="N",
        help="how many pods may leave in any minute because of all taints together; 0: no limit"
        " (default: 0)",
    )
    parser.add_argument(
        "--max-staleness",
        type=_bound,
        default=90.0,
        metavar="T",
        help="evict nobody on what the server has not confirmed for so long; below the minute"
        " between bookmarks this costs more lists; 0s: no bound (default: 90s)",
    )


def eviction_settings(options: argparse.Namespace) -> "EvictionSettings":
    """Return what the flags say."""
    # A late import: `--help` needs none of this.
    from sully.evictor.settings import EvictionSettings

    return EvictionSettings(
        default_per_second=options.default_evictions_per_second or None,
        max_per_minute=options.max_evictions_per_minute or None,
        max_staleness=options.max_staleness or None,
    )


def _bound(text: str) -> float:
    found = seconds(text)
    if 0 < found < 1:
        raise argparse.ArgumentTypeError("must be at least 1s, or 0s for no bound")
    return found


def rate(text: str) -> int:
    """Read how many may leave; for `type=` of a flag."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more, not {text!r}")
    return int(text)
