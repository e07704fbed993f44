"""Which users of our own server a controller of `sully install` replaces."""

from __future__ import annotations

IDENTITIES: dict[str, tuple[str, ...]] = {
    "aggregation": ("clusterrole-aggregation-controller",),
    "serviceaccounts": ("service-account-controller",),
    "namespaces": ("namespace-controller",),
    "rootca": ("root-ca-cert-publisher",),
    "garbagecollection": ("generic-garbage-collector",),
    "resourcequota": ("resourcequota-controller",),
    "replicasets": ("replicaset-controller",),
    "deployments": ("deployment-controller",),
    "jobs": ("job-controller",),
    "statefulsets": ("statefulset-controller",),
    "daemonsets": ("daemon-set-controller",),
    "disruption": ("disruption-controller",),
    "claims": ("resource-claim-controller",),
    "eviction": ("device-taint-eviction-controller",),
    "history": ("taint-history-controller",),
    "expiry": ("taint-expiry-controller",),
    "patchstatus": ("slice-patch-status-controller",),
    "poolstatus": ("resourcepoolstatusrequest-controller",),
    "deviceconflicts": ("device-conflict-controller",),
    "devicemetrics": ("device-metrics-controller",),
    "devicetaintpolicies": ("device-taint-policy-controller",),
    "devicemaintenances": ("device-maintenance-controller",),
    "clusters": (
        "managed-cluster-controller",
        "managed-cluster-lease-controller",
        "managed-cluster-set-controller",
        "managed-cluster-taint-controller",
        "cluster-taint-policy-controller",
    ),
    "scheduling": ("kube-scheduler",),
    "placement": ("placement-controller",),
}
"""The identities of a controller on our own server, by the name that `--only` takes."""
