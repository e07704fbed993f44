"""Roles of the programs that make a control plane: each may do what its work needs, no more.

Controllers are service accounts in kube-system, by their own names; scheduler and controller
manager are users, as in Kubernetes.
"""

from sully.server.authorization.policy.writing import (
    READ,
    RESOURCE,
    Obj,
    account,
    bind,
    events,
    on,
    on_paths,
    role,
    user,
)

_LEASE_VERBS = "create get list patch update watch"

# By the name of the controller, which is that of its service account.
CONTROLLERS: dict[str, tuple[Obj, ...]] = {
    "clusterrole-aggregation-controller": (
        # It gathers rules it does not have itself.
        on("rbac.authorization.k8s.io", "clusterroles", f"escalate patch update {READ}"),
    ),
    "deployment-controller": (
        on("apps", "deployments", f"update {READ}"),
        on("apps", "deployments/status", "update"),
        on("apps", "deployments/finalizers", "update"),
        on("apps", "replicasets", f"create delete patch update {READ}"),
        on("core", "pods", f"update {READ}"),
        events(),
    ),
    "device-taint-eviction-controller": (
        on("core", "pods", f"delete {READ}"),
        on("core", "pods/status", "patch update"),
        on(RESOURCE, "deviceclasses resourceclaims resourceslices", READ),
        on(RESOURCE, "devicetaintrules", READ),
        on(RESOURCE, "devicetaintrules/status", "patch update"),
        events(),
    ),
    "disruption-controller": (
        on("apps", "deployments", READ),
        on("apps", "replicasets", READ),
        on("apps", "statefulsets", READ),
        on("core", "pods", READ),
        on("core", "pods/status", "patch update"),
        on("core", "replicationcontrollers", READ),
        on("*", "*/scale", "get"),
        on("policy", "poddisruptionbudgets", READ),
        on("policy", "poddisruptionbudgets/status", "update"),
        events(),
    ),
    "generic-garbage-collector": (on("*", "*", f"delete patch update {READ}"), events()),
    "namespace-controller": (
        on("core", "namespaces", f"delete {READ}"),
        on("core", "namespaces/finalize namespaces/status", "update"),
        on("*", "*", "delete deletecollection get list"),
    ),
    "replicaset-controller": (
        on("apps", "replicasets", f"update {READ}"),
        on("apps", "replicasets/status", "update"),
        on("apps", "replicasets/finalizers", "update"),
        on("core", "pods", f"create delete patch {READ}"),
        events(),
    ),
    "resource-claim-controller": (
        on("core", "pods", READ),
        on("core", "pods/finalizers", "update"),
        on("core", "pods/status", "patch update"),
        on(RESOURCE, "resourceclaimtemplates", READ),
        on(RESOURCE, "resourceclaims", f"create delete {READ}"),
        on(RESOURCE, "resourceclaims resourceclaims/status", "patch update"),
        on(RESOURCE, "resourceclaims/binding", "patch update"),
        events(),
    ),
    "root-ca-cert-publisher": (
        on("core", "configmaps", f"create update {READ}"),
        events(),
    ),
    "service-account-controller": (
        on("core", "serviceaccounts", "create"),
        events(),
    ),
}

_SCHEDULER = role(
    "system:kube-scheduler",
    events(),
    on("coordination.k8s.io", "leases", _LEASE_VERBS),
    on("core", "nodes", READ),
    on("core", "pods", f"delete {READ}"),
    on("core", "bindings pods/binding", "create"),
    on("core", "pods/status", "patch update"),
    on("core", "replicationcontrollers services", READ),
    on("apps", "replicasets statefulsets", READ),
    on("policy", "poddisruptionbudgets", READ),
    on("core", "namespaces", READ),
    on("core", "persistentvolumeclaims persistentvolumes", f"patch update {READ}"),
    on("authentication.k8s.io", "tokenreviews", "create"),
    on("authorization.k8s.io", "subjectaccessreviews", "create"),
    on(RESOURCE, "deviceclasses", READ),
    on(RESOURCE, "devicetaintrules", READ),
    on(RESOURCE, "resourceslices", READ),
    on(RESOURCE, "resourceclaims", f"create delete patch update {READ}"),
    on(RESOURCE, "resourceclaims/status", "patch update"),
    on(RESOURCE, "resourceclaims/binding", "patch update"),
)

# Its informers are shared by the controllers, so it reads whatever any of them has to know.
_MANAGER = role(
    "system:kube-controller-manager",
    events(),
    on("coordination.k8s.io", "leases", _LEASE_VERBS),
    on("core", "secrets serviceaccounts", "create"),
    on("core", "secrets", "delete"),
    on("core", "configmaps namespaces secrets serviceaccounts", "get"),
    on("core", "secrets serviceaccounts", "update"),
    on("authentication.k8s.io", "tokenreviews", "create"),
    on("authorization.k8s.io", "subjectaccessreviews", "create"),
    on("*", "*", "list watch"),
    on("core", "serviceaccounts/token", "create"),
    on_paths("/metrics"),
)


def controller_role(name: str) -> str:
    """Return the name of a controller's role."""
    return f"system:controller:{name}"


ROLES: tuple[Obj, ...] = (
    _SCHEDULER,
    _MANAGER,
    *(role(controller_role(name), *rules) for name, rules in CONTROLLERS.items()),
)

BINDINGS: tuple[Obj, ...] = (
    bind("system:kube-scheduler", [user("system:kube-scheduler")]),
    bind("system:kube-controller-manager", [user("system:kube-controller-manager")]),
    *(bind(controller_role(name), [account(name)]) for name in CONTROLLERS),
)
