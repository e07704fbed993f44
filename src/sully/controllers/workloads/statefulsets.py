"""Reconciles the pods of a StatefulSet with its template, one ordinal after another.

Reads StatefulSets, pods and ControllerRevisions; creates and deletes pods, creates volume claims
and revisions, writes the status of StatefulSets and events. What happens next is
domain/workloads/statefulsets.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, REQUEUE, Result, Watch
from sully.controllers.workloads.history_control import History, HistoryControl
from sully.controllers.workloads.kinds import CLAIMS, STATEFUL_SETS
from sully.controllers.workloads.owned_pods import OwnedPods
from sully.controllers.workloads.pod_control import pod_of
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.history import HASH_LABEL, ControllerRevision, template_of
from sully.domain.workloads.replicas import next_available
from sully.domain.workloads.statefulsets import (
    SetSync,
    StatefulSet,
    ordinal_of,
    sync_set,
)
from sully.machinery.errors import AlreadyExists

_REVISION_LABEL = "controller.kubernetes.io/hash"

Obj = dict[str, Any]


class StatefulSetController:
    """Creates and deletes the pods of StatefulSets."""

    name = "statefulset-controller"

    def __init__(
        self, *, owned: OwnedPods[StatefulSet], revisions: Informer[ControllerRevision]
    ) -> None:
        self._owned = owned
        self._history = HistoryControl(owned, revisions, _REVISION_LABEL)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for StatefulSets, and for pods that one controls or may adopt."""
        return self._owned.watches()

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a StatefulSet."""
        owner = self._owned.owners.get(key)
        if owner is None:
            return DONE
        pods = await self._owned.claim(owner, partial(_is_adopted, owner))
        if not self._owned.expectations.satisfied(owner.metadata.uid):
            return Result(requeue_after=timedelta(seconds=1))
        history = await self._history.sync(owner)
        if history is None:
            return REQUEUE
        step = sync_set(owner, pods, history.update.name, self._owned.clock.now())
        await self._execute(owner, step, history)
        used = {pod.metadata.labels.get(HASH_LABEL, "") for pod in pods}
        used |= {step.status.current_revision}
        await self._history.truncate(history, used, owner.spec.revision_history_limit)
        return self._next_reconcile(owner, pods)

    async def _execute(self, owner: StatefulSet, step: SetSync, history: History) -> None:
        bodies = []
        for ordinal, name in step.create:
            revision = history.named(name) or history.update
            for claim in claims_of(owner, ordinal):
                await self._create_claim(claim)
            template = template_of(revision)
            bodies.append(pod_with_ordinal(owner, ordinal, template, revision.name))
        error = await self._owned.apply(owner, delete=step.delete, create=bodies)
        await self._owned.write_status(owner, step.status)
        if error is not None:
            raise error

    async def _create_claim(self, claim: dict[str, Any]) -> None:
        try:
            await self._owned.transport.create(CLAIMS, claim)
        except AlreadyExists:
            return

    def _next_reconcile(self, owner: StatefulSet, pods: list[Pod]) -> Result:
        now = self._owned.clock.now()
        at = next_available(pods, owner.spec.min_ready_seconds, now)
        return Result(requeue_after=at - now) if at is not None else DONE


def _is_adopted(owner: StatefulSet, pod: Pod) -> bool:
    """Report whether a set adopts an orphan: only with the name of an ordinal."""
    ordinal = ordinal_of(pod.metadata.name)
    return pod.is_active and ordinal is not None and pod.metadata.name == owner.pod_name(ordinal)


def pod_with_ordinal(owner: StatefulSet, ordinal: int, template: Obj, revision: str) -> Obj:
    """Return the pod of an ordinal, with its name, host name and volume claims."""
    name = owner.pod_name(ordinal)
    body = pod_of(STATEFUL_SETS, owner, template, name)
    metadata, spec = body["metadata"], body["spec"]
    # The generated part is empty, as in Kubernetes.
    metadata["generateName"] = f"{owner.name}-"
    metadata["labels"] = metadata.get("labels", {}) | {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        HASH_LABEL: revision,
    }
    spec["hostname"] = name
    if owner.spec.service_name:
        spec["subdomain"] = owner.spec.service_name
    claims = {_template_name(claim): claim for claim in owner.spec.volume_claim_templates}
    if claims:
        volumes = [
            {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}}
            for volume in claims
        ]
        others = [v for v in spec.get("volumes") or () if v["name"] not in claims]
        spec["volumes"] = [*others, *volumes]
    return body


def claims_of(owner: StatefulSet, ordinal: int) -> Iterator[Obj]:
    """Yield the volume claims of an ordinal."""
    labels = (owner.spec.selector or {}).get("matchLabels") or {}
    for template in owner.spec.volume_claim_templates:
        metadata = template.get("metadata") or {}
        yield {
            "metadata": {
                "name": f"{_template_name(template)}-{owner.pod_name(ordinal)}",
                "namespace": owner.metadata.namespace,
                "labels": (metadata.get("labels") or {}) | labels,
                "annotations": metadata.get("annotations") or {},
            },
            "spec": template.get("spec") or {},
        }


def _template_name(template: Obj) -> str:
    return str((template.get("metadata") or {}).get("name", ""))
