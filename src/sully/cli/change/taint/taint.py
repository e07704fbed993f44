"""`sully taint`: taint devices or clusters, after showing what that would do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sully.cli.change.output import (
    confirmed,
    for_programs,
    is_dry_run,
    print_objects,
    report,
    text_stream,
)
from sully.cli.change.plan.plan import NAMESPACE, make_plan
from sully.cli.change.taint.args import (
    CLUSTER,
    EFFECTS,
    TaintArgs,
    complete_taint,
    dry_run_option,
    parse_taint_args,
    refuse_useless_flags,
    taint_options,
    yes_option,
)
from sully.cli.change.taint.rules import (
    own_label,
    rule_bodies,
    selected_devices,
    take_devices,
    take_fleet,
)
from sully.cli.change.taint.storable import as_storable, dry_run, warn_of_expiry
from sully.cli.client.options import NAMES, OUTPUTS, client_options
from sully.cli.client.session import Session, call
from sully.cli.command import Options, command
from sully.cli.output.formatting import cluster_name
from sully.cli.selection.args import NAMES_HELP
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.cli.change.progress import Eviction
    from sully.cli.selection.device_selection import DeviceSelection
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Put, Remove
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_HELP = f"""\
Set or remove taints on devices or clusters. Append a dash to a taint to remove it.

Taints on devices are set by DeviceTaintRules. A part of DRIVER/POOL/DEVICE that is * is left out of
the rule, which then also selects future devices. Everything that the rules of the server cannot
select by is expanded to what exists now: globs, labels of nodes and UUIDs, and on Kubernetes also
classes and CEL. There is then a rule for each pool or device, with one eviction rate for all of
them; devices that appear later are not covered. A name that matches nothing is an error.

{NAMES_HELP}
Before pods are evicted, the plan is shown and has to be confirmed; --yes skips the confirmation.
A taint because of which pods would be recreated and evicted again and again is refused with --yes
or without a terminal, unless --force is set.
Then the command waits until all pods are evicted; --no-wait does not.

{EFFECTS}
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
@client_options(namespace=NAMESPACE, everywhere=False, outputs=(*OUTPUTS, NAMES))
def taint(options: Options) -> int:
    return call(options, "taint", _run)


async def _run(session: Session) -> int:
    args = parse_taint_args(session.options.arguments)
    refuse_useless_flags(session.options, args)
    return await run_taint(session, args)


async def run_taint(session: Session, args: TaintArgs) -> int:
    return await (_clusters if args.kind == CLUSTER else _devices)(session, args)


# -- devices --------------------------------------------------------------------------------------


async def _devices(session: Session, args: TaintArgs) -> int:
    from sully.cli.change.plan.manifests import Manifest
    from sully.cli.change.plan.proposals import proposed
    from sully.cli.change.taint.removals import removals
    from sully.cli.change.taint.writes import delete_rules, write_rules

    ask = any(_evicts(taint.effect) for taint in args.sets)
    snapshot = await take_devices(session, args, planned=ask or is_dry_run(session))
    deletions = await removals(session, snapshot, args)
    selection = await selected_devices(session, snapshot, args)
    large = _large_change(snapshot, args, selection)
    if large and not ask and not session.options.yes and not is_dry_run(session):
        ask, snapshot = True, await take_devices(session, args)
    bodies = rule_bodies(session, snapshot, args, selection)
    bodies = await as_storable(session, snapshot, bodies)
    deleted = await _existing(session, deletions if not bodies else ())
    plan = None
    if ask or is_dry_run(session):
        changes = [*deletions, *await proposed(session, snapshot, map(Manifest, bodies))]
        plan = make_plan(session, snapshot, changes)
        done = await confirmed(session, plan, ask=ask, large=large)
        if is_dry_run(session):
            print_objects(session, await _dry_run_objects(session, snapshot, bodies) or deleted)
        if done is not None:
            return done
    else:
        _warn_of_no_effect(session, snapshot)
        _report_devices(session, snapshot, selection)
    evicting = [body for body in bodies if _evicts(body["spec"]["taint"]["effect"])]
    before = await _evicted_before(session, snapshot, evicting)
    await delete_rules(session, deletions)
    written = await write_rules(session, snapshot, bodies)
    print_objects(session, written or deleted)
    if plan is None or not evicting:
        _report_undo(session, snapshot, bodies)
        return 0
    return 0 if await _follow(session, snapshot, plan, evicting, before) else 1


def _report_undo(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> None:
    """Print how to undo a taint that evicts no pods; what was overwritten is not restored."""
    from sully.cli.change.aftermath import delete_command
    from sully.client.objects import key_of
    from sully.views.kinds import RULES

    existing = [snapshot.get(RULES, key_of(body)) for body in bodies]
    if bodies and existing.count(None) == len(bodies):
        names = [str(body["metadata"]["name"]) for body in bodies]
        report(session, f"  to undo:  {delete_command(names, own_label(snapshot, bodies))}")


def _large_change(
    snapshot: "Snapshot", args: TaintArgs, selection: "DeviceSelection | None"
) -> tuple[str, ...]:
    """Return why a change is large; a taint that only informs never is."""
    from sully.cli.change.large_changes import large_change_reasons
    from sully.domain.devices.taints import NONE

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
    from sully.domain.capabilities.inaction import Subject, inaction_of

    inaction = inaction_of(snapshot.control_plane, Subject.RULES)
    warn_of_inactions(session, [inaction] if inaction is not None else ())


def _evicts(effect: str) -> bool:
    from sully.domain.devices.taints import EVICTING_EFFECTS

    return effect in EVICTING_EFFECTS


async def _dry_run_objects(
    session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]
) -> list[Obj]:
    """Return the rules as they would be stored, or be sent with --dry-run=client."""
    if not for_programs(session):
        return []
    if session.options.dry_run == "client":
        return [_merged(snapshot, body) for body in bodies]
    return [await dry_run(session, snapshot, body) for body in bodies]


def _merged(snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule as it would be after --overwrite: kubectl refuses the nulls of a patch."""
    from sully.client.objects import key_of, to_body
    from sully.machinery.patch.merge_patch import apply_merge_patch
    from sully.views.kinds import RULES

    existing = snapshot.get(RULES, key_of(body))
    merged: Obj = apply_merge_patch(to_body(RULES, existing) if existing else {}, body)
    return merged


async def _existing(session: Session, deletions: "Sequence[Remove]") -> list[Obj]:
    if not for_programs(session):
        return []
    get = session.transport.get
    return [await get(deletion.kind.read_as(dict), deletion.key) for deletion in deletions]


async def _evicted_before(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> int:
    """Return how many pods existing rules have evicted that are changed."""
    from sully.cli.change.recorded_counts import evicted_total, recorded_counts
    from sully.client.objects import key_of
    from sully.views.kinds import RULES

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
    from sully.domain.planning.report import ReplacementOutcome

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


async def _report_aftermath(session: Session, snapshot: "Snapshot", eviction: "Eviction") -> None:
    """Print how many pods run again or are Pending, and how to undo the taint."""
    from sully.cli.change.aftermath import (
        aftermath_lines,
        await_aftermath,
        delete_command,
        evicted_pods,
    )

    aftermath = None
    if eviction.pods:
        aftermath = await await_aftermath(session, evicted_pods(snapshot, eviction.pods))
    for line in aftermath_lines(aftermath, delete_command(eviction.names, eviction.group)):
        report(session, line)


def _eviction(
    session: Session, snapshot: "Snapshot", plan: "Plan", bodies: Sequence[Obj], before: int
) -> "Eviction":
    from sully.cli.change.progress import Eviction
    from sully.client.transport import Key
    from sully.domain.planning.rules.taint_rules import body_rate
    from sully.views.kinds import CLAIMS, CONSUMER_PODS

    names = [str(body["metadata"]["name"]) for body in bodies]
    evicted = [Key(eviction.namespace, eviction.name) for eviction in plan.caused]
    pods = {key: pod for key in evicted if (pod := snapshot.usage.pod(key)) is not None}
    all_visible = snapshot.gap(CONSUMER_PODS) is None and snapshot.gap(CLAIMS) is None
    return Eviction(
        names,
        rate=body_rate(bodies[0]),
        ends=plan.last_eviction_time,
        pods={key: pod.metadata.uid for key, pod in pods.items()},
        group=own_label(snapshot, bodies),
        before=before,
        expires=session.options.lasts is not None and all_visible,
    )


# -- clusters -------------------------------------------------------------------------------------

_REMOVING_EFFECTS = ("NoSelect", "PreferNoSelect")
"""The effects because of which placements lose clusters that they have."""


async def _clusters(session: Session, args: TaintArgs) -> int:
    from sully.cli.change.taint.clusters import (
        cluster_changes,
        refuse_retained_taints,
        retained_taints,
        with_history,
    )
    from sully.cli.change.taint.writes import user_name

    ask = any(taint.effect in _REMOVING_EFFECTS for taint in args.sets)
    snapshot = await take_fleet(session, planned=ask or is_dry_run(session))
    changes = cluster_changes(session, snapshot, args)
    if args.sets:
        await warn_of_expiry(session, "taints", "the taint stays until you remove it")
    user = await user_name(session)
    if ask or is_dry_run(session):
        if session.options.dry_run != "client":
            # All get the same taints, so validating one is enough.
            await _write_cluster(session, changes[0], dry=True)
        done = await confirmed(session, make_plan(session, snapshot, changes), ask=ask)
        if is_dry_run(session):
            recorded = [with_history(session, change, args, user) for change in changes]
            print_objects(session, await _dry_run_clusters(session, recorded))
        if done is not None:
            return done
    if len(changes) > 1:
        # Otherwise placements would move from the first to clusters that are tainted next.
        changes = [await _taint_softly(session, snapshot, change, args) for change in changes]
    written = []
    action = "tainted" if args.sets else "untainted"
    for change in changes:
        recorded_change = with_history(session, change, args, user)
        written.append(await _write_cluster(session, recorded_change))
        if not retained_taints(written[-1], args):
            report(session, f"{cluster_name(change.key.name)} {action}")
    print_objects(session, written)
    refuse_retained_taints(written, args)
    return 0


async def _taint_softly(
    session: Session, snapshot: "Snapshot", change: "Put", args: TaintArgs
) -> "Put":
    """Prevent new decisions for a cluster before it loses existing ones; return the next write."""
    from msgspec.structs import replace

    from sully.cli.change.taint.clusters import with_softer_taints
    from sully.planning.dryrun.changes import Put

    before = snapshot.get(change.kind, change.key)
    if before is None:
        return change
    softer = with_softer_taints(before, change.obj, args)
    if softer is change.obj:
        return change
    written = await _write_cluster(session, Put(change.kind, softer))
    version = written["metadata"]["resourceVersion"]
    metadata = replace(change.obj.metadata, resource_version=version)
    return Put(change.kind, replace(change.obj, metadata=metadata))


async def _dry_run_clusters(session: Session, changes: "Sequence[Put]") -> list[Obj]:
    if not for_programs(session):
        return []
    if session.options.dry_run != "client":
        return [await _write_cluster(session, change, dry=True) for change in changes]
    clusters = []
    for change in changes:
        cluster = await session.transport.get(change.kind.read_as(dict), change.key)
        annotations = {**cluster["metadata"].get("annotations", {}), **_history(change)}
        metadata = {**cluster["metadata"], "annotations": annotations}
        spec = {**cluster["spec"], "taints": _taints(change)}
        clusters.append({**cluster, "metadata": metadata, "spec": spec})
    return clusters


async def _write_cluster(session: Session, change: "Put", *, dry: bool = False) -> Obj:
    """Write the taints of a cluster, and return it as the server has it then."""
    from sully.client.options import WriteOptions

    # The version that was read: taints of other writers must not be lost.
    version = change.obj.metadata.resource_version
    metadata = {"resourceVersion": version, "annotations": _history(change)}
    patch = {"metadata": metadata, "spec": {"taints": _taints(change)}}
    plain, options = change.kind.read_as(dict), WriteOptions(dry_run=dry)
    return await session.transport.patch(plain, change.key, patch, options=options)


def _history(change: "Put") -> dict[str, str]:
    """Return the annotation with the history of a cluster's taints, if it has one."""
    from sully.api.cluster.taints.history import TAINT_HISTORY

    annotations = change.obj.metadata.annotations
    return {TAINT_HISTORY: annotations[TAINT_HISTORY]} if TAINT_HISTORY in annotations else {}


def _taints(change: "Put") -> Any:
    """Return the taints of a cluster as JSON has them: with times in whole seconds."""
    from sully.machinery.serialization.codec import from_json, to_json

    return from_json(to_json(change.obj.spec.taints))
