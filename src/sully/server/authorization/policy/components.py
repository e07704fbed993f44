"""Roles of the control plane components: least privilege.

Controllers are service accounts in kube-system, by their own names; scheduler and controller
manager are users, as in Kubernetes.
"""

from sully.domain.devices.taints import BUDGET_EFFECTS, EFFECTS
from sully.server.authorization.policy.builders import (
    RBAC,
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
from sully.server.authorization.policy.clusters import CLUSTER

_LEASE_VERBS = "create get list patch update watch"
_PROOFS = (
    # Jobs that prove devices healthy, in namespaces that allow admin access.
    on("batch", "jobs", f"create delete {READ}"),
    on("core", "namespaces", "get"),
    on("core", "pods", "list"),
    on(RESOURCE, "resourceclaims", "create"),
)

# By the name of the controller, which is that of its service account.
CONTROLLERS: dict[str, tuple[Obj, ...]] = {
    "clusterrole-aggregation-controller": (
        # It aggregates rules that it does not hold itself.
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
        on("sully.dev", "evictionrecords", f"create delete {READ}"),
        on(RESOURCE, "deviceclasses resourceclaims resourceslicepatches resourceslices", READ),
        on(RESOURCE, "devicetaintrules", READ),
        on(RESOURCE, "devicetaintrules/status", "patch update"),
        on(RESOURCE, "resourceclaims/binding resourceclaims/status", "patch"),
        events(),
    ),
    "device-conflict-controller": (
        on(RESOURCE, "deviceclasses devicetaintrules resourceslicepatches resourceslices", READ),
        on(RESOURCE, "resourceclaims", READ),
        events(),
    ),
    "device-metrics-controller": (
        on("core", "pods", READ),
        on("sully.dev", "devicemaintenances devicetaintpolicies", READ),
        on(RESOURCE, "deviceclasses devicetaintrules resourceslicepatches resourceslices", READ),
        on(RESOURCE, "resourceclaims", READ),
    ),
    "device-taint-policy-controller": (
        on(RESOURCE, "deviceclasses resourceclaims resourceslicepatches resourceslices", READ),
        on(RESOURCE, "devicetaintrules", f"create delete patch {READ}"),
        on("core", "nodes", READ),
        on("sully.dev", "devicehealths devicetaintpolicies", READ),
        on("sully.dev", "devicetaintpolicies/status", "patch"),
        *_PROOFS,
        events(),
    ),
    "device-maintenance-controller": (
        *_PROOFS,
        on(RESOURCE, "deviceclasses resourceclaims resourceslicepatches resourceslices", READ),
        on(RESOURCE, "devicetaintrules", f"create delete patch {READ}"),
        on("core", "nodes pods", READ),
        on("core", "pods/eviction", "create"),
        on("sully.dev", "devicemaintenances", READ),
        on("sully.dev", "devicemaintenances/status", "patch"),
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
    "job-controller": (
        on("batch", "jobs", f"delete patch update {READ}"),
        on("batch", "jobs/status", "update"),
        on("batch", "jobs/finalizers", "update"),
        on("core", "pods", f"create delete patch {READ}"),
        events(),
    ),
    "statefulset-controller": (
        on("core", "pods", READ),
        on("apps", "statefulsets", READ),
        on("apps", "statefulsets/status", "update"),
        on("apps", "statefulsets/finalizers", "update"),
        on("core", "pods", "create delete get patch update"),
        on("apps", "controllerrevisions", f"create delete patch update {READ}"),
        on("core", "persistentvolumeclaims", "create get"),
        on("core", "persistentvolumeclaims", f"delete update {READ}"),
        events(),
    ),
    "daemon-set-controller": (
        on("apps", "daemonsets", READ),
        on("apps", "daemonsets/status", "update"),
        on("apps", "daemonsets/finalizers", "update"),
        on("core", "nodes", READ),
        on("core", "pods", f"create delete patch {READ}"),
        on("core", "pods/binding", "create"),
        on("apps", "controllerrevisions", f"create delete patch update {READ}"),
        events(),
    ),
    "cluster-taint-policy-controller": (
        on(CLUSTER, "managedclusters", f"patch {READ}"),
        on("sully.dev", "clustertaintpolicies", READ),
        on("sully.dev", "clustertaintpolicies/status", "patch"),
    ),
    "managed-cluster-controller": (
        on(CLUSTER, "managedclusters", f"patch update {READ}"),
        on(CLUSTER, "managedclusters/status", "patch update"),
        on("core", "namespaces", f"create patch {READ}"),
        on(RBAC, "clusterrolebindings clusterroles rolebindings", f"create delete patch {READ}"),
        # It may not escalate: it grants agents the following and the above.
        on("coordination.k8s.io", "leases", f"update {READ}"),
        on("events.k8s.io", "events", "list watch"),
        events(),
    ),
    "managed-cluster-lease-controller": (
        on(CLUSTER, "managedclusters", READ),
        on(CLUSTER, "managedclusters/status", "patch"),
        on("coordination.k8s.io", "leases", f"create patch {READ}"),
        events(),
    ),
    "managed-cluster-set-controller": (
        on(CLUSTER, "managedclusters managedclustersetbindings", READ),
        on(CLUSTER, "managedclustersets", f"create patch {READ}"),
        on(CLUSTER, "managedclustersetbindings/status managedclustersets/status", "patch"),
    ),
    "managed-cluster-taint-controller": (on(CLUSTER, "managedclusters", f"patch {READ}"),),
    "generic-garbage-collector": (on("*", "*", f"delete patch update {READ}"), events()),
    # Registers simulated clusters; their agents have their own roles.
    "simulated-clusters": (
        on(CLUSTER, "managedclusters", f"create delete patch {READ}"),
        on(CLUSTER, "managedclustersets/join", "create", "default"),
        on("register.open-cluster-management.io", "managedclusters/accept", "update"),
        events(),
    ),
    # Simulated nodes: kubelets and a driver.
    "simulated-nodes": (
        on("core", "nodes", f"create delete patch {READ}"),
        on("core", "nodes/status", "patch"),
        on("core", "pods", f"delete {READ}"),
        on("core", "pods/status", "patch"),
        on("coordination.k8s.io", "leases", "create get patch"),
        on(RESOURCE, "deviceclasses", "create"),
        on(RESOURCE, "resourceclaims", READ),
        on(RESOURCE, "resourceslices", f"create delete update {READ}"),
        events(),
    ),
    "namespace-controller": (
        on("core", "namespaces", f"delete {READ}"),
        on("core", "namespaces/finalize namespaces/status", "update"),
        on("*", "*", "delete deletecollection get list"),
    ),
    "placement-controller": (
        on(
            CLUSTER,
            "addonplacementscores managedclusters managedclustersetbindings managedclustersets",
            READ,
        ),
        on(CLUSTER, "placements", READ),
        on(CLUSTER, "placements/finalizers", "update"),
        on(CLUSTER, "placements/status", "patch update"),
        on(CLUSTER, "placementdecisions", f"create delete patch update {READ}"),
        on(CLUSTER, "placementdecisions/status", "patch update"),
        events(),
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
    "resourcequota-controller": (
        # A quota can count objects of any kind.
        on("*", "*", "list watch"),
        on("core", "resourcequotas/status", "update"),
        events(),
    ),
    "root-ca-cert-publisher": (
        on("core", "configmaps", f"create update {READ}"),
        on("core", "namespaces", READ),
        events(),
    ),
    "slice-patch-status-controller": (
        on(RESOURCE, "deviceclasses devicetaintrules resourceslicepatches resourceslices", READ),
        on(RESOURCE, "resourceslicepatches/status", "patch update"),
        events(),
    ),
    "taint-expiry-controller": (
        on(RESOURCE, "devicetaintrules resourceslicepatches", f"delete {READ}"),
        on(CLUSTER, "managedclusters", f"patch {READ}"),
        events(),
    ),
    "taint-history-controller": (
        on("core", "pods", READ),
        on(RESOURCE, "devicetaintrules", READ),
        on("sully.dev", "evictionrecords", f"delete {READ}"),
        on("sully.dev", "taintrecords", f"create delete {READ}"),
        on("sully.dev", "taintrecords/status", "update"),
    ),
    "service-account-controller": (
        on("core", "namespaces", READ),
        on("core", "serviceaccounts", f"create {READ}"),
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
    on("core", "persistentvolumeclaims persistentvolumes", READ),
    on("storage.k8s.io", "csidrivers csinodes csistoragecapacities volumeattachments", READ),
    on("authentication.k8s.io", "tokenreviews", "create"),
    on("authorization.k8s.io", "subjectaccessreviews", "create"),
    on(RESOURCE, "deviceclasses", READ),
    on(RESOURCE, "devicetaintrules", READ),
    on(RESOURCE, "resourceslicepatches resourceslices", READ),
    on(RESOURCE, "resourceclaims", f"create delete patch update {READ}"),
    on(RESOURCE, "resourceclaims/status", "patch update"),
    on(RESOURCE, "resourceclaims/binding", "patch update"),
)

_VOLUME_SCHEDULER = role(
    "system:volume-scheduler",
    on("core", "persistentvolumes", f"patch update {READ}"),
    on("storage.k8s.io", "storageclasses", READ),
    on("core", "persistentvolumeclaims", f"patch update {READ}"),
)

# Its informers are shared by the controllers, so it reads all that any of them needs.
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


_POOL_STATUS = "resourcepoolstatusrequest-controller"
_BUDGETS = f"{controller_role('device-taint-eviction-controller')}:budgets"

GATED: dict[str, tuple[Obj, Obj]] = {
    EFFECTS[effect].feature_gate: (
        role(
            _BUDGETS,
            on("core", "pods/eviction", "create"),
            on("policy", "poddisruptionbudgets", READ),
        ),
        bind(_BUDGETS, [account("device-taint-eviction-controller")]),
    )
    for effect in BUDGET_EFFECTS
} | {
    "DRAResourcePoolStatus": (
        role(
            controller_role(_POOL_STATUS),
            on(RESOURCE, "resourcepoolstatusrequests", f"delete {READ}"),
            on(RESOURCE, "resourcepoolstatusrequests/status", "update"),
            on(
                RESOURCE, "deviceclasses devicetaintrules resourceslicepatches resourceslices", READ
            ),
            on(RESOURCE, "resourceclaims", READ),
        ),
        bind(controller_role(_POOL_STATUS), [account(_POOL_STATUS)]),
    )
}
"""Roles and their bindings that only a feature needs, by its gate."""

ROLES: tuple[Obj, ...] = (
    _SCHEDULER,
    _VOLUME_SCHEDULER,
    _MANAGER,
    *(role(controller_role(name), *rules) for name, rules in CONTROLLERS.items()),
)

BINDINGS: tuple[Obj, ...] = (
    bind("system:kube-scheduler", [user("system:kube-scheduler")]),
    bind("system:volume-scheduler", [user("system:kube-scheduler")]),
    bind("system:kube-controller-manager", [user("system:kube-controller-manager")]),
    *(bind(controller_role(name), [account(name)]) for name in CONTROLLERS),
)
