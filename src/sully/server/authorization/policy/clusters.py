"""Roles for managed clusters: for users who create placements, and for new clusters that register.

A user who may edit a namespace may create placements in it, on the sets that are bound to it; to
bind one requires a permission on the set. The roles of agents are for their own clusters alone and
are created when a cluster is accepted.
"""

from sully.server.authorization.policy.builders import READ, WRITE, Obj, bind, group, on, role

CLUSTER = "cluster.open-cluster-management.io"
_KINDS = "addonplacementscores managedclustersetbindings placementdecisions placements"
_BOOTSTRAP = "open-cluster-management:bootstrap"

ROLES: tuple[Obj, ...] = (
    role(
        "open-cluster-management:aggregate-to-view",
        on(CLUSTER, f"{_KINDS} placements/status placementdecisions/status", READ),
        gives_to="view",
    ),
    role(
        "open-cluster-management:aggregate-to-edit",
        on(CLUSTER, "managedclustersetbindings placements", WRITE),
        gives_to="edit",
    ),
    role(
        _BOOTSTRAP,
        on(CLUSTER, "managedclusters", "create get"),
        # A cluster without a set is added to the default set.
        on(CLUSTER, "managedclustersets/join", "create", "default"),
    ),
)

BINDINGS: tuple[Obj, ...] = (bind(_BOOTSTRAP, [group("system:bootstrappers:managedcluster")]),)
