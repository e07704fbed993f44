"""Rights of the controllers that no end-to-end test uses, and what they are for.

Written as `rights.Right` prints them. A whole run fails when something that is granted was neither
used nor is named here; `test_rights.py` fails when something is named that is not granted.
"""

_HANDED_ON = "the agents of clusters get it, and nobody can give what he does not have"
_ADOPTED = (
    "a pod without an owner is adopted, by the code that does so for ReplicaSets (test_chores.py);"
    " no end-to-end test with separate controllers causes it for this kind yet"
)
_CHECKED = "no request of its own: the server asks for it while it takes another one"
_COUNTED = "an event is counted on when it repeats, which differs from run to run"
_CUSTOM = "where patches are custom resources: in a cluster that is not ours (test_foreign.py)"
_JOBS = "Jobs of hooks and proofs (tests/controllers/devicemaintenances/test_jobs.py)"
_NOTIFIED = "only where notifications are configured (controllers/notifications/test_sources.py)"
_OWNERS = (
    "no request of its own: servers that check who may block the deletion of an owner ask for it"
)
_SCRAPED = "only where metrics are read over the network (e2e/test_controllers.py, as another user)"
_TWICE = "only where a server accepts a device in two claims: not ours (test_foreign.py)"
_UNDONE = "what was begun is undone when a program died or somebody was quicker"

UNUSED: dict[str, str] = {
    "sully:aggregation: escalate clusterroles.rbac.authorization.k8s.io": _CHECKED,
    "sully:capabilities: get clusterroles.rbac.authorization.k8s.io": (
        "who evicts need not be concluded on a server of ours (test_foreign.py)"
    ),
    "sully:claims: patch events": _COUNTED,
    "sully:claims: patch resourceclaims/binding.resource.k8s.io": _CHECKED,
    "sully:claims: update pods/finalizers": _OWNERS,
    "sully:clusters: create events.events.k8s.io": _HANDED_ON,
    "sully:clusters: list events.events.k8s.io": _HANDED_ON,
    "sully:clusters: patch events": _COUNTED,
    "sully:clusters: update leases.coordination.k8s.io": _HANDED_ON,
    "sully:clusters: update managedclusters.cluster.open-cluster-management.io": _HANDED_ON,
    "sully:clusters: update managedclusters/status.cluster.open-cluster-management.io": _HANDED_ON,
    "sully:clusters: watch events.events.k8s.io": _HANDED_ON,
    "sully:daemonsets: patch events": _COUNTED,
    "sully:daemonsets: patch pods": _ADOPTED,
    "sully:daemonsets: update daemonsets/finalizers.apps": _OWNERS,
    "sully:deployments: patch events": _COUNTED,
    "sully:deployments: update deployments/finalizers.apps": _OWNERS,
    "sully:deviceconflicts: create events": _TWICE,
    "sully:deviceconflicts: list deviceclasses.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: list devicetaintrules.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: list resourceclaims.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: list resourceslicepatches.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: list resourceslicepatches.sully.dev": _TWICE,
    "sully:deviceconflicts: list resourceslices.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: patch events": _TWICE,
    "sully:deviceconflicts: watch deviceclasses.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: watch devicetaintrules.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: watch resourceclaims.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: watch resourceslicepatches.resource.k8s.io": _TWICE,
    "sully:deviceconflicts: watch resourceslicepatches.sully.dev": _TWICE,
    "sully:deviceconflicts: watch resourceslices.resource.k8s.io": _TWICE,
    "sully:devicemaintenances: create jobs.batch": _JOBS,
    "sully:devicemaintenances: create resourceclaims.resource.k8s.io": _JOBS,
    "sully:devicemaintenances: delete jobs.batch": _JOBS,
    "sully:devicemaintenances: get namespaces": _JOBS,
    "sully:devicemaintenances: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:devicemaintenances: patch events": _COUNTED,
    "sully:devicemaintenances: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:devicemetrics: list devicemaintenances.sully.dev": _NOTIFIED,
    "sully:devicemetrics: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:devicemetrics: watch devicemaintenances.sully.dev": _NOTIFIED,
    "sully:devicemetrics: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:devicetaintpolicies: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:devicetaintpolicies: patch events": _COUNTED,
    "sully:devicetaintpolicies: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:disruption: patch events": _COUNTED,
    "sully:eviction: delete evictionrecords.sully.dev": _UNDONE,
    "sully:eviction: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:eviction: patch events": _COUNTED,
    "sully:eviction: patch resourceclaims/binding.resource.k8s.io": _CHECKED,
    "sully:eviction: patch resourceclaims/status.resource.k8s.io": (
        "claims that no pod uses, on tainted devices (tests/controllers/eviction)"
    ),
    "sully:eviction: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:expiry: delete resourceslicepatches.sully.dev": _CUSTOM,
    "sully:expiry: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:expiry: patch events": _COUNTED,
    "sully:expiry: patch managedclusters.cluster.open-cluster-management.io": (
        "taints of clusters that expire on other hubs (tests/kube/test_hub_taints.py)"
    ),
    "sully:expiry: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:jobs: patch events": _COUNTED,
    "sully:jobs: update jobs/finalizers.batch": _OWNERS,
    "sully:metrics-auth: create subjectaccessreviews.authorization.k8s.io": _SCRAPED,
    "sully:metrics-auth: create tokenreviews.authentication.k8s.io": _SCRAPED,
    "sully:patchstatus: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:patchstatus: patch events": _COUNTED,
    "sully:patchstatus: patch resourceslicepatches/status.sully.dev": _CUSTOM,
    "sully:patchstatus: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:placement: patch events": _COUNTED,
    "sully:placement: patch placementdecisions.cluster.open-cluster-management.io": (
        "labels of decisions that came into another group (tests/controllers/placement)"
    ),
    "sully:placement: update placements/finalizers.cluster.open-cluster-management.io": _OWNERS,
    "sully:replicasets: patch events": _COUNTED,
    "sully:replicasets: update replicasets/finalizers.apps": _OWNERS,
    "sully:scheduling: delete resourceclaims.resource.k8s.io": _UNDONE,
    "sully:scheduling: list resourceslicepatches.sully.dev": _CUSTOM,
    "sully:scheduling: patch events": _COUNTED,
    "sully:scheduling: patch resourceclaims.resource.k8s.io": _UNDONE,
    "sully:scheduling: patch resourceclaims/binding.resource.k8s.io": _CHECKED,
    "sully:scheduling: patch resourceclaims/status.resource.k8s.io": _UNDONE,
    "sully:scheduling: update resourceclaims/binding.resource.k8s.io": _CHECKED,
    "sully:scheduling: watch resourceslicepatches.sully.dev": _CUSTOM,
    "sully:statefulsets: patch events": _COUNTED,
    "sully:statefulsets: patch pods": _ADOPTED,
    "sully:statefulsets: update statefulsets/finalizers.apps": _OWNERS,
}
