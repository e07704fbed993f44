"""The pods of workloads of one kind: which they are, and how they are created and deleted.

Shared by the controllers of ReplicaSets, StatefulSets, DaemonSets and Jobs, which differ in what
they decide. Adoption is controller_refs.py, writes are pod_control.py, and what the cache does not
show yet is expectations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Kind
from sully.controllers.framework.controller import ControllerEnv, Watch
from sully.controllers.workloads.controller_refs import ControllerRefManager, Owners
from sully.controllers.workloads.expectations import Expectations
from sully.controllers.workloads.kinds import Pods, SelectorIndex
from sully.controllers.workloads.pod_control import PodControl
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.daemonsets import DaemonSet
from sully.domain.workloads.jobs.objects import Job
from sully.domain.workloads.statefulsets import StatefulSet
from sully.domain.workloads.workloads import ReplicaSet, selector_of
from sully.machinery.errors import ApiError
from sully.views.snapshot.kinds import PODS

OwnerT = TypeVar("OwnerT", bound=ReplicaSet | StatefulSet | DaemonSet | Job)


class OwnedPods(Generic[OwnerT]):
    """Claims, creates and deletes the pods of owners of a kind."""

    def __init__(
        self,
        *,
        owners: Informer[OwnerT],
        pods: Pods,
        env: ControllerEnv,
    ) -> None:
        self.kind: Kind[OwnerT] = owners.kind
        self.owners = owners
        self.pods = pods
        self.transport, self.recorder, self.clock = env
        self.expectations = Expectations(env.clock)
        self.expectations.follow(pods.informer)
        self._control = PodControl(env.transport, env.recorder, self.expectations, self.kind)
        self._refs = ControllerRefManager(env.transport, self.kind, PODS)
        owners.on_change(self._forget)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for owners, and for pods that one controls or may adopt."""
        selectors = SelectorIndex(self.owners, f"{self.kind.plural}/namespace")
        yield Watch(self.owners, own_key)
        yield Watch(self.pods.informer, Owners(self.kind, selectors).of)

    async def claim(
        self, owner: OwnerT, adopts: Callable[[Pod], bool] = lambda pod: pod.is_active
    ) -> list[Pod]:
        """Adopt and release pods; return those that the owner controls now."""
        controlled = self.pods.controlled_by(owner.metadata.uid)
        orphans = filter(adopts, self.pods.uncontrolled(owner.metadata.namespace))
        return await self._refs.claim(owner, selector_of(owner), [*controlled, *orphans])

    async def apply(
        self,
        owner: OwnerT,
        *,
        delete: Sequence[Pod] = (),
        create: Sequence[Mapping[str, Any]] = (),
    ) -> ApiError | None:
        """Delete pods, then create pods; return the first error."""
        error = await self._control.delete(owner, delete) if delete else None
        if error is None and create:
            error = await self._control.create(owner, create)
        return error

    async def write_status(self, owner: OwnerT, status: Any) -> OwnerT:
        """Write the status if it changed; return the owner as it is then."""
        if status == owner.status:
            return owner
        return await self.transport.update(self.kind, replace(owner, status=status), "status")

    def _forget(self, old: OwnerT | None, new: OwnerT | None) -> None:
        if new is None and old is not None:
            self.expectations.forget(old.metadata.uid)
