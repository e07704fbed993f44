"""The warning that users who write a ResourceSlicePatch with kubectl get from Kubernetes.

A policy that only warns rejects nothing: without it, a patch looks as if it worked.
"""

from __future__ import annotations

from typing import Any

from sully.domain.capabilities.offers import OURS, PATCHES
from sully.install.workload import metadata

Obj = dict[str, Any]

_GROUP = "admissionregistration.k8s.io/v1"
_NAME = f"{PATCHES}.{OURS}"
WARNING = (
    "kube-scheduler and kube-controller-manager do not read ResourceSlicePatches: only pods with"
    " schedulerName: sully are scheduled by them, and they evict pods only where Sully evicts"
)


def patch_warning() -> list[Obj]:
    """Return a policy that warns of each patch that is written, and its binding."""
    rule = {
        "apiGroups": [OURS],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [PATCHES],
    }
    policy = {
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": WARNING}],
    }
    binding = {"policyName": _NAME, "validationActions": ["Warn"]}
    return [
        {
            "apiVersion": _GROUP,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata(_NAME),
            "spec": policy,
        },
        {
            "apiVersion": _GROUP,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata(_NAME),
            "spec": binding,
        },
    ]
