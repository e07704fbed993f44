"""Simulated nodes and clusters. They run in the same process, but are not controllers."""

from __future__ import annotations

from sully.controller_context import ControllerContext
from sully.controllers import simulatedclusters as clusters
from sully.controllers.simulatedclusters import USER_NAME as SIMULATED_CLUSTERS
from sully.controllers.simulatednodes import wiring as nodes
from sully.controllers.simulatednodes.nodes import USER_AGENT as SIMULATED_NODES


def add_simulated_nodes(context: ControllerContext) -> None:
    if context.config.simulated_nodes is not None:
        nodes.add_simulated_nodes(
            context.manager,
            env=context.env(SIMULATED_NODES, "kubelet"),
            settings=context.config.simulated_nodes,
        )


def add_simulated_clusters(context: ControllerContext) -> None:
    members, agent = context.config.simulated_clusters, context.config.agent
    if members is not None and agent is not None:
        clusters.add_simulated_clusters(
            context.manager,
            env=context.env(SIMULATED_CLUSTERS, "registration-agent"),
            transport_for=agent,
            members=members,
        )
