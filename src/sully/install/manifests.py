"""Everything that `sully install` creates, in the order of creation.

folders.py writes the same as kustomize folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from sully.install.admission import patch_warning
from sully.install.alerts import prometheus_rule
from sully.install.crds import definitions
from sully.install.grafana import dashboard_config_map
from sully.install.node_agent import node_agent
from sully.install.rbac import discovery_rules, lease_rules, review_rules, rules_of
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

OPTIONAL = frozenset(
    (
        "NetworkPolicy",
        "PrometheusRule",
        "ServiceMonitor",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
)
"""Kinds that a server may lack: everything works without them."""
AGENTS = "monitor"
"""The subject of what runs on nodes, which is not installed unless it is asked for."""


def manifests(settings: Settings) -> dict[str, list[Obj]]:
    """Return all objects by subject, in order."""
    return {
        "namespace": [_namespace(settings)],
        "crds": list(definitions(settings.gates)),
        "admission": patch_warning(),
        "rbac": list(_rbac(settings)),
        "controllers": [
            service(settings),
            deployment(settings),
            budget(settings),
            network_policy(settings),
        ],
        **({AGENTS: node_agent(settings)} if settings.monitor else {}),
        "monitoring": [
            monitor(settings),
            prometheus_rule(settings),
            dashboard_config_map(settings),
        ],
    }


def _namespace(settings: Settings) -> Obj:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    named = metadata(settings.namespace)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {**named, "labels": {**named["labels"], **enforced}},
    }


def _rbac(settings: Settings) -> Iterator[Obj]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(NAME, settings)}
    yield _role("Role", metadata(NAME, settings), lease_rules(NAME))
    yield _binding("Role", metadata(NAME, settings), settings)
    roles = {"sully:capabilities": discovery_rules(), "sully:metrics-auth": review_rules()}
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
    """Writes no YAML aliases: not every reader of manifests supports them."""

    def ignore_aliases(self, _data: Any) -> bool:
        """Return True: write values again instead of aliases."""
        return True


def to_text(objects: Iterable[Any]) -> str:
    """Write values as one YAML stream, with fields in their order."""
    return yaml.dump_all(
        objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=100
    )
