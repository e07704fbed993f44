"""Controllers of managed clusters and Placements."""

from __future__ import annotations

from sully.controller_context import ControllerContext
from sully.controllers.clusters.wiring import HubSettings, add_hub
from sully.controllers.placement.controller import PlacementController
from sully.controllers.placement.settings import placement_options
from sully.controllers.placement.wiring import WORKERS as PLACEMENT_WORKERS
from sully.controllers.placement.wiring import make_placement
from sully.views.fleet_kinds import CLUSTERS, PLACEMENTS, POLICIES


def add_clusters(context: ControllerContext) -> None:
    if context.config.serves(CLUSTERS):
        config = context.config
        add_hub(
            context.manager,
            env_of=context.env,
            access=config.transport,
            clock=context.clock,
            settings=HubSettings(
                policies=config.serves(POLICIES),
                serving_since=config.serving_since,
                compat=config.compat,
                sets_taint_times=True if config.own_server else None,
            ),
        )


def add_placement(context: ControllerContext) -> None:
    config = context.config
    if not config.serves(PLACEMENTS):
        return
    controller = make_placement(
        context.manager,
        env=context.env(PlacementController.name),
        metrics=context.metrics,
        options=placement_options(config.placement, config.compat),
        evaluator=context.evaluator,
    )
    context.manager.add(controller, workers=PLACEMENT_WORKERS)
