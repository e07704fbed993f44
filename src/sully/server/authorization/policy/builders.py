"""A short way to write rules, roles and bindings down."""

from collections.abc import Iterable, Mapping
from typing import Any

Obj = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
ALL = f"{READ} {WRITE}"
RESOURCE = "resource.k8s.io"


def on(group: str, resources: str, verbs: str, names: str = "") -> Obj:
    """Write a rule about resources; words are separated by spaces, `core` is the core group."""
    rule: Obj = {
        "apiGroups": sorted("" if name == "core" else name for name in group.split()),
        "resources": sorted(resources.split()),
        "verbs": sorted(verbs.split()),
    }
    return rule | ({"resourceNames": sorted(names.split())} if names else {})


def on_paths(paths: str, verbs: str = "get") -> Obj:
    """Write a rule about paths that are not resources."""
    return {"nonResourceURLs": sorted(paths.split()), "verbs": sorted(verbs.split())}


def events() -> Obj:
    """Allow writing events."""
    return on("core events.k8s.io", "events", "create patch update")


def _metadata(name: str, labels: Mapping[str, str]) -> Obj:
    return {
        "name": name,
        "labels": {**LABELS, **labels},
        "annotations": {AUTO_UPDATE: "true"},
    }


def role(name: str, *rules: Obj, gives_to: str = "") -> Obj:
    """Write a cluster role; what it grants can be gathered by an aggregated one."""
    labels = {f"{RBAC}/aggregate-to-{gives_to}": "true"} if gives_to else {}
    return {"metadata": _metadata(name, labels), "rules": list(rules)}


def aggregated(name: str, *, gives_to: str = "") -> Obj:
    """Write a cluster role that gathers its rules from those labelled for it."""
    selector = {"matchLabels": {f"{RBAC}/aggregate-to-{name}": "true"}}
    rule = {"clusterRoleSelectors": [selector]}
    return role(name, gives_to=gives_to) | {"aggregationRule": rule}


def bind(name: str, subjects: Iterable[Obj]) -> Obj:
    """Write a binding that grants the cluster role of the same name."""
    return {
        "metadata": _metadata(name, {}),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": list(subjects),
    }


def group(name: str) -> Obj:
    """Name a group."""
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def user(name: str) -> Obj:
    """Name a user."""
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def account(name: str, namespace: str = "kube-system") -> Obj:
    """Name a service account."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
