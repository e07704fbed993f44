"""The flag that says how long history is kept; commands that run controllers share it."""

import argparse
from datetime import timedelta

from sully.cli.client.durations import seconds

_LONGEST = timedelta(days=100 * 365)


def add_history_flags(parser: argparse.ArgumentParser) -> None:
    """Let users say when records are forgotten."""
    parser.add_argument(
        "--history-retention",
        type=seconds,
        default=30 * 86400.0,
        metavar="T",
        help="how long records of evictions and lifted taint rules are kept (default: 30d)",
    )


def history_kept(options: argparse.Namespace) -> timedelta:
    """Return what the flag says; beyond a lifetime it makes no difference, and dates end."""
    return timedelta(seconds=min(options.history_retention, _LONGEST.total_seconds()))
