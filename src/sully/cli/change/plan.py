"""`sully plan`: what would happen if an object were applied, or a taint set."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.taintflags import add_taint_flags, refuse_taint_flags
from sully.cli.client.calling import CommandError, Session, call
from sully.cli.client.durations import seconds
from sully.cli.client.flags import TABLES, add_client_flags, add_snapshot_flag
from sully.cli.client.patience import patience
from sully.cli.client.taking import take
from sully.cli.client.words import number
from sully.cli.run.evictionflags import rate
from sully.cli.run.placementflags import add_placement_flags

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.domain.planning.report import Plan
    from sully.planning.changes import Change
    from sully.planning.settings import Settings
    from sully.views.snapshot.snapshot import Snapshot

NO_PLACE = 3
"""The exit code when something would find no place."""
NAMESPACE = "take only what is in this namespace, where you may not list that of all"
_EPILOG = """\
examples:
  sully plan -f rule.yaml                      what a DeviceTaintRule would do
  sully plan -f rule.yaml -o wide              each pod: when it leaves, where it lands
  sully plan -f rule.yaml --delete             what its end would do
  sully plan -f manifests/ -n apps             all objects of a folder; -n is for those without one
  kubectl kustomize overlays/eu | sully plan -f -
  sully plan device 'gpu.example.com/node-7/*' example.com/hot:NoExecute --rate 5
  sully plan cluster eu-2 maintenance:NoSelect
  sully plan -f rule.yaml --snapshot saved.yaml -o json | jq .withoutPlace

A plan runs the code of the controllers on a copy: devices that would be different, pods that
would leave and when, where their replacements would land or why nowhere, and what is left of each
class. Nothing is written. There are plans for DeviceTaintRule, ResourceSlicePatch, ResourceSlice
and DeviceClass, and for ManagedCluster, Placement, ManagedClusterSetBinding, ManagedClusterSet and
ClusterTaintPolicy.

exit codes: 0 all would find a place, 1 failed or not known, 2 wrong usage, 3 something would find
no place
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser.usage = (
        "%(prog)s -f FILE… [flags]\n"
        "       %(prog)s device|cluster PATTERN… KEY[=VALUE]:EFFECT[-]… [flags]"
    )
    parser.description = "Show what would happen, before it happens."
    parser.epilog = _EPILOG
    parser.add_argument(
        "words",
        nargs="*",
        metavar="device|cluster … TAINT",
        help="a taint to try, as 'sully taint' takes it, instead of files",
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="objects to try, YAML or JSON; a folder stands for the files in it; - reads the"
        " standard input; may be repeated",
    )
    parser.add_argument(
        "-R",
        "--recursive",
        action="store_true",
        help="with a folder, also take the files in the folders in it",
    )
    parser.add_argument(
        "--delete", action="store_true", help="try what happens when the objects are deleted"
    )
    add_taint_flags(parser)
    _add_assumptions(parser)
    add_client_flags(
        parser,
        namespace=f"where objects in files belong that do not say it (default: the kubeconfig's);"
        f" {NAMESPACE}",
    )
    add_snapshot_flag(parser)


def _add_assumptions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stop-seconds",
        type=seconds,
        default=None,
        metavar="TIME",
        help="assume that pods stop within this time (default: their whole grace period)",
    )
    parser.add_argument(
        "--default-evictions-per-second",
        type=rate,
        default=None,
        metavar="N",
        help="what the controllers run with; no object says it",
    )
    parser.add_argument(
        "--max-evictions-per-minute",
        type=rate,
        default=None,
        metavar="N",
        help="what the controllers run with; no object says it",
    )
    add_placement_flags(parser)


def run(options: argparse.Namespace) -> int:
    """Show a plan."""
    return call(options, "plan", _run)


async def _run(session: Session) -> int:
    from sully.cli.change.idle import warn_of_idle
    from sully.cli.change.manifests import kind_of, read_manifests
    from sully.cli.change.proposals import proposed

    options = session.options
    if bool(options.filename) == bool(options.words):
        raise CommandError("say what to try: -f FILE, or a taint as 'sully taint' takes it", code=2)
    if options.words:
        if options.delete:
            raise CommandError("--delete is for -f; a dash behind a taint removes it", code=2)
        from sully.cli.change.tainting import proposals

        snapshot, changes = await proposals(session, options.words)
    else:
        refuse_taint_flags(options)
        manifests = read_manifests(session)
        snapshot = await take_for(session, [kind_of(each) for each in manifests])
        changes = await proposed(session, snapshot, manifests, delete=options.delete)
        warn_of_idle(session, snapshot, changes)
    plan = make_plan(session, snapshot, changes)
    show(plan, options.output)
    unknown = _unknown(snapshot, plan)
    if unknown:
        session.warn(unknown)
        return 1
    return NO_PLACE if plan.homeless else 0


def _unknown(snapshot: "Snapshot", plan: "Plan") -> str:
    """Say what nobody can know, and for want of what; a review must not pass then."""
    from sully.domain.planning.report import Fate
    from sully.views.kinds import CLAIMS, CLASSES, PODS
    from sully.views.snapshot.kinds import NODES

    fates = {each.landing.fate for each in plan.caused}
    leaving, going = "who would have to leave", "where pods would go"
    wanted = (
        (bool(plan.devices), CLAIMS, leaving),
        (bool(plan.claims), PODS, leaving),
        # What nobody makes again has no place, wherever there might be one.
        (Fate.PENDING in fates and Fate.LOST not in fates, NODES, going),
        (Fate.PENDING in fates and Fate.LOST not in fates, CLASSES, going),
    )
    for matters, kind, what in wanted:
        gap = snapshot.gap(kind) if matters else None
        if gap is not None:
            others = " of other namespaces" if gap.but else ""
            return f"{what} is not known, for want of {kind.plural}{others}"
    return ""


async def take_for(session: Session, kinds: "Sequence[Kind[Any]]") -> "Snapshot":
    """Return a snapshot of what a plan about these kinds needs."""
    from sully.planning.changes import ABOUT_DEVICES, ABOUT_FLEET
    from sully.planning.world import NEEDED
    from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
    from sully.views.kinds import SLICES
    from sully.views.snapshot.kinds import FLEET

    # What is not seen can be tried anew, but not be deleted.
    more = tuple(dict.fromkeys(kinds)) if session.options.delete else ()
    if set(kinds) <= set(ABOUT_DEVICES):
        return await take(session, NEEDED, needed=(SLICES, *more), in_files=(SLICES,))
    if not set(kinds) <= set(ABOUT_FLEET):
        raise CommandError("make a plan for devices and one for clusters, not both at once", code=2)
    return await take(session, FLEET, needed=(CLUSTERS, PLACEMENTS, *more), in_files=(CLUSTERS,))


def make_plan(session: Session, snapshot: "Snapshot", changes: "Sequence[Change]") -> "Plan":
    """Rehearse changes and return what would happen."""
    from sully.planning.changes import begins, is_about_fleet

    if any(is_about_fleet(each) for each in changes):
        from sully.controllers.placement.settings import PlacementSettings
        from sully.planning.fleet import plan_fleet

        said = session.options
        flags = PlacementSettings(
            toleration_seconds=getattr(said, "default_cluster_toleration_seconds", None),
            leaves_per_minute=getattr(said, "cluster_leave_budget_per_minute", None),
        )
        return plan_fleet(snapshot, changes, flags)

    from sully.planning.rehearsal import Eviction, Rehearsal
    from sully.planning.telling import gaps, tell

    start = begins(changes, snapshot.taken)
    evicted: Sequence[Eviction] = ()
    with patience(lambda: f"plan: {number(len(evicted), 'pod')} evicted so far"):
        rehearsal = Rehearsal(snapshot, settings_of(session), start=start)
        evicted = rehearsal.evicted
        rehearsal.run(changes)
        return tell(rehearsal, gaps(snapshot))


def settings_of(session: Session) -> "Settings":
    """Return what the flags say about the control plane."""
    from sully.planning.settings import Settings

    options = session.options
    return Settings(
        stop_seconds=getattr(options, "stop_seconds", None),
        default_per_second=getattr(options, "default_evictions_per_second", None) or None,
        max_per_minute=getattr(options, "max_evictions_per_minute", None) or None,
    )


def show(plan: "Plan", output: str) -> None:
    """Print a plan in the form that was asked for."""
    if output in TABLES:
        from sully.cli.change.plantext import show_plan

        show_plan(plan, wide=output == "wide")
        return
    from sully.cli.client.documents import show_document
    from sully.domain.planning.report import document

    show_document(document(plan), output)
