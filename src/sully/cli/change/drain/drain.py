"""`sully drain`: cordon devices and evict the pods on them, as PodDisruptionBudgets allow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sully.cli.change.drain.args import (
    RULES_HELP,
    USAGE,
    drain_options,
    drain_settings,
    selection_arguments,
    undo_command,
)
from sully.cli.change.drain.cordons import (
    Cordon,
    devices_text,
    prepare_cordon,
    report_cordoned,
    take,
    write_cordon,
)
from sully.cli.change.drain.users import (
    data_risks,
    refuse_data_loss,
    refuse_unmanaged,
    users_of,
    warn_of_endless,
)
from sully.cli.change.output import confirmed, is_dry_run, print_objects, report
from sully.cli.change.plan.results import EXIT_EVICTION_LOOP, EXIT_UNSCHEDULABLE
from sully.cli.change.plan.simulation import simulation_options
from sully.cli.change.taint.args import dry_run_option, yes_option
from sully.cli.client.options import NAMES, OUTPUTS, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import CommandError, Options, command
from sully.cli.output.spinner import spinner
from sully.cli.selection.args import NAMES_HELP
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.drain.messages import DrainSettings, DrainState
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Change
    from sully.planning.simulation.drain import DrainRequest, PlannedDrain

SETTLE_SECONDS = 1.0
"""How long the scheduler gets to see new rules before the first pod is evicted."""
_HELP = f"""\
Drain devices: cordon them, then evict the pods that use them.

{RULES_HELP} Pods are evicted through the Eviction API, so PodDisruptionBudgets are honored.
Only pods that use the devices are evicted; admin access does not count as use. Each evicted pod is
printed, and gets an Event EvictedByDrain if you may create Events; 'sully history' has no record of
it. --dry-run -o wide lists the pods before.

The plan is shown first and has to be confirmed; --yes skips the confirmation. If other pods are
scheduled to the devices before you answer, they are listed and have to be confirmed, too. Pods with
emptyDir volumes lose the data in them: they are named in the plan, and with --yes or without a
terminal evicted only with --delete-emptydir-data.

Pods are evicted at --rate. No more are evicted while a replacement is unschedulable, and the drain
stops if one stays Pending for a minute, is not Ready within --wait-ready, or is scheduled to the
same device again. The devices stay cordoned then, and the commands to resume and to undo it are
printed.

Ctrl-C stops evicting. To resume, run the same command again; to undo, use 'sully uncordon'.

{NAMES_HELP}
\b
Exit codes:
  0  the devices are free, and replacements are Ready
  1  the drain failed, for example because a PodDisruptionBudget blocks
  2  usage error
  3  a replacement is unschedulable; with --dry-run: it would be, or a budget
     would block an eviction
  4  evicted pods use the same devices again
"""
_EXAMPLES = """\
# Take a device out of service
sully drain device node-7/gpu-3 --reason 'ECC errors'

# Empty a node for a firmware update, one pod after the other
sully drain node node-7 --one-at-a-time

# Let running pods finish instead of evicting them
sully drain class a100 --when-idle

# Evict one pod every five minutes; after two hours, ignore budgets
sully drain class a100 --rate 1/5m --timeout 2h --then NoExecute

# Preview it, then undo it
sully drain node node-7 --dry-run
sully uncordon node node-7
"""


@command("drain", usage=USAGE, help=_HELP, examples=_EXAMPLES)
@selection_arguments
@drain_options
@dry_run_option
@yes_option
@client_options(namespace="", outputs=(*OUTPUTS, NAMES))
def drain(options: Options) -> int:
    return call(options, "drain", _run, lasting=True)


async def _run(session: Session) -> int:
    from sully.cli.change.drain.report import cordoned_text
    from sully.domain.drain.rules import DRAIN
    from sully.views.kinds import CLAIMS
    from sully.views.snapshot.kinds import PODS

    settings = drain_settings(session.options)
    snapshot = await take(session, (CLAIMS, PODS))
    cordon = await prepare_cordon(session, snapshot, DRAIN)
    request = drain_request(session, cordon, settings)
    refuse_unmanaged(session, cordon, request)
    refuse_data_loss(session, cordon, request)
    done = await _confirmed(session, cordon, request)
    if done is None:
        cordon, done = await _confirm_later_pods(session, cordon, request)
    if done is not None:
        return done
    cordon = await write_cordon(session, cordon)
    try:
        print_objects(session, cordon.written)
        report_cordoned(session, cordon)
    except BrokenPipeError:
        # The reader of the output is gone (`| grep -m1`).
        session.warn(f"{cordoned_text(session)}\n  to undo:    {undo_command(session.options)}")
        raise
    return await execute_drain(session, cordon, request)


def drain_request(session: Session, cordon: Cordon, settings: "DrainSettings") -> "DrainRequest":
    from sully.domain.drain.rules import TAINT
    from sully.planning.simulation.drain import DrainRequest
    from sully.views.devices.drained import DrainedDevices

    ignore = session.options.ignore_daemonsets
    drained = DrainedDevices(cordon.devices, TAINT, ignore_daemon_sets=ignore)
    return DrainRequest(drained, settings, _state(cordon))


def _state(cordon: Cordon) -> "DrainState":
    """Return the state of an earlier run; it is on one of the rules."""
    from sully.client.transport import Key
    from sully.domain.drain.rules import decode_state
    from sully.views.kinds import RULES

    rules = (cordon.snapshot.get(RULES, Key("", name)) for name in cordon.names)
    return decode_state([rule.metadata.annotations for rule in rules if rule is not None])


# -- the plan -------------------------------------------------------------------------------------


async def _confirmed(session: Session, cordon: Cordon, request: "DrainRequest") -> int | None:
    """Show the plan and ask for confirmation; return the exit code if that was all."""
    from sully.cli.change.confirm import Question
    from sully.cli.change.drain.report import limits_text, stop_text
    from sully.cli.change.large_changes import large_change_reasons
    from sully.domain.drain.messages import DrainOutcome

    planned, plan = await _plan(session, cordon, request)
    users, stop = len(users_of(cordon, request)), planned.stop
    report(session, limits_text(request.settings, len(cordon.devices), users))
    warn_of_endless(session, cordon, request)
    loop = stop is not None and stop.outcome is DrainOutcome.EVICTION_LOOP
    if stop is not None and stop.outcome is not DrainOutcome.DONE:
        session.warn(f"warning: the drain would stop early. {stop_text(stop)}")
    if loop and not is_dry_run(session):
        _refuse_loop(session)
    large = large_change_reasons(cordon.snapshot, cordon.devices) if cordon.new else ()
    evicts = bool(users) and request.settings.evicts
    risks = data_risks(session, cordon, request)
    question = Question(_action(session, cordon, request), large, risks)
    done = await confirmed(session, plan, question, ask=evicts or bool(large))
    if not is_dry_run(session):
        return done
    print_objects(session, cordon.bodies)
    incomplete = request.settings.evicts and bool(plan.blocked_evictions)
    return EXIT_EVICTION_LOOP if loop else EXIT_UNSCHEDULABLE if incomplete else done


def _action(session: Session, cordon: Cordon, request: "DrainRequest") -> str:
    """Return what will happen, for the question."""
    pods, devices = number_of(len(users_of(cordon, request)), "pod"), devices_text(session, cordon)
    if not request.settings.evicts:
        return f"Cordon {devices} and wait for {pods} to finish"
    # A drain that is resumed, or of devices that are cordoned.
    return f"Evict {pods} and cordon {devices}" if cordon.new else f"Evict {pods} from {devices}"


def _refuse_loop(session: Session) -> None:
    if session.options.force:
        return
    raise CommandError(
        "evicted pods would use the same devices again; nothing changed\n"
        "  use --force to try it anyway",
        code=EXIT_EVICTION_LOOP,
    )


async def _confirm_later_pods(
    session: Session, cordon: Cordon, request: "DrainRequest"
) -> tuple[Cordon, int | None]:
    """Ask again while more pods use the devices than were confirmed.

    Return the cordon with the newest pods, and the exit code if any.
    """
    from sully.cli.change.confirm import Question
    from sully.cli.change.later_pods import confirmed_again, later, refreshed
    from sully.domain.drain.messages import DrainOutcome

    def users(cordon: Cordon) -> dict[str, str]:
        return {pod.metadata.uid: pod.label for pod in users_of(cordon, request)}

    before, interactive = users(cordon), not session.options.yes
    if not request.settings.evicts:
        return cordon, None
    while (
        snapshot := await refreshed(session, cordon.snapshot, interactive=interactive)
    ) is not None:
        cordon = replace(cordon, snapshot=snapshot)
        pods = later(before, users(cordon))
        if not pods:
            break
        before = users(cordon)
        refuse_unmanaged(session, cordon, request)
        refuse_data_loss(session, cordon, request)
        planned, plan = await _plan(session, cordon, request)
        if planned.stop is not None and planned.stop.outcome is DrainOutcome.EVICTION_LOOP:
            _refuse_loop(session)
        for risk in data_risks(session, cordon, request):
            session.warn(f"warning: {risk}")
        question = Question(_action(session, cordon, request))
        done = await confirmed_again(session, plan, question, pods)
        if done is not None or not interactive:
            return cordon, done
    return cordon, None


async def _plan(
    session: Session, cordon: Cordon, request: "DrainRequest"
) -> "tuple[PlannedDrain, Plan]":
    return simulate_drain(session, cordon, request, await cordon_changes(session, cordon))


async def cordon_changes(session: Session, cordon: Cordon) -> "list[Change]":
    """Return the changes that cordon devices, validated by the server."""
    from sully.cli.change.plan.manifests import Manifest
    from sully.cli.change.plan.proposals import proposed

    return await proposed(session, cordon.snapshot, map(Manifest, cordon.new))


def simulate_drain(
    session: Session, cordon: Cordon, request: "DrainRequest", changes: "Sequence[Change]"
) -> "tuple[PlannedDrain, Plan]":
    """Run a drain on a copy and return how it ends, and the plan."""
    from sully.planning.dryrun.changes import start_time
    from sully.planning.plan_builder import build_plan, gap_notes, no_effect_texts
    from sully.planning.simulation.simulator import Simulation

    snapshot = cordon.snapshot
    simulation = Simulation(
        snapshot, simulation_options(session), start=start_time(changes, snapshot.taken)
    )
    with spinner(lambda: f"Planning: {number_of(len(simulation.evicted), 'pod')} evicted so far"):
        simulation.run(changes, request)
        plan = build_plan(simulation, gap_notes(snapshot), no_effect_texts(snapshot, changes))
    if simulation.drain is None:
        raise TypeError("a simulated drain has a result")
    return simulation.drain, plan


# -- the drain ------------------------------------------------------------------------------------


async def execute_drain(session: Session, cordon: Cordon, request: "DrainRequest") -> int:
    from sully.cli.change.drain.runner import DrainRunner

    if (cordon.new or cordon.joined) and users_of(cordon, request):
        await session.clock.sleep(SETTLE_SECONDS)
    return await DrainRunner(session, cordon.names, request).run()
