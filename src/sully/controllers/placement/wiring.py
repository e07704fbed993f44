"""Constructs the placement controller."""

from __future__ import annotations

from sully.controllers.framework.controller import ControllerEnv
from sully.controllers.framework.manager import Manager
from sully.controllers.placement.binder import Binder
from sully.controllers.placement.controller import (
    OWNER,
    EvaluationBudgets,
    PlacementController,
    index_owner,
)
from sully.controllers.placement.metrics import PlacementMetrics
from sully.domain.placement.options import PlacementOptions
from sully.machinery.cel import COST_BUDGET
from sully.runtime.evaluation import Evaluator
from sully.runtime.metrics import Metrics
from sully.views.fleet import FleetCaches, FleetView
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SCORES, SETS
from sully.views.mutation_cache import MutationCache

WORKERS = 1
"""One, so that each decision sees those before it: Balance depends on it."""


def make_placement(
    manager: Manager,
    *,
    env: ControllerEnv,
    metrics: Metrics,
    options: PlacementOptions,
    evaluator: Evaluator | None = None,
    units: int = COST_BUDGET,
) -> PlacementController:
    """Return a controller with its own view of the manager's caches.

    The controller that evaluates for it is already added to the manager.
    """
    placements = MutationCache(manager.informer(PLACEMENTS))
    decisions = MutationCache(manager.informer(DECISIONS), indexes={OWNER: index_owner})
    caches = FleetCaches(
        clusters=manager.informer(CLUSTERS),
        sets=manager.informer(SETS),
        bindings=manager.informer(BINDINGS),
        placements=placements,
        decisions=decisions,
        scores=manager.informer(SCORES),
    )
    controller = PlacementController(
        view=FleetView(caches, clock=env.clock, options=options),
        placements=placements,
        decisions=decisions,
        binder=Binder(env.transport, env.recorder, placements, decisions),
        metrics=PlacementMetrics(metrics),
        clock=env.clock,
        evaluator=evaluator or Evaluator(env.clock),
        budgets=EvaluationBudgets(units),
    )
    manager.add(controller.evaluation, workers=1)
    return controller
