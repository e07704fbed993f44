"""What `--compat reference` changes: one named decision for each difference from Kubernetes.

Code that decides otherwise than Kubernetes 1.37 or Open Cluster Management asks the decision by its
name, never which mode it runs in. `docs/compatibility.md` describes what each means to users.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


# Compared by identity: there are two of them, and options that hold one are keys of caches.
class Compat(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The decisions: true is what Sully does, false is what Kubernetes does."""

    SULLY: ClassVar[Compat]
    KUBERNETES: ClassVar[Compat]

    # API server

    client_errors_are_400: bool = True
    """Client errors that Kubernetes answers with 500 get 400 and the same text."""
    honors_dry_run_of_url: bool = True
    """A deletion with `dryRun=All` in its URL deletes nothing, also if it has a body."""
    serves_sully_kinds: bool = True
    """The kinds, versions and fields that Sully adds are served."""
    hides_refused_subresources: bool = True
    """Subresources that need running containers are not in the discovery documents."""
    enables_sully_gates: bool = True
    """The feature gates that Sully adds have their own defaults. Otherwise they are off."""
    rejects_anonymous: bool = True
    """Anonymous requests get 401 unless `--anonymous-auth` is set."""
    limits_token_lifetime: bool = True
    """A service account token is valid for a year at most."""
    names_each_controller: bool = True
    """Each controller is its own field manager. In Kubernetes all are kube-controller-manager."""
    publishes_root_ca: bool = True
    """Each namespace gets the ConfigMap kube-root-ca.crt. The recordings were made without it."""
    enforces_quota_immediately: bool = True
    """A quota limits before its controller has written the status."""
    accepts_unknown_runtime_classes: bool = True
    """A pod may name a RuntimeClass that is not served."""
    limits_tolerations: bool = True
    """A device request has at most 16 tolerations, as documented."""
    rejects_equal_without_key: bool = True
    """A device toleration without a key must have the operator Exists, as documented."""
    rejects_double_slashes: bool = True
    """Names of attributes and capacities have at most one slash."""
    names_fields_under_basic: bool = True
    """Every error about a device of v1beta1 names its field under `basic`."""
    warns_of_reserved_taint_keys: bool = True
    """Taint keys under kubernetes.io/ get a warning."""
    records_creator: bool = True
    """Rules and patches get the annotation sully.dev/created-by, patches sully.dev/created-at."""
    records_allocated_attributes: bool = True
    """Claims get the annotation sully.dev/allocated-attributes, which only schedulers may write."""
    protects_with_allocation: bool = True
    """A write that allocates a claim can add its finalizer and the record of its devices."""
    validates_annotations: bool = True
    """The annotations of Sully on rules and patches are validated."""
    rejects_devices_in_use: bool = True
    """An allocation with a device that another claim holds is rejected."""
    enforces_pool_owners: bool = True
    """Slices of a node count only in pools of that node."""
    counts_devices_once: bool = True
    """An allocated device is not also unavailable in the status of its pool, as documented."""

    allows_privileged: bool = True
    """Containers may be privileged; by default Kubernetes forbids that (`--allow-privileged`)."""

    # Eviction

    tolerates_every_effect: bool = True
    """A toleration without an effect prevents eviction, as documented."""
    ignores_finished_pods: bool = True
    """Finished and terminating pods are neither evicted nor counted."""
    evicts_extended_resources: bool = True
    """Pods that got their devices through extended resources are evicted."""
    deallocates_tainted_claims: bool = True
    """An allocated claim that no pod uses loses devices from which its pods would be evicted."""
    limits_evictions: bool = True
    """Rates, pauses, budgets and expiry apply where their feature gates are on."""
    records_evictions: bool = True
    """Evictions are recorded as EvictionRecords."""
    evicts_in_one_transaction: bool = True
    """The record, the condition and the deletion of a pod are one write in `sully up`."""
    reports_on_rules: bool = True
    """Rules get the conditions of Sully, and their status follows within a second."""
    reports_on_patches: bool = True
    """ResourceSlicePatches get a status."""

    # Scheduling

    rules_need_selector: bool = True
    """A rule without a selector selects no device, as documented."""
    checks_allocated_claims: bool = True
    """A pod is not scheduled to an allocated device from which it would be evicted immediately."""
    honors_toleration_seconds: bool = True
    """A toleration whose seconds have passed does not allow scheduling."""
    stops_at_best_node: bool = True
    """Nodes after the best possible one are not evaluated."""
    prefers_least_loaded_node: bool = True
    """Of the nodes that fit equally well, a pod gets the one with the least in use."""
    keeps_shared_devices: bool = True
    """A device that is no longer shareable is not allocated while claims share it."""
    admin_access_is_free: bool = True
    """Admin access consumes neither counters nor capacity."""
    explains_pending_pods: bool = True
    """Pods without devices get the condition sully.dev/DeviceDiagnosis."""
    explains_cost_budget: bool = True
    """The status of a pod whose selectors exceed the cost budget has that reason."""
    reports_failed_scheduling_on_change: bool = True
    """FailedScheduling is reported when its message changes, not on each attempt."""

    # Clusters

    keeps_taint_times: bool = True
    """The server keeps `timeAdded` of cluster taints instead of rejecting other values."""
    keeps_health_clock: bool = True
    """A health taint that replaces the other one keeps its time."""
    keeps_due_taints: bool = True
    """Cluster taints that health or a policy requires survive a write that leaves them out."""
    restricts_cluster_agents: bool = True
    """Agents cannot change the taints, labels and finalizers of their cluster."""
    protects_foreign_namespaces: bool = True
    """A cluster is not accepted while its namespace belongs to something else."""
    waits_after_outages: bool = True
    """A lease expires only after its agent had time to renew it since the server is available."""

    # Placement

    warns_about_placements: bool = True
    """Placements and sets that cannot be evaluated get a warning."""
    allows_placement_limits: bool = True
    """Flags set default tolerations for health taints and a budget of removals."""
    honors_prefer_no_select: bool = True
    """Clusters without an untolerated PreferNoSelect taint come first."""
    prefers_lasting_clusters: bool = True
    """Clusters with a taint that is tolerated for some time are selected last."""
    ignores_seconds_if_new: bool = True
    """`tolerationSeconds` are ignored with the effect NoSelectIfNew, as documented."""
    keeps_clusters_on_error: bool = True
    """A placement that cannot be evaluated keeps its clusters."""
    tolerates_taints_without_time: bool = True
    """A taint without `timeAdded` counts as just added. In OCM its tolerationSeconds are over."""
    exact_toleration_seconds: bool = True
    """More than 9223372036 tolerated seconds are a long time. OCM overflows."""
    accepts_quoted_group_size: bool = True
    """A group size such as `"5"` is a number: OCM's schema allows it, its scheduler does not."""
    merges_built_in_prioritizers: bool = True
    """A built-in prioritizer with a stray `addOn` replaces the default weight."""
    requeues_on_scores: bool = True
    """A placement is requeued when an add-on score expires or is read by an expression."""
    reports_failed_decisions: bool = True
    """PlacementSatisfied reports which decision could not be written. OCM reports success."""
    reports_long_names: bool = True
    """A placement whose name exceeds 63 characters is misconfigured. OCM reports nothing."""
    extends_placement_debug: bool = True
    """/debug/placements/ also has reasons, and simulates changes."""

    @classmethod
    def named(cls, flag: str) -> Compat:
        """Return the Compat of a value of `--compat`."""
        return cls.KUBERNETES if flag == "reference" else cls.SULLY


Compat.SULLY = Compat()
Compat.KUBERNETES = Compat(**dict.fromkeys(Compat.__struct_fields__, False))
