"""What `sully taint` does with clusters: plan, confirm, write the taints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sully.cli.change.confirm import Question
from sully.cli.change.output import (
    confirmed,
    for_programs,
    is_dry_run,
    print_objects,
    report,
)
from sully.cli.change.plan.simulation import make_plan
from sully.cli.change.taint.args import TaintArgs
from sully.cli.change.taint.clusters import (
    cluster_changes,
    refuse_retained_taints,
    retained_taints,
    with_history,
    with_softer_taints,
)
from sully.cli.change.taint.rules import take_fleet
from sully.cli.change.taint.storable import warn_of_expiry
from sully.cli.change.taint.writes import user_name
from sully.cli.client.session import Session
from sully.cli.output.formatting import cluster_name
from sully.client.options import WriteOptions
from sully.machinery.formats.plurals import number_of
from sully.machinery.serialization.codec import from_json, to_json
from sully.planning.dryrun.changes import Put

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_REMOVING_EFFECTS = ("NoSelect", "PreferNoSelect")
"""The effects because of which placements lose clusters that they have."""


async def taint_clusters(session: Session, args: TaintArgs) -> int:
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
        plan = make_plan(session, snapshot, changes)
        done = await confirmed(session, plan, Question(_action(args, plan, changes)), ask=ask)
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


def _action(args: TaintArgs, plan: "Plan", changes: "Sequence[Put]") -> str:
    """Return what will happen, for the question."""
    clusters = f"cluster {changes[0].key.name}" if len(changes) == 1 else f"{len(changes)} clusters"
    action = f"Taint {clusters} with {', '.join(map(str, args.sets))}"
    moved = {change.placement for change in plan.decision_changes}
    placements = len(moved.union(change.placement for change in plan.placements))
    return f"{action} and change {number_of(placements, 'placement')}" if placements else action


async def _taint_softly(
    session: Session, snapshot: "Snapshot", change: "Put", args: TaintArgs
) -> "Put":
    """Prevent new decisions for a cluster before it loses existing ones; return the next write."""
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
    return from_json(to_json(change.obj.spec.taints))
