"""The flags that say which devices get a taint and how; `taint` and `plan` share them."""

import argparse

from sully.cli.client.durations import seconds

RATE = 10
"""Evictions per second, unless somebody says otherwise."""


def add_taint_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags."""
    parser.add_argument(
        "--class",
        dest="device_class",
        default="",
        metavar="C",
        help="only devices that the selectors of this DeviceClass match",
    )
    parser.add_argument(
        "--cel",
        action="append",
        default=[],
        metavar="EXPR",
        help="only devices for which this CEL expression is true; may be repeated",
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for others to read")
    parser.add_argument(
        "--for",
        dest="lasts",
        type=seconds,
        default=None,
        metavar="TIME",
        help="how long the taint stays, for example 2h (default: until it is removed)",
    )
    parser.add_argument(
        "--rate",
        type=_rate,
        default=None,
        metavar="N",
        help=f"how many pods may leave in a second (default: {RATE}); 0 for no limit",
    )
    parser.add_argument(
        "--name", default="", metavar="RULE", help="what the rule is called (default: made up)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="change a taint or rule that is there already"
    )


def _rate(text: str) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; say a whole number from 0 to 1000")
    return int(text)
