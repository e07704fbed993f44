"""The pods of Jobs."""

from __future__ import annotations

from typing import Any

from sully.controllers.pod_control import pod_of, prefix
from sully.controllers.workloads import JOBS
from sully.domain.workloads.job_failures import INDEX, TRACKING
from sully.domain.workloads.job_pods import NewPod
from sully.domain.workloads.jobs import Job

_VARIABLE = "JOB_COMPLETION_INDEX"


def new_pod(job: Job, new: NewPod) -> dict[str, Any]:
    """Return a pod to create, with the finalizer that keeps it until it is counted."""
    body = pod_of(JOBS, job, job.spec.template)
    metadata = body["metadata"]
    metadata["finalizers"] = [*metadata.get("finalizers", ()), TRACKING]
    if new.index is not None:
        _set_index(body, job, new)
    return body


def _set_index(body: dict[str, Any], job: Job, new: NewPod) -> None:
    metadata, spec, index = body["metadata"], body["spec"], str(new.index)
    metadata["generateName"] = prefix(f"{job.name}-{index}")
    metadata["labels"] = metadata.get("labels", {}) | {INDEX: index}
    metadata["annotations"] = metadata.get("annotations", {}) | {INDEX: index, **new.annotations}
    spec["hostname"] = f"{job.name}-{index}"
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_with_variable(container) for container in spec[name]]


def _with_variable(container: dict[str, Any]) -> dict[str, Any]:
    env = container.get("env") or []
    if any(variable["name"] == _VARIABLE for variable in env):
        return container
    path = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*env, {"name": _VARIABLE, "valueFrom": path}]}
