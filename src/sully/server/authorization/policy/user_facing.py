"""Roles for people: cluster-admin, admin, edit and view, and those of all users.

The last three are gathered from `system:aggregate-to-…`, so that new kinds are added
by a label. Only cluster admins may write device taint rules, classes or slices.
"""

from sully.server.authorization.policy.builders import (
    ALL,
    READ,
    RESOURCE,
    WRITE,
    Obj,
    aggregated,
    bind,
    group,
    on,
    on_paths,
    role,
)

_VIEW = role(
    "system:aggregate-to-view",
    on(
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods"
        " replicationcontrollers replicationcontrollers/scale serviceaccounts services"
        " services/status",
        READ,
    ),
    on(
        "core",
        "bindings events limitranges namespaces/status pods/log pods/status"
        " replicationcontrollers/status resourcequotas resourcequotas/status",
        READ,
    ),
    on("core", "namespaces", READ),
    on("discovery.k8s.io", "endpointslices", READ),
    on(
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale"
        " deployments/status replicasets replicasets/scale replicasets/status statefulsets"
        " statefulsets/scale statefulsets/status",
        READ,
    ),
    on("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
    on("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
    on(
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses"
        " ingresses/status networkpolicies replicasets replicasets/scale replicasets/status"
        " replicationcontrollers/scale",
        READ,
    ),
    on("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
    on("networking.k8s.io", "ingresses ingresses/status networkpolicies", READ),
    on(RESOURCE, "resourceclaims resourceclaims/status resourceclaimtemplates", READ),
    on("sully.dev", "evictionrecords", READ),
    gives_to="view",
)

_EDIT = role(
    "system:aggregate-to-edit",
    on("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
    on("core", "serviceaccounts", "impersonate"),
    on("core", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
    on("core", "pods/eviction", "create"),
    on(
        "core",
        "configmaps events persistentvolumeclaims replicationcontrollers"
        " replicationcontrollers/scale secrets serviceaccounts services services/proxy",
        WRITE,
    ),
    on("core", "serviceaccounts/token", "create"),
    on(
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets"
        " replicasets/scale statefulsets statefulsets/scale",
        WRITE,
    ),
    on("autoscaling", "horizontalpodautoscalers", WRITE),
    on("batch", "cronjobs jobs", WRITE),
    on(
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies"
        " replicasets replicasets/scale replicationcontrollers/scale",
        WRITE,
    ),
    on("policy", "poddisruptionbudgets", WRITE),
    on("networking.k8s.io", "ingresses networkpolicies", WRITE),
    on("coordination.k8s.io", "leases", ALL),
    on(RESOURCE, "resourceclaims resourceclaimtemplates", WRITE),
    gives_to="edit",
)

_ADMIN = role(
    "system:aggregate-to-admin",
    on("authorization.k8s.io", "localsubjectaccessreviews", "create"),
    on("rbac.authorization.k8s.io", "rolebindings roles", ALL),
    gives_to="admin",
)

_HEALTH = "/healthz /livez /readyz"

ROLES: tuple[Obj, ...] = (
    role("cluster-admin", on("*", "*", "*"), on_paths("*", "*")),
    aggregated("admin"),
    aggregated("edit", gives_to="admin"),
    aggregated("view", gives_to="edit"),
    _ADMIN,
    _EDIT,
    _VIEW,
    role(
        "system:discovery",
        on_paths(f"{_HEALTH} /api /api/* /apis /apis/* /openapi /openapi/* /version /version/"),
    ),
    role(
        "system:basic-user",
        on("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
        on("authentication.k8s.io", "selfsubjectreviews", "create"),
    ),
    role("system:public-info-viewer", on_paths(f"{_HEALTH} /version /version/")),
    role(
        "system:monitoring",
        on_paths(f"{_HEALTH} /healthz/* /livez/* /metrics /metrics/slis /readyz/*"),
    ),
    role(
        "system:auth-delegator",
        on("authentication.k8s.io", "tokenreviews", "create"),
        on("authorization.k8s.io", "subjectaccessreviews", "create"),
    ),
    role(
        "system:service-account-issuer-discovery",
        on_paths(
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks"
            " /openid/v1/jwks/"
        ),
    ),
)

_EVERYBODY = group("system:authenticated")

BINDINGS: tuple[Obj, ...] = (
    bind("cluster-admin", [group("system:masters")]),
    bind("system:discovery", [_EVERYBODY]),
    bind("system:basic-user", [_EVERYBODY]),
    bind("system:public-info-viewer", [_EVERYBODY, group("system:unauthenticated")]),
    bind("system:monitoring", [group("system:monitoring")]),
    bind("system:service-account-issuer-discovery", [group("system:serviceaccounts")]),
)
