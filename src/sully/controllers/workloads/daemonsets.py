"""Reconciles the pods of a DaemonSet with the nodes: one on each that matches.

Reads DaemonSets, nodes, pods and ControllerRevisions; creates and deletes pods, writes revisions,
the status of DaemonSets and events. Which node runs a pod is domain/workloads/daemonsets.py. The
scheduler binds the pods: their affinity names the node.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec

from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.framework.controller import DONE, REQUEUE, Result, Watch
from sully.controllers.workloads.history_control import HistoryControl
from sully.controllers.workloads.kinds import DAEMON_SETS
from sully.controllers.workloads.owned_pods import OwnedPods
from sully.controllers.workloads.pod_control import pod_of
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.workloads.daemonsets import (
    HOST_NETWORK,
    TOLERATIONS,
    DaemonSet,
    sync_daemons,
)
from sully.domain.workloads.history import HASH_LABEL, ControllerRevision
from sully.domain.workloads.replicas import next_available

Obj = dict[str, Any]

_GENERATION = "deprecated.daemonset.template.generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class DaemonSetController:
    """Creates and deletes the pods of DaemonSets."""

    name = "daemon-set-controller"

    def __init__(
        self,
        *,
        owned: OwnedPods[DaemonSet],
        nodes: Informer[Node],
        revisions: Informer[ControllerRevision],
    ) -> None:
        self._owned = owned
        self._nodes = nodes
        self._history = HistoryControl(owned, revisions, HASH_LABEL)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for DaemonSets, for their pods, and all of them for nodes."""
        yield from self._owned.watches()
        yield Watch(self._nodes, self._every_set)

    def _every_set(self, _node: Node) -> Iterable[Key]:
        return [key_of(daemon_set) for daemon_set in self._owned.owners.values()]

    async def reconcile(self, key: Key) -> Result:
        """Take the next step of a DaemonSet."""
        owner = self._owned.owners.get(key)
        if owner is None:
            return DONE
        pods = await self._owned.claim(owner)
        if not self._owned.expectations.satisfied(owner.metadata.uid):
            return Result(requeue_after=timedelta(seconds=1))
        history = await self._history.sync(owner)
        if history is None:
            return REQUEUE
        hash_ = history.update.metadata.labels.get(HASH_LABEL, "")
        model = msgspec.convert(pod_for_node(owner, "", hash_), Pod)
        now = self._owned.clock.now()
        step = sync_daemons(owner, pods, self._nodes.values(), model, hash_, now)
        bodies = [pod_for_node(owner, name, hash_) for name in step.create]
        error = await self._owned.apply(owner, delete=step.delete, create=bodies)
        await self._owned.write_status(owner, step.status)
        if error is not None:
            raise error
        hashes = {pod.metadata.labels.get(HASH_LABEL, "") for pod in pods}
        used = {f"{owner.name}-{used_hash}" for used_hash in hashes}
        await self._history.truncate(history, used, owner.spec.revision_history_limit)
        at = next_available(pods, owner.spec.min_ready_seconds, now)
        return Result(requeue_after=at - now) if at is not None else DONE


def pod_for_node(owner: DaemonSet, node: str, hash_: str) -> Obj:
    """Return the pod of a node; without a node, a pod of the template to compare nodes with."""
    body = pod_of(DAEMON_SETS, owner, owner.spec.template)
    metadata, spec = body["metadata"], body["spec"]
    generation = owner.metadata.annotations.get(_GENERATION, "1")
    metadata["labels"] = metadata.get("labels", {}) | {
        HASH_LABEL: hash_,
        "pod-template-generation": generation,
    }
    keys = (*TOLERATIONS, *((HOST_NETWORK,) if spec.get("hostNetwork") else ()))
    existing = spec.get("tolerations") or []
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    spec["tolerations"] = [
        *existing,
        *(toleration for toleration in added if toleration not in existing),
    ]
    if node:
        spec["affinity"] = _only(node, spec.get("affinity") or {})
    return body


def _only(node: str, affinity: Obj) -> Obj:
    """Return an affinity that allows one node: its name replaces what decided about it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: terms}}
