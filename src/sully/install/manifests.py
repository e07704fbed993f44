"""Everything `sully install` brings to a cluster, in the order in which it must come.

folders.py lays the same out as kustomize folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from sully.install.crds import definitions
from sully.install.rights import leading, looking, reviewing, rules_of
from sully.install.workload import (
    NAME,
    Settings,
    budget,
    deployment,
    metadata,
    monitor,
    network_policy,
    service,
)
from sully.server.authorization.policy.builders import RBAC, on_paths

Obj = dict[str, Any]

OPTIONAL = frozenset(("NetworkPolicy", "ServiceMonitor"))
"""Kinds that a server need not have: everything works without them."""


def manifests(settings: Settings) -> dict[str, list[Obj]]:
    """Return all objects by subject, in order."""
    return {
        "namespace": [_namespace(settings)],
        "kinds": list(definitions()),
        "rights": list(_rights(settings)),
        "controllers": [
            service(settings),
            deployment(settings),
            budget(settings),
            network_policy(settings),
        ],
        "monitoring": [monitor(settings)],
    }


def _namespace(settings: Settings) -> Obj:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    named = metadata(settings.namespace)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {**named, "labels": {**named["labels"], **enforced}},
    }


def _rights(settings: Settings) -> Iterator[Obj]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(NAME, settings)}
    yield _role("Role", metadata(NAME, settings), leading(NAME))
    yield _binding("Role", metadata(NAME, settings), settings)
    roles = {"sully:capabilities": looking(), "sully:metrics-auth": reviewing()}
    roles |= {f"sully:{name}": rules_of(name, settings.gates) for name in settings.running}
    for name, rules in roles.items():
        yield _role("ClusterRole", metadata(name), rules)
        yield _binding("ClusterRole", metadata(name), settings)
    # For an admin to bind to the collector of metrics.
    yield _role("ClusterRole", metadata("sully:metrics-reader"), [on_paths("/metrics")])


def _role(kind: str, named: Obj, rules: list[Obj]) -> Obj:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": named, "rules": rules}


def _binding(kind: str, named: Obj, settings: Settings) -> Obj:
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": named,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": named["name"]},
        "subjects": [account],
    }


class _Dumper(yaml.SafeDumper):
    """Writes what is used twice twice: not every reader of manifests knows references."""

    def ignore_aliases(self, _data: Any) -> bool:
        """Say that nothing is referred to."""
        return True


def to_text(objects: Iterable[Any]) -> str:
    """Write values as one YAML stream, in the order in which their fields were given."""
    return yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=100
    )
