"""Flags that say how long history is kept; commands that run controllers share the first."""

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


def add_event_flags(parser: argparse.ArgumentParser) -> None:
    """Let users say when events are forgotten; only a server forgets them."""
    parser.add_argument(
        "--event-ttl",
        type=seconds,
        default=3600.0,
        metavar="T",
        help="how long events are kept that nobody writes again; 0s: for ever (default: 1h)",
    )


def events_kept(options: argparse.Namespace) -> timedelta:
    """Return what the flag says."""
    return timedelta(seconds=min(options.event_ttl, _LONGEST.total_seconds()))


def history_kept(options: argparse.Namespace) -> timedelta:
    """Return what the flag says; beyond a lifetime it makes no difference, and dates end."""
    return timedelta(seconds=min(options.history_retention, _LONGEST.total_seconds()))
