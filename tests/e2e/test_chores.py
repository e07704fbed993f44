"""What controllers do in addition to the stories: putting right, clearing away, telling.

Each is a case of few lines. Together with the stories they use what the roles of `sully install`
grant; what is left over is named in unused.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import manifests
from e2e.beside import plane as controlled
from e2e.cluster import DRIVER, RESOURCE, Cluster, Obj, devices, pod, rule, template
from serving import STRATEGIC
from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.testing.cluster import Process

pytestmark = pytest.mark.e2e
HUB = "cluster.open-cluster-management.io"
RBAC = "rbac.authorization.k8s.io"
FLEET = ("--simulated-nodes", "1", "--devices-per-node", "2", "--simulated-clusters", "2")
QUICK = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0.2")
BRIEF = ("--store", "memory", "--history-retention", "1s")
FIRST = "member-cluster-0000"
AGENTS = f"open-cluster-management:managedcluster:{FIRST}"
PAST = "2020-01-01T00:00:00Z"
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def plane(where: str) -> Iterator[Process]:
    with controlled(where, *FLEET, *QUICK, *BRIEF) as up:
        yield up


@pytest.fixture
def cluster(plane: Process, any_kubectl: Path, home: Path) -> Iterator[Cluster]:
    made = Cluster(any_kubectl, plane.kubeconfig, home, f"chores-{next(_NUMBERS)}")
    made.create_namespace()
    yield made
    made.delete("devicetaintrules", "resourceslicepatches", f"namespace/{made.namespace}")


def workload(
    kind: str, name: str, replicas: int | None, image: str = "example.com/x:1", **more: Any
) -> Obj:
    """Return a set or deployment of pods that need no device."""
    spec = {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 0}
    if kind == "Deployment":
        more["revisionHistoryLimit"] = 0
    if replicas is not None:
        more["replicas"] = replicas
    return manifests.workload(kind, name, manifests.pod_template({"app": name}, spec), **more)


def test_old_sets_of_a_deployment_are_removed(cluster: Cluster) -> None:
    cluster.apply(workload("Deployment", "web", 1))
    cluster.rolled_out("web")
    (before,) = cluster.get("replicasets")["items"]

    cluster.apply(workload("Deployment", "web", 1, image="example.com/x:2"))

    cluster.removed("replicaset", before["metadata"]["name"])
    cluster.rolled_out("web")


def test_a_set_takes_what_fits_and_removes_what_is_too_much(cluster: Cluster) -> None:
    lone = pod("lone", "web", resourceClaimName="none")
    del lone["spec"]["resourceClaims"]
    cluster.apply(lone)
    cluster.apply(workload("ReplicaSet", "web", 1))
    cluster.shows("web", ".metadata.ownerReferences[*].name", "pod", "lone")
    cluster.shows("1", ".status.readyReplicas", "replicaset", "web")
    assert cluster.names("web") == ["lone"]

    cluster.scale("replicaset/web", 0)
    cluster.gone("lone")


def test_pods_are_left_alone_when_their_owner_is_deleted_without_them(cluster: Cluster) -> None:
    cluster.apply(workload("ReplicaSet", "web", 1))
    cluster.shows("1", ".status.readyReplicas", "replicaset", "web")
    (name,) = cluster.names("web")

    cluster.delete("replicaset/web", policy="Orphan")

    cluster.shows("<none>", ".metadata.ownerReferences", "pod", name)


SETS: dict[str, tuple[int | None, str, str, str]] = {
    "DaemonSet": (
        None,
        "Created pod: web-",
        ".status.numberReady",
        ".status.updatedNumberScheduled",
    ),
    "StatefulSet": (
        1,
        " in StatefulSet web successful",
        ".status.readyReplicas",
        ".status.updatedReplicas",
    ),
}
"""Sets with revisions: their replicas, the event of a new pod, and where they count pods that are
ready and updated."""


@pytest.mark.parametrize("kind", SETS)
def test_a_set_goes_back_to_a_revision_and_keeps_few(kind: str, cluster: Cluster) -> None:
    replicas, event, ready, updated = SETS[kind]
    cluster.apply(workload(kind, "web", replicas))
    cluster.shows("1", ready, kind, "web")
    cluster.event(event)
    (first,) = cluster.get("controllerrevisions")["items"]

    cluster.apply(workload(kind, "web", replicas, "example.com/x:2"))
    cluster.shows("2", ".status.observedGeneration", kind, "web")
    cluster.shows("1", updated, kind, "web")
    (second,) = (
        item for item in cluster.get("controllerrevisions")["items"] if item["revision"] == 2
    )
    cluster.apply(workload(kind, "web", replicas))
    cluster.shows("3", ".revision", "controllerrevision", first["metadata"]["name"])

    cluster.apply(workload(kind, "web", replicas, revisionHistoryLimit=0))
    cluster.removed("controllerrevision", second["metadata"]["name"])


def test_a_stateful_set_claims_a_volume_for_each_pod(cluster: Cluster) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"metadata": {"name": "data"}, "spec": spec}
    cluster.apply(workload("StatefulSet", "db", 1, volumeClaimTemplates=[volume]))

    cluster.created("persistentvolumeclaims", "data-db-0")


def test_a_finished_job_is_deleted_when_its_time_is_over(cluster: Cluster) -> None:
    job = workload("Job", "once", None)
    spec = {**job["spec"], "completions": 0, "ttlSecondsAfterFinished": 0}
    del spec["selector"]
    spec["template"]["spec"]["restartPolicy"] = "Never"
    cluster.apply({**job, "apiVersion": "batch/v1", "spec": spec})

    cluster.removed("job", "once")


def test_an_owner_in_another_namespace_is_reported(cluster: Cluster) -> None:
    uid = cluster.get("configmap", "kube-root-ca.crt", namespace="default")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": uid}
    metadata = {"name": "astray", "ownerReferences": [owner]}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})

    cluster.event("does not exist in namespace")


def test_the_published_certificate_comes_back(cluster: Cluster) -> None:
    cluster.created("configmaps", "kube-root-ca.crt")
    cluster.patch("configmap/kube-root-ca.crt", {"data": {"ca.crt": "forged"}})

    right = cluster.get("configmap", "kube-root-ca.crt", namespace="default")["data"]["ca.crt"]
    cluster.shows(right, r".data.ca\.crt", "configmaps", "kube-root-ca.crt")


def test_roles_are_gathered(cluster: Cluster) -> None:
    name = f"views-{cluster.namespace}"
    labels = {f"{RBAC}/aggregate-to-view": "true"}
    rules = [{"apiGroups": ["example.com"], "resources": [name], "verbs": ["get"]}]
    metadata = {"name": name, "labels": labels}
    cluster.apply(
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    )

    cluster.until(lambda role: rules[0] in role["rules"], "clusterrole", "view")

    cluster.delete(f"clusterrole/{name}")


def test_a_stale_announcement_of_a_disruption_is_taken_back(cluster: Cluster) -> None:
    cluster.apply(workload("ReplicaSet", "web", 1))
    cluster.shows("1", ".status.readyReplicas", "replicaset", "web")
    (name,) = cluster.names("web")
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": PAST}

    change = {"status": {"conditions": [target]}}
    cluster.patch(f"pod/{name}", change, media=STRATEGIC, subresource="status")

    cluster.wait("DisruptionTarget=false", f"pod/{name}")


def test_rules_and_patches_end_and_are_forgotten(cluster: Cluster) -> None:
    ended = {"annotations": {"sully.dev/expires-at": PAST}}
    brief = rule("brief", "None", pool="p")
    taints = [{"key": "example.com/hot", "effect": "None"}]
    patch = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": "brief"} | ended,
        "spec": {"devices": {"filter": {"driver": DRIVER}, "taints": taints}},
    }
    cluster.apply({**brief, "metadata": brief["metadata"] | ended}, patch)

    cluster.removed("devicetaintrule", "brief")
    cluster.removed("resourceslicepatch", "brief")
    for record in cluster.get("taintrecords")["items"]:
        cluster.removed("taintrecord", record["metadata"]["name"])


def test_an_eviction_is_forgotten(cluster: Cluster) -> None:
    expected = pod("lone", "lone", resourceClaimTemplateName="gpu")
    cluster.apply(template("gpu", devices()), expected)
    cluster.wait("Ready", "pod/lone")
    uid = cluster.get("pod", "lone")["metadata"]["uid"]

    cluster.apply(rule("sick", "NoExecute", driver=DRIVER))

    cluster.gone("lone")
    cluster.removed("evictionrecord", uid)


def test_an_expression_that_fails_is_reported(cluster: Cluster) -> None:
    wrong = 'device.attributes["example.com"].none == 1'
    selected = {"driver": DRIVER, "selectors": [{"cel": {"expression": wrong}}]}
    taints = [{"key": "example.com/hot", "effect": "None"}]
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1alpha3",
            "kind": "ResourceSlicePatch",
            "metadata": {"name": "wrong"},
            "spec": {"devices": {"filter": selected, "taints": taints}},
        }
    )

    Cluster(cluster.kubectl, cluster.kubeconfig, cluster.home).event("no such key")


def test_a_template_that_is_missing_is_reported(cluster: Cluster) -> None:
    cluster.apply(pod("waits", "waits", resourceClaimTemplateName="absent"))

    cluster.event("PodResourceClaim gpu: ")


def test_an_extended_resource_gets_its_claim(cluster: Cluster) -> None:
    name = f"example.com/{cluster.namespace}"
    cluster.apply(
        {
            "apiVersion": RESOURCE,
            "kind": "DeviceClass",
            "metadata": {"name": cluster.namespace},
            "spec": {
                "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
                "extendedResourceName": name,
            },
        }
    )
    expected = pod("old", "old", resourceClaimName="none")
    del expected["spec"]["resourceClaims"]
    expected["spec"]["containers"][0]["resources"] = {"limits": {name: "1"}}
    cluster.apply(expected)

    cluster.wait("Ready", "pod/old")

    (claim,) = cluster.get("resourceclaims")["items"]
    assert claim["status"]["reservedFor"][0]["name"] == "old"
    cluster.delete(f"deviceclass/{cluster.namespace}")


_NAMED = ".metadata.labels." + CLUSTER_NAME_LABEL.replace(".", r"\.")
TAMPERED = {
    "the label of a namespace": (
        ("namespace", FIRST),
        {"metadata": {"labels": {CLUSTER_NAME_LABEL: None}}},
        _NAMED,
        FIRST,
    ),
    "who has the role of an agent": (
        ("clusterrolebinding", AGENTS),
        {"subjects": []},
        ".subjects[*].name",
        f"system:open-cluster-management:{FIRST}",
    ),
    "who has it in a namespace": (
        ("rolebinding", f"{AGENTS}:registration"),
        {"subjects": []},
        ".subjects[*].name",
        f"system:open-cluster-management:{FIRST}",
    ),
    "what an agent may": (("clusterrole", AGENTS), {"rules": []}, ".rules[1].verbs[0]", "patch"),
    "a built-in set": (
        ("managedclusterset", "global"),
        {"spec": {"clusterSelector": {"labelSelector": {"matchLabels": {"a": "b"}}}}},
        ".spec.clusterSelector.labelSelector.matchLabels",
        "<none>",
    ),
    "the label of a lease": (
        ("lease", "managed-cluster-lease"),
        {"metadata": {"labels": None}},
        _NAMED,
        FIRST,
    ),
}


@pytest.mark.parametrize(
    ("what", "change", "path", "right"), TAMPERED.values(), ids=TAMPERED.keys()
)
def test_what_was_changed_on_a_hub_is_put_back(
    plane: Process,
    any_kubectl: Path,
    home: Path,
    what: tuple[str, str],
    change: Obj,
    path: str,
    right: str,
) -> None:
    hub = Cluster(any_kubectl, plane.kubeconfig, home, FIRST)
    hub.wait("ManagedClusterConditionAvailable", "mcl")

    hub.patch("/".join(what), change)

    hub.shows(right, path, *what)


def test_decisions_that_are_too_many_are_removed(cluster: Cluster) -> None:
    def place(size: int) -> None:
        strategy = {"clustersPerDecisionGroup": size, "decisionGroups": []}
        spec = {"decisionStrategy": {"groupStrategy": strategy}}
        cluster.apply(manifests.body("Placement", "web", spec))

    binding = {"apiVersion": f"{HUB}/v1beta2", "kind": "ManagedClusterSetBinding"}
    cluster.apply({**binding, "metadata": {"name": "global"}, "spec": {"clusterSet": "global"}})
    place(1)
    cluster.created("placementdecisions", "web-decision-2")

    place(2)

    cluster.removed("placementdecision", "web-decision-2")
