"""`sully untaint`: takes taints off devices or clusters."""

import argparse

from sully.cli.change.plan import NAMESPACE
from sully.cli.change.taint import act
from sully.cli.change.taintflags import (
    add_dry_run_flag,
    add_selection_flags,
    refuse_useless_flags,
)
from sully.cli.change.words import read_words
from sully.cli.client.calling import Session, call
from sully.cli.client.flags import NAMES, OUTPUTS, add_client_flags

_EPILOG = """\
examples:
  sully untaint device gpu.example.com/node-7/gpu-3 example.com/hot
  sully untaint device 'gpu.example.com/rack1-*/*' example.com/power:NoSchedule
  sully untaint device --class a100 example.com/firmware      the rule that names this class
  sully untaint cluster eu-2 maintenance
  sully untaint cluster -l region=eu maintenance

The rules that set the taint are deleted. A rule that is also for other devices stays, and so does
what a driver or a ResourceSlicePatch says; you are told which object it is, and what to do.
With -o json, yaml or name the rules that go, or the clusters as they are then, alone go to the
standard output, and all else to the other.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.usage = "%(prog)s device|cluster PATTERN… KEY[:EFFECT]… [flags]"
    parser.description = "Remove taints from devices or clusters."
    parser.epilog = _EPILOG
    parser.add_argument(
        "words",
        nargs="*",
        metavar="device|cluster PATTERN… KEY[:EFFECT]…",
        help="what to free, and of which taint",
    )
    add_selection_flags(parser)
    add_dry_run_flag(parser)
    parser.add_argument(
        "-y", "--yes", action="store_true", help="for scripts that always say it: nothing is asked"
    )
    add_client_flags(parser, namespace=NAMESPACE, outputs=(*OUTPUTS, NAMES))


def run(options: argparse.Namespace) -> int:
    """Remove taints."""
    return call(options, "untaint", _run)


async def _run(session: Session) -> int:
    words = read_words(session.options.words, remove=True)
    refuse_useless_flags(session.options, words)
    return await act(session, words)
