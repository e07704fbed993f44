"""The pods of DaemonSets: their affinity names the node, and they tolerate what nodes report."""

from __future__ import annotations

from typing import Any

from sully.controllers.pod_control import pod_of
from sully.controllers.workloads import DAEMON_SETS
from sully.domain.workloads.daemonsets import HOST_NETWORK, TOLERATIONS, DaemonSet
from sully.domain.workloads.history import HASH_LABEL

Obj = dict[str, Any]

_GENERATION = "deprecated.daemonset.template.generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


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
    given = spec.get("tolerations") or []
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]
    spec["tolerations"] = [*given, *(toleration for toleration in added if toleration not in given)]
    if node:
        spec["affinity"] = _only(node, spec.get("affinity") or {})
    return body


def _only(node: str, affinity: Obj) -> Obj:
    """Return an affinity that allows one node: its name replaces what decided about it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: terms}}
