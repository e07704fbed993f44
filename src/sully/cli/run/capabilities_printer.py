"""Capabilities of a server as tables, and for programs."""

from typing import TYPE_CHECKING, Any

from sully.cli.output.tables import Column, Table
from sully.controller_setup import CONTROLLERS
from sully.domain.capabilities.duties import duties
from sully.domain.capabilities.inaction import inactions
from sully.domain.capabilities.installation import selected
from sully.domain.capabilities.table import GATES, gate_rows, rows

if TYPE_CHECKING:
    from sully.domain.capabilities.control_plane import ControlPlane
    from sully.domain.capabilities.duties import Evictor
    from sully.domain.capabilities.offers import Offer


def show(
    offered: "Offer",
    evictor: "Evictor",
    only: frozenset[str] | None = None,
    plane: "ControlPlane | None" = None,
) -> None:
    columns = (Column("SUBJECT"), Column("SERVER", shrinks=2), Column("SULLY", shrinks=1))
    Table(columns).show(rows(offered, evictor, only, plane))


def show_gates(plane: "ControlPlane") -> None:
    print()
    columns = (Column("FEATURE GATE"), Column("SERVER", shrinks=2), Column("EFFECT", shrinks=1))
    Table(columns).show(gate_rows(plane))


def document(
    offered: "Offer", evictor: "Evictor", only: frozenset[str] | None = None
) -> dict[str, Any]:
    """Return the first table for programs."""
    return {
        "version": offered.version,
        "sully": offered.own,
        "devices": offered.devices,
        "deviceTaints": offered.stores_taints,
        "rules": offered.rules,
        "ownKinds": sorted(offered.own_kinds),
        "controllers": [
            {"name": duty.name, "runs": duty.runs, "reason": duty.why}
            for duty in selected(duties(offered, CONTROLLERS, evictor), only)
        ],
    }


def control_plane_document(plane: "ControlPlane") -> dict[str, Any]:
    return {
        "scheduler": plane.scheduler,
        "evictor": plane.evictor,
        "featureGates": {gate: plane.gates.get(gate) for gate in GATES},
        "noEffect": [inaction.text for inaction in inactions(plane)],
    }
