"""The flags that say what gets a taint and how; `taint`, `untaint` and `plan` share them."""

import argparse

from sully.cli.change.words import CLUSTER, Words
from sully.cli.client.calling import CommandError
from sully.cli.client.durations import seconds

RATE = 10
"""Evictions per second, unless somebody says otherwise."""
_MARKS = {"--reason": "reason", "--for": "lasts", "--rate": "rate", "--name": "name"}
_PICKS = {"--class": "device_class", "--cel": "cel"}
DRY_RUNS = ("none", "client", "server")


def add_selection_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags that say which devices or clusters."""
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
    parser.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="LABELS",
        help="only clusters with these labels, such as region=eu",
    )


def add_taint_flags(parser: argparse.ArgumentParser) -> None:
    """Describe the flags that say what gets a taint, and how."""
    add_selection_flags(parser)
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for others to read")
    parser.add_argument(
        "--for",
        dest="lasts",
        type=_lasting,
        default=None,
        metavar="TIME",
        help="how long the taint stays, for example 2h (default: until it is removed)",
    )
    parser.add_argument(
        "--rate",
        type=_rate,
        default=None,
        metavar="N",
        help=f"how many pods may leave in a second, after ten at once (default: {RATE}); 0 for no"
        " limit",
    )
    parser.add_argument(
        "--name", default="", metavar="RULE", help="what the rule is called (default: made up)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="change a taint or rule that is there already"
    )


def add_dry_run_flag(parser: argparse.ArgumentParser) -> None:
    """Describe the flag that only shows what would happen, with the values that kubectl has."""
    parser.add_argument(
        "--dry-run",
        nargs="?",
        const="server",
        default="none",
        choices=DRY_RUNS,
        metavar="=client|server",
        help="show the plan, and change nothing; the server checks the objects, unless =client",
    )


def refuse_useless_flags(options: argparse.Namespace, words: Words) -> None:
    """Refuse flags that would do nothing: whoever gives one believes that it does."""
    given = _given(options)
    if words.what == CLUSTER:
        _refuse(given & (_MARKS.keys() | _PICKS.keys()), "clusters have nothing of the kind")
        return
    _refuse(given & {"-l"}, "devices have no labels; --class and --cel choose among them")
    if not words.sets:
        _refuse(given & _MARKS.keys(), "it is for taints that are set, and none is")


def refuse_taint_flags(options: argparse.Namespace) -> None:
    """Refuse the flags of a taint where objects come from files, which say all that themselves."""
    more = {"--overwrite"} if options.overwrite else set()
    _refuse(_given(options) | more, "it is for a taint in words; in a file the object says it")


def _given(options: argparse.Namespace) -> set[str]:
    return {
        flag
        for flag, name in (_MARKS | _PICKS | {"-l": "selector"}).items()
        if getattr(options, name, None) not in (None, "", [])
    }


def _refuse(flags: set[str], why: str) -> None:
    if flags:
        raise CommandError(f"{', '.join(sorted(flags))}: {why}", code=2)


def _lasting(text: str) -> float:
    found = seconds(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is over at once; say at least 1s")
    return found


def _rate(text: str) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no rate; say how many pods a second, from 1 to 1000, or 0 for no limit"
        )
    return int(text)
