"""`sully untaint`: remove taints from devices or clusters."""

import click

from sully.cli.change.taint.args import (
    TaintArgs,
    complete_taint,
    dry_run_option,
    parse_taint_args,
    refuse_useless_flags,
    yes_option,
)
from sully.cli.change.taint.taint import run_taint
from sully.cli.client.options import NAMES, OUTPUTS, READ_NAMESPACE, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import CommandError, Options, command
from sully.cli.selection.args import selection_options
from sully.cli.selection.selectors import named

_HELP = """\
Remove taints from devices or clusters.

The rules that set the taint on devices are deleted. A rule that also taints other devices is
replaced by rules for those, after confirmation: devices that appear later are then not tainted. If
the taint comes from a driver or a ResourceSlicePatch, nothing is changed and the command prints
which object to change instead.

With rule NAME the rule is deleted, or all rules that one command created under this name; 'sully
rules' lists both.

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

# Delete a rule, or all rules that one command created
sully untaint rule firmware

# Remove a taint from clusters, by name and by label
sully untaint cluster eu-2 maintenance
sully untaint cluster -l region=eu maintenance
"""


@command(
    "untaint",
    usage="device|node|class|cluster NAME... KEY[:EFFECT]... [flags]\nrule NAME... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("arguments", nargs=-1, shell_complete=complete_taint)
@selection_options
@dry_run_option
@yes_option
@client_options(namespace=READ_NAMESPACE, everywhere=False, outputs=(*OUTPUTS, NAMES))
def untaint(options: Options) -> int:
    from sully.cli.change.taint.splitting import delete_named

    arguments = options.arguments
    kind, name = named(arguments[0]) if arguments else ("", "")
    if kind == "rule":
        rules = arguments if name else arguments[1:]
        return call(options, "untaint", lambda session: delete_named(session, rules))
    args = parse_taint_args(arguments, remove=True)
    _require_names(options, args)
    refuse_useless_flags(options, args)
    return call(options, "untaint", lambda session: _untaint(session, args))


async def _untaint(session: Session, args: TaintArgs) -> int:
    from sully.cli.change.taint.removals import WiderRulesError
    from sully.cli.change.taint.splitting import split_and_remove

    try:
        return await run_taint(session, args)
    except WiderRulesError:
        return await split_and_remove(session, args)


def _require_names(options: Options, args: TaintArgs) -> None:
    """Refuse a single argument: it was parsed as the taint, but may be the device."""
    flags = (options.classes, options.cel, options.selector, options.uuid, options.pci)
    if not args.names and not any(flags):
        raise CommandError(f"specify what to untaint and a taint: {args.kind} NAME... KEY", code=2)
