"""What `sully taint` does with devices: plan, confirm, write rules, wait for the evictions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.aftermath import (
    aftermath_lines,
    await_aftermath,
    evicted_pods,
)
from sully.cli.change.confirm import Question
from sully.cli.change.large_changes import large_change_reasons
from sully.cli.change.later_pods import confirm_later_pods
from sully.cli.change.output import (
    confirmed,
    deleted_objects,
    for_programs,
    is_dry_run,
    print_objects,
    report,
    text_stream,
)
from sully.cli.change.plan.manifests import Manifest
from sully.cli.change.plan.proposals import proposed
from sully.cli.change.plan.simulation import make_plan
from sully.cli.change.taint.args import TaintArgs
from sully.cli.change.taint.overwrites import lost_taints, merged, undo_command
from sully.cli.change.taint.removals import removals
from sully.cli.change.taint.rules import (
    own_label,
    rule_bodies,
    selected_devices,
    take_devices,
)
from sully.cli.change.taint.storable import as_storable, dry_run
from sully.cli.change.taint.writes import delete_rules, write_rules
from sully.cli.client.options import server_flags
from sully.cli.client.session import Session
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.capabilities.inaction import Subject, inaction_of
from sully.domain.devices.taints import EVICTING_EFFECTS, NONE
from sully.domain.planning.report import ReplacementOutcome
from sully.domain.planning.rules.taint_rules import body_rate
from sully.machinery.formats.plurals import number_of
from sully.views.kinds import CLAIMS, CONSUMER_PODS, RULES

if TYPE_CHECKING:
    from sully.cli.change.progress import FollowedEviction
    from sully.cli.selection.device_selection import DeviceSelection
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]


async def taint_devices(session: Session, args: TaintArgs) -> int:
    ask = any(_evicts(taint.effect) for taint in args.sets)
    snapshot = await take_devices(session, args, planned=ask or is_dry_run(session))
    deletions = await removals(session, snapshot, args)
    selection = await selected_devices(session, snapshot, args)
    large = _large_change(snapshot, args, selection)
    bodies = rule_bodies(session, snapshot, args, selection)
    lost = lost_taints(snapshot, bodies)
    if not ask and not is_dry_run(session) and (lost or (large and not session.options.yes)):
        ask, snapshot = True, await take_devices(session, args)
        bodies = rule_bodies(session, snapshot, args, selection)
    bodies = await as_storable(session, snapshot, bodies)
    deleted = await deleted_objects(session, deletions if not bodies else ())

    def question(plan: "Plan") -> Question:
        return Question(_action(session, args, plan, selection), large, lost)

    plan: Plan | None = None
    changes: list[Change] = []
    if ask or is_dry_run(session):
        changes = [*deletions, *await proposed(session, snapshot, map(Manifest, bodies))]
        plan = make_plan(session, snapshot, changes)
        done = await confirmed(session, plan, question(plan), ask=ask)
        if is_dry_run(session):
            print_objects(session, await _dry_run_objects(session, snapshot, bodies) or deleted)
        if done is not None:
            return done
    else:
        _warn_of_no_effect(session, snapshot)
        _report_devices(session, snapshot, selection)
    evicting = [body for body in bodies if _evicts(body["spec"]["taint"]["effect"])]
    if plan is not None and evicting and selection is not None:
        snapshot, plan, done = await confirm_later_pods(
            session, snapshot, plan, changes, selection.devices, question
        )
        if done is not None:
            return done
    before = await _evicted_before(session, snapshot, evicting)
    try:
        await delete_rules(session, deletions)
        written = await write_rules(session, snapshot, bodies)
        print_objects(session, written or deleted)
        if plan is None or not evicting:
            _report_undo(session, snapshot, bodies)
            return 0
        return 0 if await _follow(session, snapshot, plan, evicting, before) else 1
    except BrokenPipeError:
        # The reader of the output is gone (`| grep -m1`).
        await _warn_of_rest(session, snapshot, evicting, bodies)
        raise


async def _warn_of_rest(
    session: Session, snapshot: "Snapshot", evicting: Sequence[Obj], bodies: Sequence[Obj]
) -> None:
    """Print what continues after the command, and how to undo it."""
    from sully.cli.change.progress import FollowedEviction, still_evicting
    from sully.cli.client.evictor import sully_evicts_at

    undo = undo_command(session, snapshot, bodies)
    if evicting:
        names = [str(body["metadata"]["name"]) for body in evicting]
        group = own_label(snapshot, evicting)
        eviction = FollowedEviction(names, rate=None, group=group, undo=undo)
        pausable, flags = await sully_evicts_at(session), server_flags(session.options)
        session.warn(still_evicting(eviction, pausable=pausable, flags=flags))
    elif undo:
        session.warn(f"  to undo:  {undo}")


def _report_undo(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> None:
    """Print how to undo a taint that evicts no pods."""
    if undo := undo_command(session, snapshot, bodies):
        report(session, f"  to undo:  {undo}")


def _action(
    session: Session, args: TaintArgs, plan: "Plan", selection: "DeviceSelection | None"
) -> str:
    """Return what will happen, for the question."""
    if selection is None:
        return f"Remove {', '.join(str(taint.taint) for taint in args.removes)}"
    devices = args.selection(session.options).describe_some(len(selection.devices))
    action = f"Taint {devices} with {', '.join(map(str, args.sets))}"
    pods = len(plan.caused)
    return f"{action} and evict {number_of(pods, 'pod')}" if pods else action


def _large_change(
    snapshot: "Snapshot", args: TaintArgs, selection: "DeviceSelection | None"
) -> tuple[str, ...]:
    """Return why a change is large; a taint that only informs never is."""
    if selection is None or all(taint.effect == NONE for taint in args.sets):
        return ()
    return large_change_reasons(snapshot, selection.devices)


def _report_devices(
    session: Session, snapshot: "Snapshot", selection: "DeviceSelection | None"
) -> None:
    """Print how many devices are tainted; a plan has the same number."""
    if selection is not None:
        inventory = snapshot.inventory
        total = sum(len(inventory.devices(pool)) for pool in inventory.pools())
        report(session, f"{len(selection.devices)} of {number_of(total, 'device')} affected.")


def _warn_of_no_effect(session: Session, snapshot: "Snapshot") -> None:
    """Warn that rules have no effect; a plan has the same text."""
    from sully.cli.client.inaction import warn_of_inactions

    inaction = inaction_of(snapshot.control_plane, Subject.RULES)
    warn_of_inactions(session, [inaction] if inaction is not None else ())


def _evicts(effect: str) -> bool:
    return effect in EVICTING_EFFECTS


async def _dry_run_objects(
    session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]
) -> list[Obj]:
    """Return the rules as they would be stored, or be sent with --dry-run=client."""
    if not for_programs(session):
        return []
    if session.options.dry_run == "client":
        return [merged(snapshot, body) for body in bodies]
    return [await dry_run(session, snapshot, body) for body in bodies]


async def _evicted_before(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> int:
    """Return how many pods existing rules have evicted that are changed."""
    from sully.cli.change.recorded_counts import evicted_total, recorded_counts

    existing = [snapshot.get(RULES, key_of(body)) for body in bodies]
    rules = [rule for rule in existing if rule is not None]
    return evicted_total(rules, await recorded_counts(session, rules)) if rules else 0


async def _follow(
    session: Session, snapshot: "Snapshot", plan: "Plan", bodies: Sequence[Obj], before: int
) -> bool:
    """Wait for the evictions, unless --no-wait; report whether all pods were evicted.

    The rules had evicted some pods `before`.
    """
    from sully.cli.change.progress import follow

    outcomes = {eviction.replacement.outcome for eviction in plan.caused}
    if ReplacementOutcome.EVICTED_AGAIN in outcomes:
        session.warn("warning: evicted pods would be rescheduled and evicted again; not waiting")
        return True
    if session.options.no_wait or not snapshot.control_plane.honors_rules:
        return True
    eviction = _eviction(session, snapshot, plan, bodies, before)
    complete = await follow(session, eviction, text_stream(session))
    if complete:
        await _report_aftermath(session, snapshot, eviction)
    return complete


async def _report_aftermath(
    session: Session, snapshot: "Snapshot", eviction: "FollowedEviction"
) -> None:
    """Print how many pods run again or are Pending, and how to undo the taint."""
    aftermath = None
    if eviction.pods:
        aftermath = await await_aftermath(session, evicted_pods(snapshot, eviction.pods))
    for line in aftermath_lines(aftermath, eviction.undo):
        report(session, line)


def _eviction(
    session: Session, snapshot: "Snapshot", plan: "Plan", bodies: Sequence[Obj], before: int
) -> "FollowedEviction":
    from sully.cli.change.progress import FollowedEviction

    names = [str(body["metadata"]["name"]) for body in bodies]
    evicted = [Key(eviction.namespace, eviction.name) for eviction in plan.caused]
    pods = {key: pod for key in evicted if (pod := snapshot.usage.pod(key)) is not None}
    all_visible = snapshot.gap(CONSUMER_PODS) is None and snapshot.gap(CLAIMS) is None
    return FollowedEviction(
        names,
        rate=body_rate(bodies[0]),
        ends=plan.last_eviction_time,
        pods={key: pod.metadata.uid for key, pod in pods.items()},
        group=own_label(snapshot, bodies),
        before=before,
        expires=session.options.lasts is not None and all_visible,
        undo=undo_command(session, snapshot, bodies),
    )
