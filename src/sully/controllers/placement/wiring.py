"""Puts the placement controller together and adds it to a manager."""

from __future__ import annotations

from sully.client.events import EventRecorder
from sully.client.transport import Transport
from sully.controllers.manager import Manager
from sully.controllers.placement.binder import Binder
from sully.controllers.placement.controller import OWNER, PlacementController, owners
from sully.controllers.placement.metrics import PlacementMetrics
from sully.controllers.placement.passes import Passes
from sully.controllers.placement.telling import Teller
from sully.domain.placement.options import PlacementOptions
from sully.machinery.cel import COST_BUDGET
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.metrics import Metrics
from sully.views.fleet import Caches, FleetView
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SCORES, SETS
from sully.views.mutation_cache import MutationCache

WORKERS = 1
"""One after the other, so that each sees what those before it took: Balance depends on it."""


def make_placement(  # noqa: PLR0913 - what it reads and writes, and what a test may replace
    manager: Manager,
    *,
    transport: Transport,
    recorder: EventRecorder,
    clock: Clock,
    metrics: Metrics,
    options: PlacementOptions,
    evaluator: Evaluator | None = None,
    units: int = COST_BUDGET,
) -> PlacementController:
    """Return a controller on a view of its own over the manager's caches.

    What evaluates for it runs with the manager already.
    """
    placements = MutationCache(manager.informer(PLACEMENTS))
    decisions = MutationCache(manager.informer(DECISIONS), indexes={OWNER: owners})
    caches = Caches(
        clusters=manager.informer(CLUSTERS),
        sets=manager.informer(SETS),
        bindings=manager.informer(BINDINGS),
        placements=placements,
        decisions=decisions,
        scores=manager.informer(SCORES),
    )
    controller = PlacementController(
        view=FleetView(caches, clock=clock, options=options),
        placements=placements,
        decisions=decisions,
        binder=Binder(transport, Teller(recorder), placements, decisions),
        metrics=PlacementMetrics(metrics),
        clock=clock,
        evaluator=evaluator or Evaluator(clock),
        passes=Passes(units),
    )
    manager.add(controller.evaluating, workers=1)
    return controller
