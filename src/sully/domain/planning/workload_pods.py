"""The pods that a new workload has: how many, and from which template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sully.domain.scheduling.objects import Node, Pod
from sully.domain.workloads.daemonsets import TOLERATIONS, should_run

Obj = dict[str, Any]
POD: Final = "Pod"
DAEMON_SET: Final = "DaemonSet"


def unused_name(name: str) -> str:
    """Return a name that no object has, for a dry run."""
    return f"{name}-sully-plan"


def template_pod(kind: str, body: Mapping[str, Any]) -> Obj:
    """Return a pod of a workload as a manifest, with a name that no pod has."""
    metadata = body["metadata"]
    template = body["spec"].get("template") or {}
    about = template.get("metadata") or {}
    owner = {
        "apiVersion": body.get("apiVersion") or "apps/v1",
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata.get("uid") or f"uid-of-{metadata['name']}",
        "controller": True,
    }
    spec = template.get("spec") or {}
    if kind == DAEMON_SET:
        added = [
            {"key": key, "operator": "Exists", "effect": effect} for key, effect in TOLERATIONS
        ]
        spec = {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}
    return {
        "apiVersion": "v1",
        "kind": POD,
        "metadata": {
            "name": unused_name(metadata["name"]),
            "namespace": metadata["namespace"],
            "labels": about.get("labels") or {},
            "annotations": about.get("annotations") or {},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def pod_count(kind: str, spec: Mapping[str, Any]) -> int:
    """Return how many pods a workload has at first; those of a DaemonSet depend on nodes."""
    if kind != "Job":
        replicas = spec.get("replicas")
        return 1 if replicas is None else int(replicas)
    if spec.get("suspend"):
        return 0
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    desired = 1 if parallelism is None else int(parallelism)
    return desired if completions is None else min(desired, int(completions))


def daemon_nodes(pod: Pod, all_nodes: Iterable[Node]) -> list[str]:
    """Return the nodes for which a DaemonSet creates a pod, by name."""
    return sorted(node.metadata.name for node in all_nodes if should_run(pod, node).run)
