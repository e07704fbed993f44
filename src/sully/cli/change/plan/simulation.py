"""Simulates changes on a copy of the cluster, with the settings of the controllers from flags."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sully.cli.client.session import Session
from sully.cli.output.spinner import spinner
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan
    from sully.planning.dryrun.changes import Change
    from sully.planning.simulation.cluster_copy import SimulationOptions
    from sully.views.snapshot.snapshot import Snapshot


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
