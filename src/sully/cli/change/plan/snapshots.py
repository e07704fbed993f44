"""Reads what a plan needs from a server or a file."""

from collections.abc import Sequence
from typing import Any

from sully.cli.client.session import Session
from sully.cli.client.snapshots import missing_kind, take_snapshot
from sully.cli.command import CommandError
from sully.client.transport import Kind
from sully.planning.dryrun.changes import DEVICE_KINDS, PLACEMENT_KINDS
from sully.planning.simulation.cluster_copy import PLAN_KINDS
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS
from sully.views.kinds import PATCHES, RULES, SLICES
from sully.views.snapshot.kinds import FLEET, NODES
from sully.views.snapshot.snapshot import Snapshot


async def take_for(session: Session, kinds: Sequence[Kind[Any]]) -> Snapshot:
    """Return a snapshot of what a plan about these kinds needs."""
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


async def take_with_nodes(session: Session, *kinds: Kind[Any]) -> Snapshot:
    """Return a snapshot of what a plan needs and of more kinds, and of all fields of nodes.

    Policies and maintenances select by fields of nodes that the scheduler does not read.
    """
    others = (kind for kind in PLAN_KINDS if kind.plural != NODES.plural)
    kinds = (*others, NODES.read_as(dict[str, Any]), *kinds)
    snapshot = await take_snapshot(session, kinds, needed=(SLICES,), in_files=(SLICES,), gates=True)
    # Without them, nothing that they decide has an effect.
    _refuse_unserved(session, snapshot, (RULES,))
    return snapshot


def _refuse_unserved(session: Session, snapshot: Snapshot, kinds: Sequence[Kind[Any]]) -> None:
    """Refuse objects that the server could not store; a file may lack a kind without objects."""
    for kind in kinds if session.connection is not None else ():
        gap = snapshot.gap(kind)
        if gap is not None and gap.reason == "not served":
            install = "\n  'sully install' installs them" if kind == PATCHES else ""
            raise CommandError(f"{missing_kind(gap)}{install}")
