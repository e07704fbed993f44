"""`sully cordon`: prevent scheduling on devices."""

from sully.cli.change.drain.args import (
    RULES_HELP,
    USAGE,
    cordon_options,
    selection_arguments,
    undo_command,
)
from sully.cli.change.drain.cordons import (
    devices_text,
    prepare_cordon,
    report_cordoned,
    take,
    write_cordon,
)
from sully.cli.change.output import confirmed, is_dry_run, print_objects, report
from sully.cli.change.plan.simulation import make_plan
from sully.cli.change.taint.args import dry_run_option, yes_option
from sully.cli.client.options import NAMES, OUTPUTS, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import Options, command
from sully.cli.selection.args import NAMES_HELP

_HELP = f"""\
Cordon devices: no new pods are scheduled to them. Running pods are not affected.

{RULES_HELP} 'sully uncordon' deletes them again.

Large changes have to be confirmed: more than a tenth of all devices or of the devices of a class,
or everything that an owner uses. --yes skips the confirmation. Without a terminal and without --yes
a large change fails with exit code 2. The share of a node depends on the size of the cluster, so a
script always needs --yes.

{NAMES_HELP}
\b
Exit codes:
  0  done
  1  the command failed
  2  usage error, or a large change without a terminal and without --yes
  3  with --dry-run: new pods would be unschedulable
"""
_EXAMPLES = """\
# Prevent scheduling on a device that reports errors
sully cordon device node-7/gpu-3 --reason 'ECC errors'

# Prevent scheduling on all devices of a node, or of a class
sully cordon node node-7
sully cordon class a100

# Select devices by what their driver publishes
sully cordon device --cel 'device.driver == "gpu.example.com"'
sully cordon device --uuid GPU-5a1c2f3d

# Preview it
sully cordon node node-7 --dry-run
"""


@command("cordon", usage=USAGE, help=_HELP, examples=_EXAMPLES)
@selection_arguments
@cordon_options
@dry_run_option
@yes_option
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
def cordon(options: Options) -> int:
    return call(options, "cordon", _run)


async def _run(session: Session) -> int:
    from sully.cli.change.confirm import Question
    from sully.cli.change.large_changes import large_change_reasons
    from sully.cli.change.plan.manifests import Manifest
    from sully.cli.change.plan.proposals import proposed
    from sully.domain.drain.rules import CORDON

    snapshot = await take(session)
    prepared = await prepare_cordon(session, snapshot, CORDON)
    large = large_change_reasons(snapshot, prepared.devices) if prepared.new else ()
    if is_dry_run(session) or (large and not session.options.yes):
        changes = await proposed(session, snapshot, map(Manifest, prepared.new))
        plan = make_plan(session, snapshot, changes)
        question = Question(f"Cordon {devices_text(session, prepared)}", large)
        done = await confirmed(session, plan, question, ask=bool(large))
        if is_dry_run(session):
            print_objects(session, prepared.bodies)
            if not prepared.new:
                report_cordoned(session, prepared)
        if done is not None:
            return done
    prepared = await write_cordon(session, prepared)
    print_objects(session, prepared.written)
    report_cordoned(session, prepared)
    report(session, f"  to undo:  {undo_command(session.options)}")
    return 0
