"""What nodes may do in general; nodes.py beside this folder narrows it down to their own objects.

The rules are also the role `system:node`, which has no binding: the node
authorizer uses them.
"""

from sully.server.authorization.policy.builders import (
    READ,
    RESOURCE,
    WRITE,
    Obj,
    bind,
    on,
    role,
)

NODE_RULES: tuple[Obj, ...] = (
    on("authentication.k8s.io", "tokenreviews", "create"),
    on("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    on("core", "services", READ),
    on("core", "nodes", f"create {READ}"),
    on("core", "nodes/status", "patch update"),
    on("core", "nodes", "patch update"),
    on("core", "events", "create patch update"),
    on("events.k8s.io", "events", "create patch update"),
    on("core", "pods", READ),
    on("core", "pods", "create delete"),
    on("core", "pods/status", "patch update"),
    on("core", "pods/eviction", "create"),
    on("core", "configmaps secrets", READ),
    on("core", "persistentvolumeclaims persistentvolumes", "get"),
    on("core", "endpoints", "get"),
    on("certificates.k8s.io", "certificatesigningrequests", f"create {READ}"),
    on("coordination.k8s.io", "leases", "create delete get patch update"),
    on("core", "serviceaccounts", "get"),
    on("core", "serviceaccounts/token", "create"),
    on("node.k8s.io", "runtimeclasses", READ),
    on(RESOURCE, "resourceclaims", "get"),
    on(RESOURCE, "resourceslices", f"{READ} {WRITE}"),
)

ROLES: tuple[Obj, ...] = (role("system:node", *NODE_RULES),)
BINDINGS: tuple[Obj, ...] = (bind("system:node", []),)
