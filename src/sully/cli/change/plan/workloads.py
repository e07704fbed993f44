"""`sully plan -f` of workloads: would their pods fit?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sully.api.resource.types import GROUP
from sully.cli.change.plan.manifests import Manifest, kind_of
from sully.cli.change.plan.proposals import proposed
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError
from sully.domain.planning.workload_pods import POD, pod_count, template_pod
from sully.machinery.errors import ApiError
from sully.planning.dryrun.changes import Put
from sully.planning.dryrun.dry_run import DryRun
from sully.planning.simulation.cluster_copy import PLAN_KINDS
from sully.planning.workloads import NewWorkload, fit_workloads
from sully.views.kinds import SLICES
from sully.views.snapshot.kinds import NODES, PODS
from sully.views.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from sully.planning.workloads import WorkloadFit


async def fit(session: Session, manifests: Sequence[Manifest]) -> "list[WorkloadFit]":
    """Return where the pods of workloads would be scheduled, or why they would stay Pending."""

    if session.options.delete:
        raise CommandError("--delete cannot be used with workloads", code=2)
    needed = (SLICES, NODES)
    kinds = (*PLAN_KINDS, *map(kind_of, manifests))
    snapshot = await take_snapshot(session, kinds, needed=needed, in_files=needed, gates=True)
    changes = await proposed(session, snapshot, manifests)
    puts = [change for change in changes if isinstance(change, Put)]
    snapshot = _with_claims(snapshot, puts)
    workloads = [await _workload(session, snapshot, put) for put in puts if not _is_claim(put)]
    if not workloads:
        raise CommandError("no workload found; claims alone are not scheduled", code=2)
    return fit_workloads(snapshot, workloads)


def _is_claim(put: "Put") -> bool:

    return bool(put.kind.group == GROUP)


def _with_claims(snapshot: "Snapshot", puts: "Sequence[Put]") -> "Snapshot":
    """Return a snapshot with the claims and templates that do not exist yet."""
    for put in puts:
        if _is_claim(put) and snapshot.get(put.kind, put.key) is None:
            snapshot = snapshot.with_objects(put.kind, put.obj)
    return snapshot


async def _workload(session: Session, snapshot: "Snapshot", put: "Put") -> "NewWorkload":
    """Return a workload with one of its pods as the server would store it."""

    kind = put.kind.kind
    if kind == POD:
        return NewWorkload(kind=kind, key=put.key, pod=put.obj)
    # Pods of a template get defaults only when they are created; here no pod exists yet.
    dry_run = DryRun(Snapshot((), taken=snapshot.taken), session.connection)
    try:
        pod = await dry_run.stored(PODS, template_pod(kind, put.obj))
    except ApiError as error:
        text = f"{kind} {put.key}: its pods would be invalid: {error.message}"
        raise CommandError(text) from error
    return NewWorkload(kind=kind, key=put.key, pod=pod, count=pod_count(kind, put.obj["spec"]))
