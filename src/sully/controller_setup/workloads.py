"""Controllers of pods and what owns them."""

from __future__ import annotations

from sully.client.transport import Kind
from sully.controller_context import ControllerContext
from sully.controllers.workloads.daemonsets import DaemonSetController
from sully.controllers.workloads.deployments import DeploymentController
from sully.controllers.workloads.disruption import (
    DisruptionController,
    StalePodDisruptionController,
    Workloads,
)
from sully.controllers.workloads.jobs import JobController
from sully.controllers.workloads.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    REVISIONS,
    STATEFUL_SETS,
)
from sully.controllers.workloads.owned_pods import OwnedPods, OwnerT
from sully.controllers.workloads.replicasets import ReplicaSetController
from sully.controllers.workloads.statefulsets import StatefulSetController
from sully.views.snapshot.kinds import BUDGETS, NODES


def add_replicasets(context: ControllerContext) -> None:
    owned = _owned_pods(context, REPLICA_SETS, ReplicaSetController.name)
    context.manager.add(ReplicaSetController(owned), workers=5)


def add_deployments(context: ControllerContext) -> None:
    controller = DeploymentController(
        deployments=context.manager.informer(DEPLOYMENTS),
        sets=context.manager.informer(REPLICA_SETS),
        pods=context.pods,
        env=context.env(DeploymentController.name),
    )
    context.manager.add(controller, workers=5)


def add_jobs(context: ControllerContext) -> None:
    owned = _owned_pods(context, JOBS, JobController.name)
    context.manager.add(JobController(owned), workers=5)


def add_statefulsets(context: ControllerContext) -> None:
    owned = _owned_pods(context, STATEFUL_SETS, StatefulSetController.name)
    revisions = context.manager.informer(REVISIONS)
    context.manager.add(StatefulSetController(owned=owned, revisions=revisions), workers=5)


def add_daemonsets(context: ControllerContext) -> None:
    controller = DaemonSetController(
        owned=_owned_pods(context, DAEMON_SETS, DaemonSetController.name),
        nodes=context.manager.informer(NODES),
        revisions=context.manager.informer(REVISIONS),
    )
    context.manager.add(controller, workers=2)


def _owned_pods(context: ControllerContext, kind: Kind[OwnerT], name: str) -> OwnedPods[OwnerT]:
    """Return what a controller needs to manage the pods of a kind of workload."""
    return OwnedPods(
        owners=context.manager.informer(kind), pods=context.pods, env=context.env(name)
    )


def add_disruption(context: ControllerContext) -> None:
    env = context.env(DisruptionController.name)
    sets, deployments = (
        context.manager.informer(REPLICA_SETS),
        context.manager.informer(DEPLOYMENTS),
    )
    context.manager.add(
        DisruptionController(
            budgets=context.manager.informer(BUDGETS),
            pods=context.pods,
            workloads=Workloads(sets, deployments),
            env=env,
        )
    )
    context.manager.add(
        StalePodDisruptionController(pods=context.pods, transport=env.transport, clock=env.clock)
    )
