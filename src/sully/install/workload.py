"""The Deployment of the controllers: two replicas, of which one leads, without privileges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sully import __version__
from sully.domain.capabilities.duties import BESIDE_KUBERNETES, HUB_NEEDS, Evictor
from sully.machinery.gates import Gates

Obj = dict[str, Any]

NAME = "sully-controllers"
LABELS = {"app.kubernetes.io/name": "sully", "app.kubernetes.io/component": "controllers"}
PORT = 9090
DEFAULT = tuple(name for name in BESIDE_KUBERNETES if name not in HUB_NEEDS)
"""The controllers that have something to do in a cluster with devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `sully install`."""

    namespace: str = "sully-system"
    image: str = f"sully:{__version__}"
    replicas: int = 2
    evictor: Evictor = "server"
    controllers: tuple[str, ...] = DEFAULT
    named: bool = False
    """Whether the controllers were selected by name, not by what the server supports."""
    gates: Gates = field(default_factory=Gates)
    """The features that are on, which decide what the controllers need."""
    feature_gates: str = ""
    """The same as the flag, for the program in the container."""
    monitor: str = ""
    """The library with which agents on nodes measure the health of devices; empty: no agents."""

    @property
    def running(self) -> tuple[str, ...]:
        """Return the controllers that run: no evictor where the server evicts."""
        evicts = self.evictor == "sully"
        return tuple(name for name in self.controllers if name != "eviction" or evicts)


def metadata(name: str, settings: Settings | None = None) -> Obj:
    """Return the metadata of one of our objects, with the namespace where it has one."""
    where = {"namespace": settings.namespace} if settings is not None else {}
    return {"name": name, **where, "labels": dict(LABELS)}


def deployment(settings: Settings) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, settings),
        "spec": {
            "replicas": settings.replicas,
            "selector": {"matchLabels": dict(LABELS)},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": _pod(settings)},
        },
    }


def _pod(settings: Settings) -> Obj:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(LABELS)},
    }
    return {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_container(settings)],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
        "terminationGracePeriodSeconds": 15,
    }


def _container(settings: Settings) -> Obj:
    return {
        "name": "controllers",
        "image": settings.image,
        "args": arguments(settings),
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": _probe("/healthz", period=20),
        "readinessProbe": _probe("/readyz", period=10),
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "1Gi"},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }


def arguments(settings: Settings) -> list[str]:
    """Return the command line of the program in the container."""
    flags = [
        "controllers",
        f"--evictor={settings.evictor}",
        f"--lease={settings.namespace}/{NAME}",
        f"--metrics-listen=0.0.0.0:{PORT}",
        "--log-format=json",
    ]
    if settings.feature_gates:
        flags.append(f"--feature-gates={settings.feature_gates}")
    return [*flags, f"--only={','.join(settings.running)}"] if settings.named else flags


def _probe(path: str, *, period: int) -> Obj:
    get = {"path": path, "port": "metrics", "scheme": "HTTPS"}
    return {"httpGet": get, "periodSeconds": period}


def service(settings: Settings) -> Obj:
    """Return the Service for the metrics of all replicas."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(NAME, settings),
        "spec": {
            "clusterIP": "None",
            "selector": dict(LABELS),
            "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}],
        },
    }


def network_policy(settings: Settings) -> Obj:
    """Return the policy that allows only collectors of metrics to connect."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(NAME, settings),
        "spec": {
            "podSelector": {"matchLabels": dict(LABELS)},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
                    "ports": [{"port": PORT, "protocol": "TCP"}],
                }
            ],
        },
    }


def budget(settings: Settings) -> Obj:
    """Return the budget: one replica remains available."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(NAME, settings),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(LABELS)}},
    }


def monitor(settings: Settings) -> Obj:
    """Return the monitor with which a Prometheus operator finds the metrics."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(NAME, settings),
        "spec": {
            "selector": {"matchLabels": dict(LABELS)},
            "endpoints": [
                {
                    "port": "metrics",
                    "interval": "30s",
                    "scheme": "https",
                    "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                    # Each pod creates its own certificate when it starts.
                    "tlsConfig": {"insecureSkipVerify": True},
                }
            ],
        },
    }
