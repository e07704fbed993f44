"""Small valid objects, for tests that are about something else."""

from typing import Any

Obj = dict[str, Any]
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
ONE, TWO = "MQ==", "Mg=="  # as secrets hold them


def secret(name: str = "", data: str = ONE, **metadata: Any) -> Obj:
    named = {"name": name} if name else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": named | metadata,
        "data": {"k": data},
    }


def pod(name: str, **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def rule(name: str, effect: str = "NoSchedule", **metadata: Any) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, **metadata},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com"},
            "taint": {"key": "example.com/bad", "effect": effect},
        },
    }


def replica_set(name: str, replicas: int = 1) -> Obj:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }


def lease(name: str, holder: str = "a") -> Obj:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 10},
    }


def budget(name: str, least: int, **labels: str) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": least, "selector": {"matchLabels": labels}},
    }


def group_path(room: str, group: str, plural: str) -> str:
    """Return a collection of another group in a room's namespace."""
    return f"/apis/{group}/namespaces/{room.rsplit('/', 1)[-1]}/{plural}"
