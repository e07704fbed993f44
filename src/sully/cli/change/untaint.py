"""`sully untaint`: remove taints from devices or clusters."""

import click

from sully.cli.change.plan import NAMESPACE
from sully.cli.change.taint import run_taint
from sully.cli.change.taint_args import (
    complete_taint,
    dry_run_option,
    parse_taint_args,
    refuse_useless_flags,
    selection_options,
    yes_option,
)
from sully.cli.client.options import NAMES, OUTPUTS, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import Options, command

_HELP = """\
Remove taints from devices or clusters.

The rules that set the taint on devices are deleted. If a rule also selects other devices, or the
taint comes from a driver or a ResourceSlicePatch, nothing is changed and the command prints which
object to change instead.

With -o json, yaml or name, only the deleted rules or the changed clusters are written to standard
output, and everything else to standard error.
"""
_EXAMPLES = """\
# Remove a taint from a device
sully untaint device gpu.example.com/node-7/gpu-3 example.com/hot

# Remove a taint with one effect from many devices
sully untaint device 'gpu.example.com/rack1-*/*' example.com/power:NoSchedule

# Delete the rule that selects this class
sully untaint device --class a100 example.com/firmware

# Remove a taint from clusters, by name and by label
sully untaint cluster eu-2 maintenance
sully untaint cluster -l region=eu maintenance
"""


@command(
    "untaint",
    usage="device|cluster PATTERN... KEY[:EFFECT]... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("words", nargs=-1, shell_complete=complete_taint)
@selection_options
@dry_run_option
@yes_option
@client_options(namespace=NAMESPACE, everywhere=False, outputs=(*OUTPUTS, NAMES))
def untaint(options: Options) -> int:
    return call(options, "untaint", _run)


async def _run(session: Session) -> int:
    args = parse_taint_args(session.options.words, remove=True)
    refuse_useless_flags(session.options, args)
    return await run_taint(session, args)
