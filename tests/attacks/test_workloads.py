"""A tenant whose workloads want billions of pods: its quota allows two, others must not wait."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from hostile.target import Target, eventually

pytestmark = pytest.mark.slow

Obj = dict[str, Any]
MOST = 2**31 - 1
MOST_WORK = 1.0
"""Seconds of the server's processor time that others wait at most, as in test_tenant.py."""
MOST_MEMORY = 100
LABELS = {"app": "many"}
_SET: Obj = {
    "replicas": MOST,
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": manifests.pod_spec()},
}
_JOB: Obj = {
    "parallelism": 2,
    "completions": MOST,
    "template": {"spec": manifests.pod_spec(restartPolicy="Never")},
}
_INDEXED = _JOB | {"completionMode": "Indexed"}
_ALL: Obj = {"rules": [{"succeededIndexes": f"0-{MOST - 1}"}]}
WORKLOADS: dict[str, tuple[str, Obj]] = {
    "pods in order": ("apps/v1/statefulsets", _SET | {"serviceName": "s"}),
    "pods in parallel": (
        "apps/v1/statefulsets",
        _SET | {"serviceName": "s", "podManagementPolicy": "Parallel"},
    ),
    "replicas": ("apps/v1/replicasets", _SET),
    "completions": ("batch/v1/jobs", _JOB | {"parallelism": MOST}),
    "indexes": ("batch/v1/jobs", _INDEXED),
    "indexes that have to succeed": ("batch/v1/jobs", _INDEXED | {"successPolicy": _ALL}),
}


@pytest.mark.parametrize(("kind", "spec"), WORKLOADS.values(), ids=WORKLOADS.keys())
def test_wants_billions_of_pods(target: Target, namespace: str, kind: str, spec: Obj) -> None:
    tenant = target.tenant(namespace)
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    quota = {"metadata": {"name": "bound"}, "spec": {"hard": {"pods": "2"}}}
    target.admin.post(quotas, quota).ok()
    group, _, plural = kind.rpartition("/")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    before = target.memory()

    with target.bystander() as delays:
        path = f"/apis/{group}/namespaces/{namespace}/{plural}"
        tenant.post(path, {"metadata": {"name": "many"}, "spec": spec}).ok()
        eventually(lambda: tenant.get(pods).ok()["items"])
        delays.await_answers(10)
        tenant.delete(f"{path}/many")

    assert not delays.failures
    assert delays.most_work <= MOST_WORK, delays
    assert target.memory() - before < MOST_MEMORY
