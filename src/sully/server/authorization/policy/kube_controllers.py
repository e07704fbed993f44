"""Roles of controllers that only kube-controller-manager has, for kinds that are served here.

It can run against this server instead of our controllers, with a service account for each of its
controllers. Those that we have, too, are in components.py.
"""

from sully.server.authorization.policy.builders import (
    READ,
    Obj,
    account,
    bind,
    events,
    on,
    role,
)

_STORAGE = "storage.k8s.io"

KUBE_CONTROLLERS: dict[str, tuple[Obj, ...]] = {
    "attachdetach-controller": (
        on("core", "persistentvolumeclaims persistentvolumes pods", "list watch"),
        on("core", "nodes", READ),
        on("core", "nodes/status", "patch update"),
        on(_STORAGE, "volumeattachments", f"create delete {READ}"),
        on(_STORAGE, "csidrivers csinodes", READ),
        events(),
    ),
    "ephemeral-volume-controller": (
        on("core", "pods", READ),
        on("core", "pods/finalizers", "update"),
        on("core", "persistentvolumeclaims", f"create {READ}"),
        events(),
    ),
    "expand-controller": (
        on("core", "persistentvolumes", f"patch update {READ}"),
        on("core", "persistentvolumeclaims", READ),
        on("core", "persistentvolumeclaims/status", "patch update"),
        events(),
    ),
    "legacy-service-account-token-cleaner": (
        on("core", "configmaps", "get", "kube-apiserver-legacy-service-account-token-tracking"),
        on("core", "secrets", "delete patch"),
    ),
    "node-controller": (
        on("core", "nodes", f"delete patch update {READ}"),
        on("core", "nodes/status pods/status", "patch update"),
        on("core", "pods", f"delete {READ}"),
        on("coordination.k8s.io", "leases", READ),
        events(),
    ),
    "persistent-volume-binder": (
        on("core", "persistentvolumes", f"create delete update {READ}"),
        on("core", "persistentvolumeclaims", f"update {READ}"),
        on("core", "persistentvolumeclaims/status persistentvolumes/status", "update"),
        on("core", "pods", f"create delete {READ}"),
        on("core", "nodes", "list watch"),
        on("core", "events", "watch"),
        on(_STORAGE, "storageclasses", READ),
        events(),
    ),
    "pod-garbage-collector": (
        on("core", "pods", "delete list watch"),
        on("core", "pods/status", "patch"),
        on("core", "nodes", READ),
    ),
    "pv-protection-controller": (on("core", "persistentvolumes", f"update {READ}"), events()),
    "pvc-protection-controller": (
        on("core", "persistentvolumeclaims", f"update {READ}"),
        on("core", "persistentvolumeclaims/status", "update"),
        on("core", "pods", READ),
        events(),
    ),
    "replication-controller": (
        on("core", "replicationcontrollers", f"update {READ}"),
        on("core", "replicationcontrollers/finalizers replicationcontrollers/status", "update"),
        on("core", "pods", "create delete list patch watch"),
        events(),
    ),
    "ttl-controller": (on("core", "nodes", "list patch update watch"), events()),
}
"""By the name of the controller, which is that of its service account."""

ROLES: tuple[Obj, ...] = tuple(
    role(f"system:controller:{name}", *rules) for name, rules in KUBE_CONTROLLERS.items()
)
BINDINGS: tuple[Obj, ...] = tuple(
    bind(f"system:controller:{name}", [account(name)]) for name in KUBE_CONTROLLERS
)
