"""`sully plan`: preview the effects of an object or a taint."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sully.cli.change.taint.args import EFFECTS, complete_taint, refuse_taint_flags, taint_options
from sully.cli.client.options import (
    TABLES,
    client_options,
    duration_option,
    snapshot_option,
    whole_number,
)
from sully.cli.client.session import Session, call
from sully.cli.client.snapshots import missing_kind, take_snapshot
from sully.cli.command import CommandError, Options, command
from sully.cli.output.spinner import spinner
from sully.cli.run.controller_options import placement_options
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.cli.change.plan.manifests import Manifest
    from sully.client.transport import Kind
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Change
    from sully.planning.simulation.cluster_copy import SimulationOptions
    from sully.views.snapshot.snapshot import Snapshot

EXIT_UNSCHEDULABLE = 3
"""The exit code when something would be unschedulable."""
EXIT_EVICTION_LOOP = 4
"""The exit code when pods would be evicted again and again."""
NAMESPACE = "Read only this namespace, if you may not list objects in all of them."
_HELP = f"""\
Preview what would happen if objects were applied or deleted, or a taint were set.

A plan runs the code of the controllers on a copy of the cluster and shows which devices would
change, which pods would be evicted and when, where their replacements would be scheduled, and how
many devices of each class would be left. Pods that would be evicted again and again come first,
with what would help. Nothing is written.

There are plans for DeviceTaintRule, ResourceSlicePatch, ResourceSlice and DeviceClass, and for
ManagedCluster, Placement, ManagedClusterSetBinding, ManagedClusterSet and ClusterTaintPolicy.

For DeviceTaintPolicy the plan shows which devices have a fault now, which step would begin when,
and what the taints would do if the faults last.

For Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet and Job, with the ResourceClaims and
ResourceClaimTemplates in the same files, the plan shows whether the pods would fit now: where they
would be scheduled, with which devices, or why they would stay Pending.

{EFFECTS}
\b
Exit codes:
  0  all pods would be rescheduled
  1  the command failed, or the result is not known
  2  usage error
  3  a pod would be unschedulable or not recreated, may be evicted again, or
     this is not known; or a placement would lack clusters
  4  pods would be recreated on tainted devices and evicted again and again
"""
_EXAMPLES = """\
# Preview a DeviceTaintRule
sully plan -f rule.yaml

# Show each pod: when it would be evicted, where it would be rescheduled
sully plan -f rule.yaml -o wide

# Preview whether the pods of a Deployment would fit
sully plan -f deployment.yaml

# Preview what a device policy would do to today's devices
sully plan -f policy.yaml

# Preview deleting it
sully plan -f rule.yaml --delete

# Preview all objects of a directory
sully plan -f manifests/ -n apps
kubectl kustomize overlays/eu | sully plan -f -

# Preview a taint on devices, or on a cluster
sully plan device 'gpu.example.com/node-7/*' example.com/hot:NoExecute
sully plan cluster eu-2 maintenance:NoSelect

# Preview a rule on a saved snapshot, for a script
sully plan -f rule.yaml --snapshot saved.yaml -o json | jq .notRescheduled
"""


@command(
    "plan",
    usage="-f FILE [flags]\ndevice|node|class|cluster NAME... KEY[=VALUE]:EFFECT[-]... [flags]",
    help=_HELP,
    examples=_EXAMPLES,
)
@click.argument("arguments", nargs=-1, shell_complete=complete_taint)
@click.option(
    "--filename",
    "-f",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    help="File or directory with objects, YAML or JSON. Use - for standard input. Can be repeated.",
)
@click.option("--recursive", "-R", is_flag=True, help="Also read subdirectories of -f.")
@click.option("--delete", is_flag=True, help="Preview deleting the objects of -f.")
@taint_options
@duration_option(
    "--stop-seconds",
    show_default="their grace period",
    help="Assume that pods terminate within this time.",
)
@click.option(
    "--default-evictions-per-second",
    type=whole_number(),
    default="10",
    show_default=True,
    metavar="N",
    help="As passed to the controllers; Kubernetes has no such rate.",
)
@click.option(
    "--max-evictions-per-minute",
    type=whole_number(),
    metavar="N",
    help="As passed to the controllers.",
)
@placement_options
@client_options(
    namespace="Namespace of objects in files that have none (default: the namespace of the"
    f" kubeconfig). {NAMESPACE}",
    everywhere=False,
)
@snapshot_option
def plan(options: Options) -> int:
    return call(options, "plan", _run)


async def _run(session: Session) -> int:
    from sully.cli.change.plan.maintenances import plan_maintenances
    from sully.cli.change.plan.manifests import are_only, kind_of, read_manifests, workload_kinds
    from sully.cli.change.plan.policies import plan_policies
    from sully.cli.change.plan.proposals import proposed, warn_of_unmatched
    from sully.views.kinds import DEVICE_POLICIES, MAINTENANCES

    options = session.options
    if bool(options.filename) == bool(options.arguments):
        raise CommandError("specify either -f FILE, or a taint as for 'sully taint'", code=2)
    if options.arguments:
        if options.delete:
            raise CommandError(
                "--delete requires -f; append a dash to a taint to remove it", code=2
            )
        from sully.cli.change.taint.rules import taint_changes

        snapshot, changes = await taint_changes(session, options.arguments)
    else:
        refuse_taint_flags(options)
        manifests = read_manifests(session)
        if are_only(manifests, (MAINTENANCES.kind,), "maintenances"):
            return await plan_maintenances(session, manifests)
        if are_only(manifests, (DEVICE_POLICIES.kind,), "policies"):
            return await plan_policies(session, manifests)
        if are_only(manifests, workload_kinds(), "workloads"):
            return await _fit(session, manifests)
        snapshot = await take_for(session, [kind_of(manifest) for manifest in manifests])
        changes = await proposed(session, snapshot, manifests, delete=options.delete)
        warn_of_unmatched(session, snapshot, changes)
    result = make_plan(session, snapshot, changes)
    show(result, options.output)
    unknown = _unknown(snapshot, result)
    if unknown:
        session.warn(unknown)
    return exit_code(result) if result.eviction_loops or not unknown else 1


async def _fit(session: Session, manifests: "Sequence[Manifest]") -> int:
    """Show where the pods of workloads would be scheduled."""
    from sully.cli.change.plan.workload_printer import show_fit
    from sully.cli.change.plan.workloads import fit

    workloads = await fit(session, manifests)
    show_fit(workloads, session.options.output)
    return 0 if all(workload.fits for workload in workloads) else EXIT_UNSCHEDULABLE


def exit_code(plan: "Plan") -> int:
    """Return the exit code for what a plan is about."""
    if plan.eviction_loops:
        return EXIT_EVICTION_LOOP
    return EXIT_UNSCHEDULABLE if plan.has_unscheduled else 0


def _unknown(snapshot: "Snapshot", plan: "Plan") -> str:
    """Return what is not known because a kind is missing; a review must not pass then."""
    from sully.domain.planning.report import ReplacementOutcome
    from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS
    from sully.views.snapshot.kinds import NODES

    outcomes = {eviction.replacement.outcome for eviction in plan.caused}
    # A pod without a controller is not replaced, whatever nodes and classes there are.
    replaced = ReplacementOutcome.NOT_REPLACED not in outcomes
    pending = ReplacementOutcome.PENDING in outcomes and replaced
    evicted, rescheduled = "which pods would be evicted", "where pods would be rescheduled"
    needed = (
        (bool(plan.devices), CLAIMS, evicted),
        (bool(plan.claims), CONSUMER_PODS, evicted),
        (pending, NODES, rescheduled),
        (pending, CLASSES, rescheduled),
    )
    for matters, kind, what in needed:
        gap = snapshot.gap(kind) if matters else None
        if gap is not None:
            others = " of other namespaces" if gap.only_namespace else ""
            return f"warning: {what} is not known without {kind.plural}{others}"
    return ""


async def take_for(session: Session, kinds: "Sequence[Kind[Any]]") -> "Snapshot":
    """Return a snapshot of what a plan about these kinds needs."""
    from sully.planning.dryrun.changes import DEVICE_KINDS, PLACEMENT_KINDS
    from sully.planning.simulation.cluster_copy import PLAN_KINDS
    from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
    from sully.views.kinds import SLICES
    from sully.views.snapshot.kinds import FLEET

    # What cannot be listed can be created, but not be deleted.
    deleted = tuple(dict.fromkeys(kinds)) if session.options.delete else ()
    if set(kinds) <= set(DEVICE_KINDS):
        snapshot = await take_snapshot(
            session, PLAN_KINDS, needed=(SLICES, *deleted), in_files=(SLICES,), gates=True
        )
        _refuse_unserved(session, snapshot, kinds)
        return snapshot
    if not set(kinds) <= set(PLACEMENT_KINDS):
        raise CommandError(
            "devices and clusters cannot be planned together; make two plans", code=2
        )
    return await take_snapshot(
        session, FLEET, needed=(CLUSTERS, PLACEMENTS, *deleted), in_files=(CLUSTERS,)
    )


async def take_with_nodes(session: Session, *kinds: "Kind[Any]") -> "Snapshot":
    """Return a snapshot of what a plan needs and of more kinds, and of all fields of nodes.

    Policies and maintenances select by fields of nodes that the scheduler does not read.
    """
    from sully.planning.simulation.cluster_copy import PLAN_KINDS
    from sully.views.kinds import RULES, SLICES
    from sully.views.snapshot.kinds import NODES

    others = (kind for kind in PLAN_KINDS if kind.plural != NODES.plural)
    kinds = (*others, NODES.read_as(dict[str, Any]), *kinds)
    snapshot = await take_snapshot(session, kinds, needed=(SLICES,), in_files=(SLICES,), gates=True)
    # Without them, nothing that they decide has an effect.
    _refuse_unserved(session, snapshot, (RULES,))
    return snapshot


def _refuse_unserved(session: Session, snapshot: "Snapshot", kinds: "Sequence[Kind[Any]]") -> None:
    """Refuse objects that the server could not store; a file may lack a kind without objects."""
    from sully.views.kinds import PATCHES

    for kind in kinds if session.connection is not None else ():
        gap = snapshot.gap(kind)
        if gap is not None and gap.reason == "not served":
            install = "\n  'sully install' installs them" if kind == PATCHES else ""
            raise CommandError(f"{missing_kind(gap)}{install}")


def make_plan(session: Session, snapshot: "Snapshot", changes: "Sequence[Change]") -> "Plan":
    """Run changes on a copy and return what would happen."""
    from sully.planning.dryrun.changes import is_about_placements, start_time

    if any(is_about_placements(change) for change in changes):
        from sully.controllers.placement.settings import PlacementSettings
        from sully.planning.placements import plan_placements

        options = session.options
        flags = PlacementSettings(
            toleration_seconds=getattr(options, "default_cluster_toleration_seconds", None),
            removals_per_minute=getattr(options, "cluster_removal_budget_per_minute", None),
        )
        return plan_placements(snapshot, changes, flags)

    from sully.planning.plan_builder import build_plan, gap_notes, no_effect_texts
    from sully.planning.simulation.simulator import SimulatedEviction, Simulation

    start = start_time(changes, snapshot.taken)
    evicted: Sequence[SimulatedEviction] = ()
    with spinner(lambda: f"Planning: {number_of(len(evicted), 'pod')} evicted so far"):
        simulation = Simulation(snapshot, simulation_options(session), start=start)
        evicted = simulation.evicted
        simulation.run(changes)
        return build_plan(simulation, gap_notes(snapshot), no_effect_texts(snapshot, changes))


def simulation_options(session: Session) -> "SimulationOptions":
    from sully.evictor.settings import DEFAULT_PER_SECOND
    from sully.planning.simulation.cluster_copy import SimulationOptions

    options = session.options
    return SimulationOptions(
        stop_seconds=getattr(options, "stop_seconds", None),
        default_per_second=getattr(options, "default_evictions_per_second", DEFAULT_PER_SECOND)
        or None,
        max_per_minute=getattr(options, "max_evictions_per_minute", None) or None,
    )


def show(plan: "Plan", output: str) -> None:
    if output in TABLES:
        from sully.cli.change.plan.printer import show_plan

        show_plan(plan, wide=output == "wide")
        return
    from sully.cli.output.printers import print_document
    from sully.domain.planning.report import document

    print_document(document(plan), output)
