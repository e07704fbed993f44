"""The binding cycle: writes claims, then the binding; or, by reporting.py, why there is none.

Many pods are written at the same time, each by one worker. A write that fails transiently is
retried with the same decision; after one that is rejected, what was assumed is released and the
pod gets another attempt after a back-off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from sully.api.resource.types import ResourceClaim
from sully.client.events import reference
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import TRANSIENT, Key
from sully.controllers.framework.controller import DONE, REQUEUE, ControllerEnv, Result, Watch
from sully.controllers.framework.sources import same_key
from sully.controllers.scheduling.allocation_check import (
    CONFLICT_INTERVAL,
    AllocationCheck,
    has_allocations,
)
from sully.controllers.scheduling.bind_queue import BindQueue, RemoveDiagnosis, Report, Requeue
from sully.controllers.scheduling.claim_writer import ClaimChangedError, ClaimWriter
from sully.controllers.scheduling.metrics import ERROR, SchedulerMetrics
from sully.controllers.scheduling.reporting import Reporter
from sully.domain.scheduling.causes import BindingRejected, Cause, PreBindFailed
from sully.domain.scheduling.decisions import FitError
from sully.domain.scheduling.diagnosis import DEVICE_DIAGNOSIS
from sully.domain.scheduling.extended import mapping_status
from sully.domain.scheduling.objects import Pod
from sully.machinery.errors import (
    ApiError,
    Conflict,
    NotFound,
)
from sully.scheduler.binding_conditions import (
    Readiness,
    deadline,
    has_binding_conditions,
    readiness,
)
from sully.scheduler.core import SchedulingCore
from sully.scheduler.effects import Bind, ClaimReservation, ExtendedResourceClaim
from sully.views.snapshot.kinds import PODS

WORKERS = 32


class Binder:
    """Executes what the scheduling core decided."""

    name = "scheduler-binding"

    def __init__(  # noqa: PLR0913 - what it reads, where it reports, and how it writes
        self,
        *,
        core: SchedulingCore,
        bind_queue: BindQueue,
        claims: Informer[ResourceClaim],
        writer: ClaimWriter,
        reporter: Reporter,
        env: ControllerEnv,
        metrics: SchedulerMetrics,
        check: AllocationCheck | None = None,
    ) -> None:
        self._core = core
        self._bind_queue = bind_queue
        self._claims = claims
        self._writer = writer
        self._reporter = reporter
        self._transport, self._recorder, self._clock = env
        self._metrics = metrics
        self._check = check
        """Where another scheduler may allocate the same devices."""

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for decisions, and for reports about devices that a pod waits for."""
        yield Watch(self._bind_queue, same_key)
        yield Watch(self._claims, self._waiting_for)

    def _waiting_for(self, claim: ResourceClaim) -> Iterable[Key]:
        if not has_binding_conditions(claim):
            return
        for consumer in claim.status.reserved_for:
            key = Key(claim.metadata.namespace, consumer.name)
            if isinstance(self._bind_queue.get(key), Bind):
                yield key

    async def reconcile(self, key: Key) -> Result:
        """Write what was decided about a pod."""
        effect = self._bind_queue.get(key)
        match effect:
            case None:
                return DONE
            case Bind():
                return await self._pre_bind(effect)
            case Report():
                result = await self._report(effect)
                # The next attempt writes what has to wait.
                if result is not DONE and effect.back_off is None:
                    return result
                if effect.back_off is not None and self._bind_queue.get(key) is effect:
                    self._core.back_off(key)
                    self._bind_queue.replace(key, Requeue())
                    return Result(requeue_after=effect.back_off)
            case Requeue():
                self._core.requeue(key)
            case RemoveDiagnosis(pod):
                await self._reporter.remove_diagnosis(key, pod)
        self._bind_queue.done(key, effect)
        return DONE

    async def _report(self, report: Report) -> Result:
        marked = report.effect
        if marked.result.deallocate is not None:
            await self._writer.deallocate(marked.result.deallocate)
        if marked.leftover is not None:
            await self._writer.discard(marked.leftover)
        result = marked.result
        return await self._reporter.report(marked.key, marked.pod, result.error, result.diagnosis)

    # -- binding ----------------------------------------------------------------------------------

    async def _pre_bind(self, bind: Bind) -> Result:
        if self._check is not None and self._check.is_gone(bind):
            return await self._unreserve(bind, PreBindFailed("pod got deleted"), reserved=())
        claims: list[ResourceClaim] = []
        try:
            if self._check is not None and not self._check.is_written(bind):
                if (delay := self._check.delay(bind)) is not None:
                    return Result(requeue_after=delay)
                await self._check.before(bind)
            for reservation in bind.claims:
                claims.append(await self._reserve(bind.pod, reservation))  # noqa: PERF401 - a failure needs those before it
            if bind.extended is not None:
                claims.append(await self._create(bind.pod, bind.extended))
        except TRANSIENT:
            raise
        except (ClaimChangedError, ApiError) as error:
            return await self._unreserve(bind, PreBindFailed(str(error)), reserved=claims)
        if self._check is not None and (result := await self._verify(self._check, bind, claims)):
            return result
        match readiness(claims):
            case Readiness.FAILED:
                return await self._not_ready(bind, "device binding failed")
            case Readiness.PENDING:
                return await self._wait(bind, claims)
            case Readiness.READY:
                return await self._bind(bind)

    async def _verify(
        self, check: AllocationCheck, bind: Bind, claims: Sequence[ResourceClaim]
    ) -> Result | None:
        """Return how to go on if a pod cannot be bound now; None if its devices are its own."""
        if not has_allocations(bind):
            return None
        check.written(bind)
        known = check.was_in_conflict(bind)
        if not known and (delay := check.delay(bind)) is not None:
            return Result(requeue_after=delay)
        error = await check.after(bind, claims)
        if error:
            if not known:
                self._metrics.conflicted()
                await self._reporter.report(bind.key, bind.pod, FitError(PreBindFailed(error)))
            return Result(requeue_after=CONFLICT_INTERVAL)
        if not known:
            return None
        # The other scheduler considers the device as free: it has to see a new allocation.
        for reservation, claim in zip(bind.claims, claims, strict=False):
            if reservation.allocation is not None:
                await self._writer.release(bind.pod, claim)
        failure = PreBindFailed("device got released by another claim")
        return await self._unreserve(bind, failure, reserved=claims)

    async def _reserve(self, pod: Pod, reservation: ClaimReservation) -> ResourceClaim:
        cached = self._claims.get(key_of(reservation.claim))
        claim = await self._writer.reserve(pod, reservation, cached or reservation.claim)
        if reservation.allocation is not None:
            self._core.devices.written(claim)
        return claim

    async def _create(self, pod: Pod, extended: ExtendedResourceClaim) -> ResourceClaim:
        """Create the claim for extended resources, and write it into the status of the pod."""
        try:
            created = await self._writer.create(extended)
        except ApiError:
            self._metrics.created_claim(success=False)
            raise
        self._metrics.created_claim(success=True)
        self._core.devices.created(extended.claim.metadata.uid, created)
        reservation = ClaimReservation(created, extended.allocation, extended.devices)
        claim = await self._reserve(pod, reservation)
        status = mapping_status(extended.mappings, created.metadata.name)
        patch = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"extendedResourceClaimStatus": status},
        }
        await self._transport.patch(PODS, key_of(pod), patch, subresource="status")
        return claim

    async def _bind(self, bind: Bind) -> Result:
        key, pod, node = bind.key, bind.pod, bind.node
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.metadata.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._transport.create(PODS.read_as(dict), binding, "binding")
        except TRANSIENT:
            raise
        except ApiError as error:
            if not (isinstance(error, Conflict) and await self._is_bound(bind)):
                # If the pod is gone or on another node, the claim controller handles its claims.
                pending = not isinstance(error, Conflict | NotFound)
                reserved = [reservation.claim for reservation in bind.claims] if pending else []
                return await self._unreserve(bind, BindingRejected(str(error)), reserved=reserved)
        message = f"Successfully assigned {key} to {node}"
        self._recorder.event(reference(PODS, pod), "Normal", "Scheduled", message)
        self._metrics.bound(pod, bind.attempt, self._clock.monotonic())
        if key in self._bind_queue.diagnosed or pod.condition(DEVICE_DIAGNOSIS) is not None:
            await self._reporter.remove_diagnosis(key, pod)
        self._forget(key)
        self._core.finish_binding(key)
        self._bind_queue.done(key, bind)
        return DONE

    def _forget(self, key: Key) -> None:
        if self._check is not None:
            self._check.forget(key)

    async def _is_bound(self, bind: Bind) -> bool:
        """Report whether a pod is on its node: our call succeeded, but its response was lost."""
        try:
            pod = await self._transport.get(PODS, bind.key)
        except NotFound:
            return False
        return pod.metadata.uid == bind.pod.metadata.uid and pod.spec.node_name == bind.node

    async def _wait(self, bind: Bind, claims: Sequence[ResourceClaim]) -> Result:
        now = self._clock.now()
        until = deadline(claims, now)
        if now >= until:
            return await self._not_ready(bind, "device binding timeout")
        return Result(requeue_after=until - now)

    async def _not_ready(self, bind: Bind, error: str) -> Result:
        for reservation in bind.claims:
            claim = self._claims.get(key_of(reservation.claim))
            unshared = claim is not None and len(claim.status.reserved_for) <= 1
            if claim is not None and unshared and has_binding_conditions(claim):
                await self._writer.deallocate(claim)
        reserved = [reservation.claim for reservation in bind.claims]
        return await self._unreserve(bind, PreBindFailed(error), reserved=reserved)

    async def _unreserve(
        self, bind: Bind, cause: Cause, *, reserved: Iterable[ResourceClaim]
    ) -> Result:
        """Revert a binding; claims that were not written may be reserved by others now."""
        for claim in reserved:
            await self._writer.unreserve(bind.pod, claim)
        if bind.extended is not None:
            await self._discard(bind.pod, bind.extended)
        self._forget(bind.key)
        # In one step: a retry must not write again what was released.
        self._bind_queue.replace(bind.key, Requeue())
        self._core.forget(bind)
        seconds = self._clock.monotonic() - bind.attempt.began
        self._metrics.attempted(bind.pod, ERROR, seconds)
        await self._reporter.report(bind.key, bind.pod, FitError(cause))
        return REQUEUE

    async def _discard(self, pod: Pod, extended: ExtendedResourceClaim) -> None:
        """Delete the claim for extended resources, as far as it was written."""
        uid = await self._writer.discard(extended.claim)
        self._core.devices.forget(extended.claim.metadata.uid)
        if not uid:
            return
        self._core.devices.forget(uid)
        patch = {
            "metadata": {"uid": pod.metadata.uid},
            "status": {"extendedResourceClaimStatus": None},
        }
        with suppress(NotFound, Conflict):
            await self._transport.patch(PODS, key_of(pod), patch, subresource="status")
