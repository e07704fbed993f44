"""The DaemonSet of `sully monitor nvml`, with as few privileges as an agent can have.

It gets the GPUs and the library of the driver from NVIDIA's container runtime, so it needs neither
privileges nor folders of its node. A token of one node writes only the report of that node.
"""

from __future__ import annotations

from typing import Any

from sully.domain.capabilities.offers import OURS
from sully.install.workload import LABELS, Settings, metadata
from sully.server.authorization.policy.builders import RBAC, on

Obj = dict[str, Any]

NAME = "sully-monitor"
ROLE = "sully:monitor"
HEALTH = "devicehealths"
_LABELS = {**LABELS, "app.kubernetes.io/component": "monitor"}
_NODE = "authentication.kubernetes.io/node-name"
OTHER_NODE = "the agent of a node can only write the DeviceHealth of this node"
_ADMISSION = "admissionregistration.k8s.io/v1"


def node_agent(settings: Settings) -> list[Obj]:
    """Return everything that the agents of nodes need."""
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(ROLE),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE},
        "subjects": [account],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(NAME, settings)},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": _metadata(ROLE),
            "rules": [on(OURS, HEALTH, "create get update")],
        },
        binding,
        *_own_report(settings),
        _daemon_set(settings),
    ]


def _metadata(name: str, settings: Settings | None = None) -> Obj:
    return {**metadata(name, settings), "labels": dict(_LABELS)}


def _own_report(settings: Settings) -> list[Obj]:
    """Return the policy that binds a token to the report of its node."""
    name = f"{HEALTH}.{OURS}"
    user = f"system:serviceaccount:{settings.namespace}:{NAME}"
    extra = "request.userInfo.extra"
    own = (
        f"'{_NODE}' in {extra} && object.spec.?nodeName.orValue('') in {extra}['{_NODE}']"
        " && object.metadata.name == object.spec.nodeName"
    )
    rule = {
        "apiGroups": [OURS],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [HEALTH],
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "agent", "expression": f"request.userInfo.username == '{user}'"}
        ],
        "validations": [{"expression": own, "message": OTHER_NODE}],
    }
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": _metadata(name),
            "spec": policy,
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": _metadata(name),
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def _daemon_set(settings: Settings) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(NAME, settings),
        "spec": {
            "selector": {"matchLabels": dict(_LABELS)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": _pod(settings)},
        },
    }


def _pod(settings: Settings) -> Obj:
    return {
        "serviceAccountName": NAME,
        "runtimeClassName": "nvidia",
        "nodeSelector": {"nvidia.com/gpu.present": "true"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "priorityClassName": "system-node-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(settings)],
        "terminationGracePeriodSeconds": 10,
    }


def _container(settings: Settings) -> Obj:
    by_node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return {
        "name": "monitor",
        "image": settings.image,
        "args": ["monitor", settings.monitor, "--log-format=json"],
        "env": [
            {"name": "NODE_NAME", "valueFrom": by_node},
            # Of all GPUs, only what is needed to ask the driver.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"memory": "192Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
