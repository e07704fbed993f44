"""Brings the pods of a Deployment to its template and number, through ReplicaSets.

Reads Deployments, ReplicaSets and pods; creates, scales, adopts and deletes ReplicaSets, writes the
status of Deployments and events. Which ReplicaSet is the present one is
domain/workloads/revisions.py, the next step domain/workloads/rollout.py, and what is said about it
domain/workloads/progress.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sully.client.events import reference
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Transport
from sully.controllers.controller_refs import ControllerRefManager, Owners
from sully.controllers.deployments.sets import CollisionError, SetKeeper, set_of
from sully.controllers.framework import AGAIN, DONE, Result, Watch
from sully.controllers.workloads import (
    DEPLOYMENTS,
    REPLICA_SETS,
    Pods,
    Recorder,
    Selecting,
    by_controller,
    is_terminating,
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
from sully.runtime.clock import Clock

_BY_CONTROLLER = "deployment-controller/controller"
_BY_NAMESPACE = "deployment-controller/namespace"
_SKEW = timedelta(seconds=1)
"""Times on the wire are whole seconds."""


@dataclass(slots=True)
class Rollout:
    """A Deployment with its ReplicaSets, as far as one look has brought them."""

    deployment: Deployment
    new: ReplicaSet | None
    old: list[ReplicaSet]

    @property
    def sets(self) -> list[ReplicaSet]:
        """Return all ReplicaSets."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    def take(self, changed: dict[str, ReplicaSet]) -> None:
        """Go on with ReplicaSets as they were written."""
        self.old = [changed.get(each.name, each) for each in self.old]
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
        transport: Transport,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._deployments = deployments
        self._sets = sets
        self._pods = pods
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._keeper = SetKeeper(transport, recorder)
        self._claims = ControllerRefManager(transport, DEPLOYMENTS, REPLICA_SETS)
        self._owners = Owners(DEPLOYMENTS, Selecting(deployments, _BY_NAMESPACE))
        sets.add_index(_BY_CONTROLLER, by_controller)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for Deployments, for ReplicaSets as part of theirs, and for pods that hold it up."""
        yield Watch(self._deployments, own_key)
        yield Watch(self._sets, self._owners.of)
        yield Watch(self._pods.informer, self._waiting_for)

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a rollout, if one is due, and say where it stands."""
        deployment = self._deployments.get(key)
        if deployment is None:
            return DONE
        if selector_of(deployment).everything:
            return await self._refuse(deployment)
        rollout = await self._look(deployment)
        if deployment.is_terminating:
            return await self._report(rollout, self._counted(rollout))
        await self._write(rollout, progress.pause_status(deployment, self._clock.now()))
        try:
            return await self._step(rollout)
        except CollisionError:
            # The next look makes up another name.
            taken = (deployment.status.collision_count or 0) + 1
            status = replace(rollout.deployment.status, collision_count=taken)
            await self._write(rollout, status)
            return AGAIN

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

    async def _look(self, deployment: Deployment) -> Rollout:
        """Find the ReplicaSets of a Deployment; take and let go as its selector says."""
        namespace = deployment.metadata.namespace
        mine = self._sets.by_index(_BY_CONTROLLER, deployment.metadata.uid)
        free = self._sets.by_index(_BY_CONTROLLER, orphans(namespace))
        found = await self._claims.claim(deployment, selector_of(deployment), [*mine, *free])
        new = present(deployment, found)
        return Rollout(deployment, new, [each for each in found if each is not new])

    # -- steps ------------------------------------------------------------------------------------

    async def _resize(self, rollout: Rollout) -> Result:
        """Follow a change of the wanted number, without going on with a rollout."""
        await self._refresh(rollout)
        await self._scale(rollout, resize(rollout.deployment, rollout.new, rollout.old))
        if rollout.deployment.spec.paused:
            await self._keeper.forget(rollout.deployment, rollout.old)
        return await self._report(rollout, self._counted(rollout))

    async def _roll(self, rollout: Rollout) -> None:
        new = await self._refresh_or_create(rollout)
        sizes = grow(rollout.deployment, new, rollout.old)
        if not sizes:
            sizes = shrink(rollout.deployment, new, rollout.old)
        await self._scale_or_finish(rollout, sizes)

    async def _recreate(self, rollout: Rollout) -> None:
        await self._refresh(rollout)
        leaving = {each.name: 0 for each in active(rollout.old)}
        if leaving:
            await self._scale(rollout, leaving)
        elif not self._still_run(rollout.old):
            new = await self._refresh_or_create(rollout)
            wanted = rollout.deployment.spec.replicas
            sizes = {} if new.spec.replicas == wanted else {new.name: wanted}
            await self._scale_or_finish(rollout, sizes)

    def _still_run(self, old: Iterable[ReplicaSet]) -> bool:
        """Report whether a pod of an old template may still do something."""
        return any(
            each.status.replicas > 0
            or any(not pod.finished for pod in self._pods.controlled_by(each.metadata.uid))
            for each in old
        )

    async def _scale_or_finish(self, rollout: Rollout, sizes: Sizes) -> None:
        if sizes:
            await self._scale(rollout, sizes)
        elif progress.complete(rollout.deployment, rollout.deployment.status):
            await self._keeper.forget(rollout.deployment, rollout.old)

    async def _scale(self, rollout: Rollout, sizes: Sizes) -> None:
        changed = await self._keeper.scale(rollout.deployment, rollout.sets, sizes)
        rollout.take(changed)

    # -- the present ReplicaSet -------------------------------------------------------------------

    async def _refresh_or_create(self, rollout: Rollout) -> ReplicaSet:
        if rollout.new is not None:
            return await self._refresh(rollout) or rollout.new
        number = next_revision(rollout.old)
        try:
            new, fresh = await self._keeper.create(rollout.deployment, rollout.old, number)
        except ApiError as error:
            if not is_terminating(error):
                await self._tell_failure(rollout, number, error)
            raise
        rollout.new = new
        if fresh:
            text = f'Created new replica set "{new.name}"'
            await self._note(rollout, str(number), "NewReplicaSetCreated", text)
        return new

    async def _refresh(self, rollout: Rollout) -> ReplicaSet | None:
        """Keep the number and the annotations of the present ReplicaSet right."""
        new, deployment = rollout.new, rollout.deployment
        if new is None:
            return None
        current = new.metadata.annotations
        annotations = annotations_for(deployment, current, next_revision(rollout.old))
        same_time = new.spec.min_ready_seconds == deployment.spec.min_ready_seconds
        if annotations != current or not same_time:
            rollout.new = await self._keeper.refresh(deployment, new, annotations)
            return rollout.new
        text = f'Found new replica set "{new.name}"'
        told = deployment.status.condition(progress.PROGRESSING) is not None
        reason = "" if told else "FoundNewReplicaSet"
        await self._note(rollout, current.get(REVISION, ""), reason, text)
        return new

    async def _note(self, rollout: Rollout, number: str, reason: str, text: str) -> None:
        """Write the number of the revision on the Deployment, and what happened to it."""
        deployment, status = rollout.deployment, rollout.deployment.status
        if reason and deployment.deadline is not None:
            told = progress.condition(progress.PROGRESSING, "True", reason, text, self._clock.now())
            status = progress.with_condition(status, told)
        annotations = deployment.metadata.annotations | {REVISION: number}
        metadata = replace(deployment.metadata, annotations=annotations)
        if annotations != deployment.metadata.annotations or status != deployment.status:
            rollout.deployment = replace(deployment, metadata=metadata)
            await self._write(rollout, status, force=True)

    async def _tell_failure(self, rollout: Rollout, number: int, error: ApiError) -> None:
        deployment = rollout.deployment
        name = set_of(deployment, rollout.old, number)["metadata"]["name"]
        text = f'Failed to create new replica set "{name}": {error.message}'
        reason = "ReplicaSetCreateError"
        self._recorder.event(reference(DEPLOYMENTS, deployment), "Warning", reason, text)
        if deployment.deadline is not None:
            now = self._clock.now()
            told = progress.condition(progress.PROGRESSING, "False", reason, text, now)
            await self._write(rollout, progress.with_condition(deployment.status, told))

    # -- status -----------------------------------------------------------------------------------

    def _counted(self, rollout: Rollout) -> DeploymentStatus:
        now = self._clock.now()
        return progress.counted(rollout.deployment, rollout.new, rollout.old, now)

    async def _report(self, rollout: Rollout, status: DeploymentStatus) -> Result:
        if await self._write(rollout, status):
            # The news of what we wrote wakes us again.
            return DONE
        due = progress.overdue_at(rollout.deployment, status)
        if due is None or rollout.deployment.spec.paused:
            return DONE
        wait = max(due - self._clock.now(), timedelta())
        return Result(requeue_after=wait + _SKEW)

    async def _write(
        self, rollout: Rollout, status: DeploymentStatus, *, force: bool = False
    ) -> bool:
        """Write a status if it says something new; say whether it did."""
        if status == rollout.deployment.status and not force:
            return False
        changed = replace(rollout.deployment, status=status)
        rollout.deployment = await self._transport.update(DEPLOYMENTS, changed, "status")
        return True

    async def _refuse(self, deployment: Deployment) -> Result:
        text = "This deployment is selecting all pods. A non-empty selector is required."
        self._recorder.event(reference(DEPLOYMENTS, deployment), "Warning", "SelectingAll", text)
        seen = replace(deployment.status, observed_generation=deployment.metadata.generation)
        await self._write(Rollout(deployment, None, []), seen)
        return DONE

    # -- news -------------------------------------------------------------------------------------

    def _waiting_for(self, pod: Pod) -> Iterable[Key]:
        """Yield the Deployment that creates nothing before its old pods are gone."""
        controller = pod.metadata.controller()
        if controller is None or controller.kind != REPLICA_SETS.kind:
            return
        owner = self._sets.get(Key(pod.metadata.namespace, controller.name))
        for key in self._owners.of(owner) if owner is not None else ():
            deployment = self._deployments.get(key)
            if deployment is not None and not is_rolling(deployment):
                yield key
