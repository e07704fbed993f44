"""`sully plan`: preview the effects of an object or a taint."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sully.cli.change.taint.args import (
    EFFECTS_HELP,
    complete_taint,
    refuse_taint_flags,
    taint_options,
)
from sully.cli.client.options import (
    READ_NAMESPACE,
    client_options,
    duration_option,
    refuse_empty,
    snapshot_option,
    whole_number,
)
from sully.cli.client.session import Session, call
from sully.cli.command import CommandError, Options, command
from sully.cli.run.controller_options import placement_options

if TYPE_CHECKING:
    from sully.cli.change.plan.manifests import Manifest

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

{EFFECTS_HELP}
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
    callback=refuse_empty,
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
    f" kubeconfig). {READ_NAMESPACE}",
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
    from sully.cli.change.plan.results import exit_code, show, unknown_effects
    from sully.cli.change.plan.simulation import make_plan
    from sully.cli.change.plan.snapshots import take_for
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
    unknown = unknown_effects(snapshot, result)
    if unknown:
        session.warn(unknown)
    return exit_code(result) if result.eviction_loops or not unknown else 1


async def _fit(session: Session, manifests: "Sequence[Manifest]") -> int:
    """Show where the pods of workloads would be scheduled."""
    from sully.cli.change.plan.results import EXIT_UNSCHEDULABLE
    from sully.cli.change.plan.workload_printer import show_fit
    from sully.cli.change.plan.workloads import fit

    workloads = await fit(session, manifests)
    show_fit(workloads, session.options.output)
    return 0 if all(workload.fits for workload in workloads) else EXIT_UNSCHEDULABLE
