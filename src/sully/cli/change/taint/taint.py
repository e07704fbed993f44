"""`sully taint`: taint devices or clusters, after showing what that would do."""

import click

from sully.cli.change.taint.args import (
    CLUSTER,
    EFFECTS_HELP,
    TaintArgs,
    complete_taint,
    dry_run_option,
    parse_taint_args,
    refuse_useless_flags,
    taint_options,
    yes_option,
)
from sully.cli.client.options import NAMES, OUTPUTS, READ_NAMESPACE, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import Options, command
from sully.cli.selection.args import NAMES_HELP

_HELP = f"""\
Set or remove taints on devices or clusters. Append a dash to a taint to remove it.

Taints on devices are set by DeviceTaintRules. A part of DRIVER/POOL/DEVICE that is * is left out of
the rule, which then also selects future devices. Everything that the rules of the server cannot
select by is expanded to what exists now: globs, labels of nodes and UUIDs, and on Kubernetes also
classes and CEL. There is then a rule for each pool or device, with one eviction rate for all of
them; devices that appear later are not covered. A name that matches nothing is an error.

{NAMES_HELP}
Before pods are evicted, the plan is shown and has to be confirmed; --yes skips the confirmation. If
other pods are scheduled to the devices before you answer, they are listed and have to be confirmed,
too. Pods that are scheduled there before the rule takes effect are evicted without a question.
A taint because of which pods would be recreated and evicted again and again is refused with --yes
or without a terminal, unless --force is set.
Then the command waits until all pods are evicted; --no-wait does not.

--overwrite also changes a rule of that --name that taints other devices. That they would lose this
taint has to be confirmed, and the command that restores the rule is printed.

{EFFECTS_HELP}
With -o json, yaml or name, only the objects are written to standard output, and everything else to
standard error. With --dry-run these are the objects that would be written.

\b
Exit codes:
  0  done
  1  the command failed, or pods of the plan were not evicted because the rule
     was changed or deleted
  2  usage error
  3  with --dry-run: a pod would be unschedulable, or a placement would lack
     clusters
  4  pods would be evicted again and again, and --force is not set
"""
_EXAMPLES = """\
# Taint a device, and evict the pods on it
sully taint device gpu.example.com/node-7/gpu-3 example.com/hot:NoExecute \\
    --reason 'fan broken'

# Taint the devices of a node, or those with a UUID
sully taint node node-7 example.com/firmware:NoSchedule
sully taint device --uuid GPU-4f2a8c1e example.com/hot:NoSchedule

# Taint all devices of a class for two hours, with two evictions per second
sully taint device --class a100 example.com/firmware=v2:NoExecute \\
    --rate 2 --for 2h

# Prevent scheduling on the devices of a rack
sully taint device 'gpu.example.com/rack1-*/*' example.com/power:NoSchedule

# Remove a taint
sully taint device gpu.example.com/node-7/gpu-3 example.com/hot:NoExecute-

# Taint a cluster, and remove a taint from several
sully taint cluster eu-2 maintenance:NoSelect --for 2h --reason 'new switch'
sully taint cluster -l region=eu maintenance-

# Print the rule instead of creating it
sully taint device '*/node-7' example.com/hot:NoSchedule --dry-run -o yaml
"""


@command(
    "taint",
    usage="device|node|class|cluster NAME... KEY[=VALUE]:EFFECT[-]... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("arguments", nargs=-1, shell_complete=complete_taint)
@taint_options
@dry_run_option
@yes_option
@click.option(
    "--force",
    is_flag=True,
    help="Set the taint even if pods would be evicted again and again.",
)
@click.option("--no-wait", is_flag=True, help="Do not wait until all pods are evicted.")
@client_options(namespace=READ_NAMESPACE, everywhere=False, outputs=(*OUTPUTS, NAMES))
def taint(options: Options) -> int:
    return call(options, "taint", _run)


async def _run(session: Session) -> int:
    args = parse_taint_args(session.options.arguments)
    refuse_useless_flags(session.options, args)
    return await run_taint(session, args)


async def run_taint(session: Session, args: TaintArgs) -> int:
    if args.kind == CLUSTER:
        from sully.cli.change.taint.cluster_taints import taint_clusters

        return await taint_clusters(session, args)
    from sully.cli.change.taint.device_taints import taint_devices

    return await taint_devices(session, args)
