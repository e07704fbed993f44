"""Roles around managed clusters: who places work, and how a new cluster introduces itself.

Who may edit a namespace may create placements in it, on the sets that are bound to it; to bind one
takes a right on the set. What the agent of an accepted cluster may is for its cluster alone, so
those roles are made when a cluster is accepted, not here.
"""

from sully.server.authorization.policy.writing import READ, WRITE, Obj, bind, group, on, role

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
        # A cluster that names no set is put into the default one.
        on(CLUSTER, "managedclustersets/join", "create", "default"),
    ),
)

BINDINGS: tuple[Obj, ...] = (bind(_BOOTSTRAP, [group("system:bootstrappers:managedcluster")]),)
