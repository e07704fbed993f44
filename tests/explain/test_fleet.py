"""Why placements have the clusters they have, and clusters the placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import manifests
from explain.situation import Situation
from explain.worlds import NAMESPACE, Obj, at, snapshot
from sully.api.cluster.taints.history import TAINT_HISTORY, TaintEntry, write_history
from sully.api.cluster.types import PLACEMENT_LABEL, SET_LABEL
from sully.client.transport import Key
from sully.explain.questions import explain_selection
from sully.explain.reader import Reader
from sully.testing.clock import NOON

GROUP = "cluster.open-cluster-management.io"
UNREACHABLE = f"{GROUP}/unreachable"
FLEET: tuple[Obj, ...] = (
    manifests.body("ManagedClusterSet", "fleet"),
    manifests.body(
        "ManagedClusterSetBinding", "fleet", {"clusterSet": "fleet"}, namespace=NAMESPACE
    ),
)


def taint(key: str = "maintenance", effect: str = "NoSelect", **more: Any) -> Obj:
    return {"key": key, "effect": effect, "timeAdded": at(0)} | more


def condition(kind: str, status: str, reason: str = "R", message: str = "") -> Obj:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(0),
    }


AVAILABLE = condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable")
UNREACHABLE_CLUSTER = condition(
    "ManagedClusterConditionAvailable",
    "Unknown",
    "ManagedClusterLeaseUpdateStopped",
    "Registration agent stopped updating its lease.",
)
DOWN = condition(
    "ManagedClusterConditionAvailable", "False", "ManagedClusterKubeAPIServerUnavailable"
)
ACCEPTED = condition("HubAcceptedManagedCluster", "True")


def cluster(
    name: str,
    *taints: Obj,
    conditions: Iterable[Obj] = (ACCEPTED, AVAILABLE),
    labels: Mapping[str, str] | None = None,
    member: bool = True,
    **metadata: Any,
) -> Obj:
    labels = {**({SET_LABEL: "fleet"} if member else {}), **(labels or {})}
    made = manifests.cluster(name, *taints, accepted=True, labels=labels, **metadata)
    return made | {"status": {"conditions": list(conditions)}}


def placement(*, annotations: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    metadata = {"namespace": NAMESPACE, "annotations": {**(annotations or {})}}
    return manifests.body("Placement", "p", spec, **metadata)


def decision(*names: str) -> Obj:
    status = {"decisions": [{"clusterName": name, "reason": ""} for name in names]}
    labels = {PLACEMENT_LABEL: "p"}
    return manifests.body(
        "PlacementDecision", "p-decision-1", status=status, namespace=NAMESPACE, labels=labels
    )


def predicate(**labels: str) -> Obj:
    return {"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}


def selecting(**parts: Any) -> Obj:
    return {"requiredClusterSelector": parts}


IN_EU: Obj = {"key": "region", "operator": "In", "values": ["eu"]}


def by_score(kind: str, **coordinate: Any) -> Obj:
    """Return a policy with one score."""
    score = {"scoreCoordinate": {"type": kind} | coordinate, "weight": 1}
    return {"mode": "Exact", "configurations": [score]}


def with_conditions(made: Obj, *conditions: Obj) -> Obj:
    return made | {"status": {"conditions": list(conditions)}}


def terminating(made: Obj) -> Obj:
    metadata = {"deletionTimestamp": at(0), "finalizers": ["x/y"]}
    return made | {"metadata": made["metadata"] | metadata}


def tolerates(key: str = "maintenance", **more: Any) -> Obj:
    return {"key": key, "operator": "Exists"} | more


_DISK_FULL: Obj = {
    "condition": {"type": "DiskFull", "status": "True"},
    "taint": {"key": "disk-full", "effect": "NoSelect"},
}
POLICY = manifests.body(
    "ClusterTaintPolicy", "disk", {"clusterSelector": {}, "rules": [_DISK_FULL]}
)
FULL = cluster(
    "a",
    taint("disk-full"),
    conditions=(ACCEPTED, AVAILABLE, condition("DiskFull", "True", message="97 % used")),
    annotations={"sully.dev/policy-taints": "disk-full:NoSelect"},
)


def about_placement(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="placement", name="p", objects=objects, state=state, cause=cause, **more)


def about_cluster(state: str, cause: str, *objects: Obj, **more: Any) -> Situation:
    return Situation(kind="cluster", name="a", objects=objects, state=state, cause=cause, **more)


PLACEMENTS = {
    "all that fit": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a"),
        cluster("b"),
        placement(),
        decision("a", "b"),
        contains=(
            "Placement team/p requests all clusters that fit and gets 2 of the 2 in its sets",
        ),
        helps=None,
    ),
    "as many as it wants": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a"),
        cluster("b"),
        placement(numberOfClusters=1),
        decision("a"),
        contains=("1 cluster (b) is left out because others score higher",),
    ),
    "a taint advises against one": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a", taint(effect="PreferNoSelect")),
        cluster("b"),
        placement(numberOfClusters=1),
        decision("b"),
        contains=("1 cluster (a) is left out because of a PreferNoSelect taint.",),
    ),
    "scores of an add-on have run out": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a"),
        placement(
            prioritizerPolicy=by_score("AddOn", addOn={"resourceName": "x", "scoreName": "y"})
        ),
        decision("a"),
        {
            "kind": "AddOnPlacementScore",
            "metadata": {"name": "x", "namespace": "a"},
            "status": {"validUntil": at(-60), "scores": [{"name": "y", "value": 50}]},
        },
        contains=("AddOnPlacementScores a/x expired.",),
    ),
    "clusters stay only for the removal budget": about_placement(
        "Satisfied",
        "HeldByBudget",
        *FLEET,
        cluster("a", taint(UNREACHABLE), conditions=(ACCEPTED, UNREACHABLE_CLUSTER)),
        with_conditions(
            placement(),
            condition(
                "sully.dev/RemovalsDelayed", "True", "RemovalBudget", "Waiting for the budget: a"
            ),
        ),
        decision("a"),
        after=60,
        first="Placement team/p requests all clusters that fit and keeps 1 cluster, some of which"
        " are selected only because of the removal budget of the hub"
        " since 2030-01-01T12:00:00Z (60s"
        " ago).",
        contains=(
            "Waiting for the budget: a.",
            "1 cluster (a) is not selected: taint"
            " cluster.open-cluster-management.io/unreachable:NoSelect"
            " is not tolerated.",
        ),
        because=("ManagedCluster/a",),
        helps="They stay selected if they recover before it is their turn.",
    ),
    "the decisions lag": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a"),
        placement(),
        contains=("Its decisions do not reflect this yet; they name none.",),
    ),
    "no binding": about_placement(
        "Empty",
        "NoManagedClusterSetBindings",
        FLEET[0],
        cluster("a"),
        placement(),
        contains=(
            "Placement team/p gets no cluster: no existing ManagedClusterSet is bound to"
            " namespace team.",
        ),
        helps="Create a ManagedClusterSetBinding in team",
    ),
    "a binding without its set": about_placement(
        "Empty", "NoManagedClusterSetBindings", FLEET[1], cluster("a"), placement()
    ),
    "another set is bound": about_placement(
        "Empty",
        "NoIntersection",
        *FLEET,
        cluster("a"),
        placement(clusterSets=["edge"]),
        contains=("it requests set edge, and only fleet is bound to namespace team",),
        helps="Bind the set to team",
    ),
    "the set is empty": about_placement(
        "Empty",
        "AllManagedClusterSetsEmpty",
        *FLEET,
        cluster("a", member=False),
        placement(),
        because=("ManagedClusterSet/fleet",),
    ),
    "all members are terminating": about_placement(
        "Empty",
        "AllManagedClusterSetsEmpty",
        *FLEET,
        cluster("a", deletionTimestamp=at(0), finalizers=["x/y"]),
        placement(),
        because=("ManagedClusterSet/fleet",),
    ),
    "the set is broken": about_placement(
        "Blocked",
        "ClusterSetInvalid",
        {
            "kind": "ManagedClusterSet",
            "metadata": {"name": "fleet"},
            "spec": {"clusterSelector": {"selectorType": "Guess"}},
        },
        FLEET[1],
        placement(),
        contains=("ManagedClusterSet fleet: selectorType is not right: Guess",),
        helps="Correct the selector of the set",
    ),
    "no predicate matches": about_placement(
        "Empty",
        "PredicatesDoNotMatch",
        *FLEET,
        cluster("a", labels={"env": "dev"}),
        placement(predicates=[predicate(env="prod")]),
        first="gets 0 of the 1 in its sets: its predicates do not match 1 cluster.",
        contains=("1 cluster (a) is not matched: labels env=prod",),
        helps="Widen the predicates, or label clusters so that they match.",
    ),
    "no cluster claim matches": about_placement(
        "Empty",
        "PredicatesDoNotMatch",
        *FLEET,
        cluster("a"),
        placement(predicates=[selecting(claimSelector={"matchExpressions": [IN_EU]})]),
        contains=("1 cluster (a) is not matched: claims region in (eu)",),
        helps="have clusters report such claims",
    ),
    "an expression fails": about_placement(
        "Empty",
        "PredicatesDoNotMatch",
        *FLEET,
        cluster("a"),
        placement(
            predicates=[
                selecting(
                    celSelector={
                        "celExpressions": ["managedCluster.status.version.kubernetes > ''"]
                    }
                )
            ]
        ),
        contains=("which fails: no such key: kubernetes",),
        helps="what the expression requires",
    ),
    "no expression matches": about_placement(
        "Empty",
        "PredicatesDoNotMatch",
        *FLEET,
        cluster("a"),
        placement(
            predicates=[
                {
                    "requiredClusterSelector": {
                        "celSelector": {
                            "celExpressions": ['managedCluster.metadata.name == "b"'],
                        }
                    }
                }
            ]
        ),
        contains=('expression managedCluster.metadata.name == "b"',),
    ),
    "taints keep all out": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint()),
        placement(),
        first="gets 0 of the 1 in its sets: taint maintenance:NoSelect prevents selection of"
        " 1 cluster.",
        contains=(
            "1 cluster (a) is not selected: taint maintenance:NoSelect is not tolerated.",
            "On a: taint maintenance:NoSelect, added 2030-01-01T12:00:00Z (0s ago).",
        ),
        because=("ManagedCluster/a",),
        helps="Tolerate maintenance:NoSelect, or have the taint removed. The placement would"
        " then get 1",
    ),
    "two taints, and both must be tolerated": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint(), taint("disk")),
        placement(),
        because=("ManagedCluster/a",),
        helps="Tolerate disk:NoSelect and maintenance:NoSelect, or have the taints removed.",
    ),
    "of two tainted clusters one is enough": about_placement(
        "Unsatisfied",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint()),
        cluster("b", taint("disk")),
        cluster("c"),
        placement(numberOfClusters=2),
        decision("c"),
        because=("ManagedCluster/a", "ManagedCluster/b"),
        helps="Tolerate disk:NoSelect, or have the taint removed. The placement would then"
        " get 2 clusters.",
    ),
    "neither matched nor tolerated": about_placement(
        "Empty",
        "PredicatesDoNotMatch",
        *FLEET,
        cluster("a", taint(), labels={"env": "dev"}),
        placement(predicates=[predicate(env="prod")]),
        helps="Tolerate maintenance:NoSelect, or have the taint removed. Also widen the"
        " predicates, or"
        " label clusters so that they match. The placement would then get 1 cluster.",
    ),
    "tolerating is not enough, nor is anything": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint()),
        placement(numberOfClusters=3),
        because=("ManagedCluster/a",),
        helps="The placement would then get 1 cluster.\nRequest at most 1 cluster, or add some",
    ),
    "the hub keeps it out for its health": about_placement(
        "Unsatisfied",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint(UNREACHABLE), conditions=(ACCEPTED, UNREACHABLE_CLUSTER)),
        cluster("b"),
        placement(numberOfClusters=2),
        decision("b"),
        first=f"taint {UNREACHABLE}:NoSelect, added by the hub, prevents selection of 1 cluster.",
        contains=(
            "by the hub because its condition ManagedClusterConditionAvailable is Unknown.",
            "On a: ManagedClusterConditionAvailable is Unknown since 2030-01-01T12:00:00Z (0s ago):"
            " Registration agent stopped updating its lease.",
        ),
        because=("ManagedCluster/a",),
        helps=f"Tolerate {UNREACHABLE}:NoSelect",
    ),
    "a policy keeps it out": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        POLICY,
        FULL,
        placement(),
        first="taint disk-full:NoSelect, added by policy disk, prevents selection of 1 cluster.",
        contains=("by policy disk because its condition DiskFull is True",),
        because=("ClusterTaintPolicy/disk",),
    ),
    "the toleration is over": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint()),
        placement(tolerations=[tolerates(tolerationSeconds=60)]),
        after=90,
        contains=("was tolerated until 2030-01-01T12:01:00Z",),
        because=("ManagedCluster/a",),
    ),
    "the toleration has no time to count from": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", {"key": "maintenance", "effect": "NoSelect"}),
        placement(tolerations=[tolerates(tolerationSeconds=0)]),
        contains=("has no timeAdded from which a toleration for some time could count",),
        because=("ManagedCluster/a",),
    ),
    "the toleration is of another value": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint(value="1")),
        placement(tolerations=[tolerates(operator="Equal", value="2")]),
        contains=("the nearest toleration differs in its value",),
        because=("ManagedCluster/a",),
    ),
    "the toleration is of another key": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint()),
        placement(tolerations=[tolerates("other")]),
        contains=("the nearest toleration differs in its key",),
        because=("ManagedCluster/a",),
    ),
    "the operator of the toleration means nothing": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint()),
        placement(tolerations=[tolerates(operator="Like")]),
        contains=("the nearest toleration differs in its operator",),
        because=("ManagedCluster/a",),
    ),
    "the toleration is of another effect": about_placement(
        "Empty",
        "ClustersTainted",
        *FLEET,
        cluster("a", taint(effect="NoSelectIfNew")),
        placement(tolerations=[tolerates(effect="NoSelect")]),
        contains=("the nearest toleration differs in its effect",),
        because=("ManagedCluster/a",),
    ),
    "who had it before keeps it": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a", taint(effect="NoSelectIfNew")),
        placement(),
        decision("a"),
    ),
    "currently tolerated": about_placement(
        "Satisfied",
        "AllDecisionsScheduled",
        *FLEET,
        cluster("a", taint()),
        placement(tolerations=[tolerates(tolerationSeconds=300)]),
        decision("a"),
        contains=("a is tolerated until 2030-01-01T12:05:00Z (in 5m)",),
    ),
    "too few clusters": about_placement(
        "Unsatisfied",
        "NotEnoughClusters",
        *FLEET,
        cluster("a"),
        placement(numberOfClusters=3),
        decision("a"),
        first="requests 3 clusters and gets 1 of the 1 in its sets: there are no more.",
        helps="Request at most 1 cluster, or add some to the sets.",
    ),
    "none wanted": about_placement(
        "Empty",
        "NoClustersRequested",
        *FLEET,
        cluster("a"),
        placement(numberOfClusters=-1),
        first="gets no cluster: its numberOfClusters is -1, not above 0.",
        helps="Raise numberOfClusters",
    ),
    "being deleted": about_placement(
        "Deleting",
        "Deleted",
        *FLEET,
        cluster("a"),
        terminating(placement()),
        first="is being deleted since 2030-01-01T12:00:00Z",
    ),
    "a value where none may be": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(tolerations=[tolerates(value="x")]),
        first="(TaintToleration): If the operator is Exists, the value should be empty.",
        helps="Correct what the message names",
    ),
    "a label selector that means nothing": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(
            predicates=[
                selecting(labelSelector={"matchExpressions": [{"key": "a", "operator": "Like"}]})
            ]
        ),
        first='(Predicate): "Like" is not a valid label selector operator.',
    ),
    "a mode of scores that is unknown": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(prioritizerPolicy={"mode": "Guess"}),
        first="cannot be evaluated: incorrect prioritizer policy mode: Guess.",
    ),
    "a prioritizer that is unknown": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(prioritizerPolicy=by_score("BuiltIn", builtIn="Spread")),
        first="incorrect builtin prioritizer: Spread.",
    ),
    "an add-on score without a name": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(prioritizerPolicy=by_score("AddOn")),
        first="addOn should not be empty.",
    ),
    "groups of no size": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": "some"}}),
        first="some invalid type: string is not a percentage.",
    ),
    "a score without anything to score by": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(prioritizerPolicy={"configurations": [{"weight": 1}]}),
        first="scoreCoordinate field is required.",
    ),
    "a group whose selector means nothing": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(
            decisionStrategy={
                "groupStrategy": {
                    "decisionGroups": [
                        {
                            "groupName": "g",
                            "groupClusterSelector": {
                                "labelSelector": {
                                    "matchExpressions": [{"key": "x", "operator": "Near"}]
                                }
                            },
                        }
                    ]
                }
            }
        ),
        first='"Near" is not a valid label selector operator',
    ),
    "a toleration that makes no sense": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(tolerations=[{"operator": "Equal", "value": "x"}]),
        contains=("(TaintToleration): If the key is empty, operator must be Exists.",),
        helps="Correct what the message names",
    ),
    "an expression that does not compile": about_placement(
        "Misconfigured",
        "Misconfigured",
        *FLEET,
        cluster("a"),
        placement(
            predicates=[{"requiredClusterSelector": {"celSelector": {"celExpressions": ["1 +"]}}}]
        ),
        decision("a"),
        contains=("compilation failed", "It keeps 1 cluster meanwhile."),
    ),
    "left alone": about_placement(
        "Disabled",
        "SchedulingDisabled",
        *FLEET,
        cluster("a"),
        placement(annotations={f"{GROUP}/experimental-scheduling-disable": "true"}),
        decision("a"),
        contains=("keeps 1 cluster",),
        helps="Remove the annotation",
    ),
}

CLUSTERS = {
    "nothing is wrong": about_cluster(
        "Available",
        "NotTainted",
        *FLEET,
        cluster("a"),
        placement(),
        contains=(
            "Cluster a has been available since 2030-01-01T12:00:00Z (0s ago), in set fleet.",
            "1 placement selects it: team/p.",
        ),
    ),
    "a person tainted it": about_cluster(
        "Tainted",
        "TaintNotTolerated",
        *FLEET,
        cluster(
            "a",
            taint(),
            managedFields=[
                {"manager": "kubectl-edit", "fieldsV1": {"f:spec": {"f:taints": {}}}},
            ],
        ),
        placement(),
        decision("a"),
        contains=(
            "Cluster a has been available since 2030-01-01T12:00:00Z (0s ago), in set fleet,"
            " but taint maintenance:NoSelect, added with kubectl-edit, prevents selection by"
            " placement team/p.",
            "It has taint maintenance:NoSelect, added 2030-01-01T12:00:00Z (0s ago) with"
            " kubectl-edit.",
            "1 placement does not select it because of a taint, 1 of them had it: team/p.",
        ),
        because=("ManagedCluster/a",),
        helps="For placement team/p: tolerate maintenance:NoSelect, or have the taint"
        " removed. Cluster a"
        " would then be selected.",
    ),
    "a person tainted it, with a reason and for some time": about_cluster(
        "Tainted",
        "TaintNotTolerated",
        *FLEET,
        cluster(
            "a",
            taint(),
            annotations={
                TAINT_HISTORY: write_history(
                    [
                        TaintEntry(
                            time=NOON,
                            event="tainted",
                            key="maintenance",
                            effect="NoSelect",
                            by="alice",
                            reason="network work",
                            expires_at="2030-01-01T14:00:00Z",
                        )
                    ]
                )
            },
            # Who filled in the time of the taint.
            managedFields=[
                {"manager": "taint-controller", "fieldsV1": {"f:spec": {"f:taints": {}}}},
            ],
        ),
        placement(),
        decision("a"),
        contains=(
            "It has taint maintenance:NoSelect, added 2030-01-01T12:00:00Z (0s ago) by alice,"
            ' reason "network work", until 2030-01-01T14:00:00Z',
        ),
        omits=("taint-controller",),
        because=("ManagedCluster/a",),
    ),
    "a policy tainted it": about_cluster(
        "Tainted",
        "TaintNotTolerated",
        *FLEET,
        POLICY,
        FULL,
        placement(),
        contains=(
            "by policy disk because its condition DiskFull is True",
            "Its DiskFull is True since 2030-01-01T12:00:00Z (0s ago): 97 % used.",
        ),
        because=("ClusterTaintPolicy/disk",),
    ),
    "a policy that is gone tainted it": about_cluster(
        "Tainted",
        "TaintNotTolerated",
        *FLEET,
        FULL,
        placement(),
        contains=(
            "Cluster a has been available since 2030-01-01T12:00:00Z (0s ago), in set fleet,"
            " but taint disk-full:NoSelect, added by a policy that was deleted or changed,"
            " prevents selection by placement team/p.",
        ),
        because=("ManagedCluster/a",),
    ),
    "tainted and currently tolerated": about_cluster(
        "Tainted",
        "TaintsTolerated",
        *FLEET,
        cluster("a", taint()),
        placement(tolerations=[tolerates(tolerationSeconds=300)]),
        contains=(
            "Placement team/p loses it at 2030-01-01T12:05:00Z (in 5m), when the toleration ends.",
        ),
        because=("ManagedCluster/a",),
    ),
    "tainted, and nobody looks": about_cluster(
        "Tainted",
        "NoPlacement",
        *FLEET,
        cluster("a", taint()),
        first="in set fleet, but no placement may use that set.",
        because=("ManagedCluster/a",),
    ),
    "no placement may use its set": about_cluster(
        "Available",
        "NoPlacement",
        FLEET[0],
        cluster("a"),
        placement(),
        first="no placement may use",
    ),
    "no predicate matches it": about_cluster(
        "Available",
        "NotSelected",
        *FLEET,
        cluster("a"),
        placement(predicates=[predicate(env="prod")]),
        first="Cluster a has been available since 2030-01-01T12:00:00Z (0s ago), in set fleet,"
        " but is not selected by placement team/p.",
        contains=("team/p: no predicate matches: predicate 0: labels (env=prod).",),
    ),
    "in another set than the placement that had it": about_cluster(
        "Available",
        "NotSelected",
        *FLEET,
        {"kind": "ManagedClusterSet", "metadata": {"name": "edge"}},
        cluster("a", labels={f"{GROUP}/clusterset": "edge"}),
        placement(),
        decision("a"),
        contains=("team/p: the cluster is in no set that the placement may use.",),
        helps="For placement team/p: add cluster a to set fleet.",
    ),
    "others score higher": about_cluster(
        "Available",
        "NotSelected",
        *FLEET,
        cluster("a"),
        cluster("b"),
        placement(numberOfClusters=1),
        decision("b"),
        contains=("team/p: rank 2 with 100, and 1 is requested.",),
    ),
    "unreachable": about_cluster(
        "Unreachable",
        "ManagedClusterLeaseUpdateStopped",
        *FLEET,
        cluster("a", taint(UNREACHABLE), conditions=(ACCEPTED, UNREACHABLE_CLUSTER)),
        placement(),
        contains=(
            "Cluster a has been unreachable since 2030-01-01T12:00:00Z (0s ago): Registration"
            " agent stopped updating its lease.",
            "by the hub because",
        ),
        because=("ManagedCluster/a",),
        helps="It recovers when its agent updates its status again; renewing its lease is not"
        " enough.",
    ),
    "its API server is down": about_cluster(
        "Unavailable",
        "ManagedClusterKubeAPIServerUnavailable",
        *FLEET,
        cluster(
            "a",
            conditions=(
                ACCEPTED,
                condition(
                    "ManagedClusterConditionAvailable",
                    "False",
                    "ManagedClusterKubeAPIServerUnavailable",
                    "status code: 500",
                ),
            ),
        ),
        contains=(
            "Cluster a has not been available since 2030-01-01T12:00:00Z (0s ago): status"
            " code: 500.",
        ),
    ),
    "never accepted": about_cluster(
        "Unreachable",
        "NotAccepted",
        *FLEET,
        cluster("a", conditions=()) | {"spec": {}},
        contains=("the hub has not accepted it",),
        helps="hubAcceptsClient",
    ),
    "denied": about_cluster(
        "Unreachable",
        "Denied",
        *FLEET,
        cluster(
            "a",
            conditions=(
                condition(
                    "HubAcceptedManagedCluster", "False", message="Denied by hub cluster admin"
                ),
            ),
        ),
        contains=("Denied by hub cluster admin.",),
    ),
    "accepted, and the hub fails to give it what it needs": about_cluster(
        "Unreachable",
        "AcceptanceFailed",
        *FLEET,
        cluster("a", conditions=(condition("HubAcceptedManagedCluster", "False", "Error", "no"),)),
        first="Cluster a cannot be accepted by the hub since 2030-01-01T12:00:00Z (0s ago): no.",
    ),
    "not available, and nobody reports why": about_cluster(
        "Unavailable",
        "ManagedClusterKubeAPIServerUnavailable",
        *FLEET,
        cluster("a", conditions=(ACCEPTED, DOWN)),
        first="Cluster a has not been available since 2030-01-01T12:00:00Z (0s ago):"
        " ManagedClusterKubeAPIServerUnavailable.",
    ),
    "a taint with a key of the hub that the hub does not set": about_cluster(
        "Tainted",
        "TaintNotTolerated",
        *FLEET,
        cluster("a", taint(UNREACHABLE, value="by-hand")),
        placement(),
        contains=(
            "It has taint cluster.open-cluster-management.io/unreachable=by-hand:NoSelect,"
            " added 2030-01-01T12:00:00Z (0s ago).",
        ),
        omits=("the hub",),
        because=("ManagedCluster/a",),
        helps=f"tolerate {UNREACHABLE}=by-hand:NoSelect, or have the taint removed. Cluster"
        " a would",
    ),
    "never joined": about_cluster(
        "Unreachable", "NeverAvailable", *FLEET, cluster("a", conditions=(ACCEPTED,))
    ),
    "in no set": about_cluster(
        "Unassigned",
        "NoClusterSet",
        *FLEET,
        cluster("a", member=False),
        contains=("in no ManagedClusterSet",),
        helps="clusterset",
    ),
    "being deleted": about_cluster(
        "Deleting", "Deleted", *FLEET, cluster("a", deletionTimestamp=at(0), finalizers=["x/y"])
    ),
    "its clock is off": about_cluster(
        "Available",
        "NotTainted",
        *FLEET,
        cluster(
            "a",
            conditions=(
                ACCEPTED,
                AVAILABLE,
                condition("ManagedClusterConditionClockSynced", "False"),
            ),
        ),
        placement(),
        contains=(
            "Its clock is out of sync since 2030-01-01T12:00:00Z (0s ago): its agent is ignored.",
        ),
    ),
}

SITUATIONS = {
    f"{subject}: {name}": entry
    for subject, table in (("placement", PLACEMENTS), ("cluster", CLUSTERS))
    for name, entry in table.items()
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()


@pytest.mark.parametrize(
    ("about", "text", "helps"),
    [
        ("a", "Cluster a: selected, rank 1 with 100.", None),
        (
            "b",
            "Cluster b: no predicate matches: predicate 0: labels (env=prod).",
            "Widen the predicates, or label cluster b so that it matches. Also request 2 clusters."
            " Cluster b would then be selected.",
        ),
        (
            "c",
            "Cluster c: taint maintenance:NoSelect is not tolerated.",
            "Tolerate maintenance:NoSelect and disk:NoSelect, or have the taints removed."
            " Also request 2"
            " clusters. Cluster c would then be selected.",
        ),
        (
            "out",
            "Cluster out: the cluster is in no set that the placement may use.",
            "Add cluster out to set fleet.",
        ),
        ("x", "Cluster x: there is no such cluster.", None),
    ],
)
def test_one_cluster_of_a_placement(about: str, text: str, helps: str | None) -> None:
    objects = (
        *FLEET,
        cluster("a", labels={"env": "prod"}),
        cluster("b"),
        cluster("c", taint(), taint("disk"), labels={"env": "prod"}),
        cluster("out", member=False),
        placement(predicates=[predicate(env="prod")], numberOfClusters=1),
    )
    selection = explain_selection(Reader(snapshot(objects)), Key(NAMESPACE, "p"), about)

    assert selection is not None
    assert text in selection.summary
    assert selection.remedies == ((helps,) if helps is not None else ())


def test_a_hub_without_our_kinds_places_as_kubernetes() -> None:
    objects = (*FLEET, cluster("a"), placement(tolerations=[{"operator": "Equal", "value": "x"}]))
    with_decision = (*objects, decision("a"))

    ours = explain_selection(Reader(snapshot(with_decision)), Key(NAMESPACE, "p"), "")
    foreign = explain_selection(
        Reader(snapshot(with_decision, missing=["ClusterTaintPolicy"])), Key(NAMESPACE, "p"), ""
    )

    assert ours is not None
    assert foreign is not None
    assert "It keeps 1 cluster meanwhile." in ours.summary
    assert "It gets no cluster." in foreign.summary
