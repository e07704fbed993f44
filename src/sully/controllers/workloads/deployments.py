"""Rolls out the template and the number of replicas of a Deployment, through ReplicaSets.

Reads Deployments, ReplicaSets and pods; creates, scales, adopts and deletes ReplicaSets, writes the
status of Deployments and events. Which ReplicaSet is the new one is domain/workloads/revisions.py,
the next step domain/workloads/rollout.py, and the status domain/workloads/progress.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, REQUEUE, ControllerEnv, Result, Watch
from sully.controllers.workloads.controller_refs import ControllerRefManager, Owners
from sully.controllers.workloads.deployment_sets import (
    CollisionError,
    ReplicaSetControl,
    new_replica_set,
)
from sully.controllers.workloads.kinds import (
    DEPLOYMENTS,
    REPLICA_SETS,
    Pods,
    SelectorIndex,
    by_controller,
    is_namespace_terminating,
    orphans,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads import progress
from sully.domain.workloads.revisions import REVISION, annotations_for, next_revision, present
from sully.domain.workloads.rollout import (
    Sizes,
    active,
    grow,
    is_rolling,
    resize,
    scaled_since,
    shrink,
)
from sully.domain.workloads.workloads import (
    Deployment,
    DeploymentStatus,
    ReplicaSet,
    selector_of,
)
from sully.machinery.errors import ApiError

_BY_CONTROLLER = "deployment-controller/controller"
_BY_NAMESPACE = "deployment-controller/namespace"
_SKEW = timedelta(seconds=1)
"""Times on the wire are whole seconds."""


class Rollout(msgspec.Struct):
    """A Deployment with its ReplicaSets, as one reconcile changes them."""

    deployment: Deployment
    new: ReplicaSet | None
    old: list[ReplicaSet]

    @property
    def sets(self) -> list[ReplicaSet]:
        """Return all ReplicaSets."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    def update(self, changed: dict[str, ReplicaSet]) -> None:
        """Replace ReplicaSets by what was written."""
        self.old = [changed.get(rs.name, rs) for rs in self.old]
        if self.new is not None:
            self.new = changed.get(self.new.name, self.new)


class DeploymentController:
    """Rolls out templates."""

    name = "deployment-controller"

    def __init__(
        self,
        *,
        deployments: Informer[Deployment],
        sets: Informer[ReplicaSet],
        pods: Pods,
        env: ControllerEnv,
    ) -> None:
        self._deployments = deployments
        self._sets = sets
        self._pods = pods
        self._transport, self._recorder, self._clock = env
        self._set_control = ReplicaSetControl(env.transport, env.recorder)
        self._refs = ControllerRefManager(env.transport, DEPLOYMENTS, REPLICA_SETS)
        self._owners = Owners(DEPLOYMENTS, SelectorIndex(deployments, _BY_NAMESPACE))
        sets.add_index(_BY_CONTROLLER, by_controller)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for Deployments, for their ReplicaSets, and for pods that a recreation waits for."""
        yield Watch(self._deployments, own_key)
        yield Watch(self._sets, self._owners.of)
        yield Watch(self._pods.informer, self._waiting_for)

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a rollout, if there is one, and write the status."""
        deployment = self._deployments.get(key)
        if deployment is None:
            return DONE
        if selector_of(deployment).everything:
            return await self._reject(deployment)
        rollout = await self._claim_sets(deployment)
        if deployment.is_terminating:
            return await self._report(rollout, self._counted(rollout))
        await self._write(rollout, progress.pause_status(deployment, self._clock.now()))
        try:
            return await self._step(rollout)
        except CollisionError:
            # The next reconcile uses another name.
            collisions = (deployment.status.collision_count or 0) + 1
            status = replace(rollout.deployment.status, collision_count=collisions)
            await self._write(rollout, status)
            return REQUEUE

    async def _step(self, rollout: Rollout) -> Result:
        deployment = rollout.deployment
        if deployment.spec.paused or scaled_since(deployment, rollout.sets):
            return await self._resize(rollout)
        if is_rolling(deployment):
            await self._roll(rollout)
        else:
            await self._recreate(rollout)
        now = self._clock.now()
        status = progress.rollout_status(rollout.deployment, rollout.new, rollout.old, now)
        return await self._report(rollout, status)

    async def _claim_sets(self, deployment: Deployment) -> Rollout:
        """Find the ReplicaSets of a Deployment; adopt and release by its selector."""
        namespace = deployment.metadata.namespace
        candidates = [
            *self._sets.by_index(_BY_CONTROLLER, deployment.metadata.uid),
            *self._sets.by_index(_BY_CONTROLLER, orphans(namespace)),
        ]
        sets = await self._refs.claim(deployment, selector_of(deployment), candidates)
        new = present(deployment, sets)
        return Rollout(deployment, new, [rs for rs in sets if rs is not new])

    # -- steps ------------------------------------------------------------------------------------

    async def _resize(self, rollout: Rollout) -> Result:
        """Scale to a changed number of replicas, without continuing a rollout."""
        await self._refresh(rollout)
        await self._scale(rollout, resize(rollout.deployment, rollout.new, rollout.old))
        if rollout.deployment.spec.paused:
            await self._set_control.clean_up(rollout.deployment, rollout.old)
        return await self._report(rollout, self._counted(rollout))

    async def _roll(self, rollout: Rollout) -> None:
        new = await self._refresh_or_create(rollout)
        sizes = grow(rollout.deployment, new, rollout.old)
        if not sizes:
            sizes = shrink(rollout.deployment, new, rollout.old)
        await self._scale_or_finish(rollout, sizes)

    async def _recreate(self, rollout: Rollout) -> None:
        await self._refresh(rollout)
        to_zero = {rs.name: 0 for rs in active(rollout.old)}
        if to_zero:
            await self._scale(rollout, to_zero)
        elif not self._old_pods_running(rollout.old):
            new = await self._refresh_or_create(rollout)
            replicas = rollout.deployment.spec.replicas
            sizes = {} if new.spec.replicas == replicas else {new.name: replicas}
            await self._scale_or_finish(rollout, sizes)

    def _old_pods_running(self, old: Iterable[ReplicaSet]) -> bool:
        """Report whether a pod of an old template may still run."""
        return any(
            rs.status.replicas > 0
            or any(not pod.is_terminal for pod in self._pods.controlled_by(rs.metadata.uid))
            for rs in old
        )

    async def _scale_or_finish(self, rollout: Rollout, sizes: Sizes) -> None:
        if sizes:
            await self._scale(rollout, sizes)
        elif progress.complete(rollout.deployment, rollout.deployment.status):
            await self._set_control.clean_up(rollout.deployment, rollout.old)

    async def _scale(self, rollout: Rollout, sizes: Sizes) -> None:
        changed = await self._set_control.scale(rollout.deployment, rollout.sets, sizes)
        rollout.update(changed)

    # -- the new ReplicaSet -----------------------------------------------------------------------

    async def _refresh_or_create(self, rollout: Rollout) -> ReplicaSet:
        if rollout.new is not None:
            return await self._refresh(rollout) or rollout.new
        number = next_revision(rollout.old)
        try:
            new, created = await self._set_control.create(rollout.deployment, rollout.old, number)
        except ApiError as error:
            if not is_namespace_terminating(error):
                await self._report_failure(rollout, number, error)
            raise
        rollout.new = new
        if created:
            text = f'Created new replica set "{new.name}"'
            await self._record_revision(rollout, str(number), "NewReplicaSetCreated", text)
        return new

    async def _refresh(self, rollout: Rollout) -> ReplicaSet | None:
        """Update the annotations and `minReadySeconds` of the new ReplicaSet."""
        new, deployment = rollout.new, rollout.deployment
        if new is None:
            return None
        current = new.metadata.annotations
        annotations = annotations_for(deployment, current, next_revision(rollout.old))
        min_ready = deployment.spec.min_ready_seconds
        if annotations != current or new.spec.min_ready_seconds != min_ready:
            rollout.new = await self._set_control.refresh(deployment, new, annotations)
            return rollout.new
        text = f'Found new replica set "{new.name}"'
        reported = deployment.status.condition(progress.PROGRESSING) is not None
        reason = "" if reported else "FoundNewReplicaSet"
        await self._record_revision(rollout, current.get(REVISION, ""), reason, text)
        return new

    async def _record_revision(self, rollout: Rollout, number: str, reason: str, text: str) -> None:
        """Write the number of the revision and the reason of its progress to the Deployment."""
        deployment, status = rollout.deployment, rollout.deployment.status
        if reason and deployment.deadline is not None:
            now = self._clock.now()
            condition = progress.condition(progress.PROGRESSING, "True", reason, text, now)
            status = progress.with_condition(status, condition)
        annotations = deployment.metadata.annotations | {REVISION: number}
        metadata = replace(deployment.metadata, annotations=annotations)
        if annotations != deployment.metadata.annotations or status != deployment.status:
            rollout.deployment = replace(deployment, metadata=metadata)
            await self._write(rollout, status, force=True)

    async def _report_failure(self, rollout: Rollout, number: int, error: ApiError) -> None:
        deployment = rollout.deployment
        name = new_replica_set(deployment, rollout.old, number)["metadata"]["name"]
        text = f'Failed to create new replica set "{name}": {error.message}'
        reason = "ReplicaSetCreateError"
        self._recorder.event(reference(DEPLOYMENTS, deployment), "Warning", reason, text)
        if deployment.deadline is not None:
            now = self._clock.now()
            condition = progress.condition(progress.PROGRESSING, "False", reason, text, now)
            await self._write(rollout, progress.with_condition(deployment.status, condition))

    # -- status -----------------------------------------------------------------------------------

    def _counted(self, rollout: Rollout) -> DeploymentStatus:
        now = self._clock.now()
        return progress.counted(rollout.deployment, rollout.new, rollout.old, now)

    async def _report(self, rollout: Rollout, status: DeploymentStatus) -> Result:
        if await self._write(rollout, status):
            # The event of this write enqueues the Deployment.
            return DONE
        deadline = progress.overdue_at(rollout.deployment, status)
        if deadline is None or rollout.deployment.spec.paused:
            return DONE
        wait = max(deadline - self._clock.now(), timedelta())
        return Result(requeue_after=wait + _SKEW)

    async def _write(
        self, rollout: Rollout, status: DeploymentStatus, *, force: bool = False
    ) -> bool:
        """Write a status if it changed; return whether it did."""
        if status == rollout.deployment.status and not force:
            return False
        changed = replace(rollout.deployment, status=status)
        rollout.deployment = await self._transport.update(DEPLOYMENTS, changed, "status")
        return True

    async def _reject(self, deployment: Deployment) -> Result:
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self._recorder.event(reference(DEPLOYMENTS, deployment), "Warning", "SelectingAll", text)
        status = replace(deployment.status, observed_generation=deployment.metadata.generation)
        await self._write(Rollout(deployment, None, []), status)
        return DONE

    # -- event handlers ---------------------------------------------------------------------------

    def _waiting_for(self, pod: Pod) -> Iterable[Key]:
        """Yield the Deployment if it creates pods only after its old ones are deleted."""
        controller = pod.metadata.controller()
        if controller is None or controller.kind != REPLICA_SETS.kind:
            return
        owner = self._sets.get(Key(pod.metadata.namespace, controller.name))
        for key in self._owners.of(owner) if owner is not None else ():
            deployment = self._deployments.get(key)
            if deployment is not None and not is_rolling(deployment):
                yield key
