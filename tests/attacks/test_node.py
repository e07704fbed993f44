"""A compromised node: a user with the key of one kubelet, who wants what other nodes have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import manifests
from hostile.target import Answer, Caller, Target, eventually
from manifests import claim, gpus, slice_
from robust.programs import sully

pytestmark = pytest.mark.slow

Obj = dict[str, Any]
PODS = "/api/v1/namespaces/kube-system/pods"
SECRET = "/api/v1/namespaces/kube-system/secrets/root-cred"
MIRROR = "kubernetes.io/config.mirror"
NODE = "pwned"

REFERENCES: dict[str, Obj] = {
    "image pull secret": {"imagePullSecrets": [{"name": "root-cred"}]},
    "environment": {
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "root-cred", "key": "k"}}}]
    },
    "whole environment": {"envFrom": [{"secretRef": {"name": "root-cred"}}]},
    "init container": {
        "initContainers": [
            {"name": "i", "image": "i", "envFrom": [{"secretRef": {"name": "root-cred"}}]}
        ]
    },
    "secret volume": {"volumes": [{"name": "v", "secret": {"secretName": "root-cred"}}]},
    "projected volume": {
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "root-cred"}}]}}]
    },
    "CSI volume": {
        "volumes": [
            {
                "name": "v",
                "csi": {"driver": "d.example.com", "nodePublishSecretRef": {"name": "root-cred"}},
            }
        ]
    },
    "flex volume": {
        "volumes": [
            {"name": "v", "flexVolume": {"driver": "x/y", "secretRef": {"name": "root-cred"}}}
        ]
    },
    "config map": {"envFrom": [{"configMapRef": {"name": "settings"}}]},
    "key of a config map": {
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}}]
    },
    "config map volume": {"volumes": [{"name": "v", "configMap": {"name": "settings"}}]},
    "projected config map": {
        "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "settings"}}]}}]
    },
    "RBD volume": {
        "volumes": [
            {
                "name": "v",
                "rbd": {"monitors": ["m"], "image": "i", "secretRef": {"name": "root-cred"}},
            }
        ]
    },
    "ephemeral volume": {
        "volumes": [
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            }
        ]
    },
    "persistent volume claim": {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    },
    "resource claim": {"resourceClaims": [{"name": "c", "resourceClaimName": "gpu"}]},
    "resource claim template": {
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "gpu"}]
    },
    "service account": {"serviceAccountName": "default"},
    "service account token": {
        "volumes": [
            {
                "name": "v",
                "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
            }
        ]
    },
}


@pytest.fixture(scope="module")
def kubelet(target: Target) -> Caller:
    """Return a node that has registered itself; beside it lies a secret that it must not read."""
    caller = target.node(NODE)
    caller.post("/api/v1/nodes", {"metadata": {"name": NODE}}).ok()
    target.admin.post(
        "/api/v1/namespaces/kube-system/secrets",
        {"metadata": {"name": "root-cred"}, "stringData": {"k": "all of it"}},
    ).ok()
    return caller


def _owner(kubelet: Caller, **changed: Any) -> Obj:
    uid = kubelet.get(f"/api/v1/nodes/{NODE}").ok()["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": uid, "controller": True}
    return owner | changed


def _mirror(name: str, owners: list[Obj], **spec: Any) -> Obj:
    container: Obj = {"name": "c", "image": "i"}
    for field in ("env", "envFrom"):
        if field in spec:
            container[field] = spec.pop(field)
    spec = {"nodeName": NODE, "containers": [container], **spec}
    return manifests.pod(name, spec, annotations={MIRROR: "x"}, ownerReferences=owners)


def _strip(kubelet: Caller, name: str) -> Answer:
    body = {"metadata": {"annotations": {MIRROR: None}}}
    return kubelet.merge(f"{PODS}/{name}/status", body)


@pytest.mark.parametrize("spec", REFERENCES.values(), ids=REFERENCES.keys())
def test_mirror_pod_opens_a_secret(kubelet: Caller, spec: Obj) -> None:
    made = kubelet.post(PODS, _mirror("opens", [_owner(kubelet)], **spec))
    _strip(kubelet, "opens")

    assert (made.code, kubelet.get(SECRET).code) == (403, 403)
    assert "can not create pods that reference" in made.json["message"]


def test_mirror_pod_becomes_an_ordinary_pod(target: Target, kubelet: Caller) -> None:
    kubelet.post(PODS, _mirror("plain", [_owner(kubelet)])).ok()
    whole = target.admin.get(f"{PODS}/plain").ok()
    del whole["metadata"]["annotations"]

    responses = [
        _strip(kubelet, "plain"),
        kubelet.merge(f"{PODS}/plain/status", {"metadata": {"annotations": {MIRROR: "y"}}}),
        kubelet.put(f"{PODS}/plain/status", whole),
        target.admin.put(f"{PODS}/plain", whole),
        target.admin.merge(f"{PODS}/plain", {"metadata": {"annotations": {MIRROR: None}}}),
    ]

    assert [answer.code for answer in responses] == [422] * 5
    assert "may not remove or update mirror pod annotation" in responses[0].json["message"]
    assert MIRROR in target.admin.get(f"{PODS}/plain").ok()["metadata"]["annotations"]


def test_mirror_pod_belongs_to_another_user(target: Target, kubelet: Caller) -> None:
    """An owner of another kind would have the garbage collector or a controller act on it."""
    other = target.admin.post("/api/v1/nodes", {"metadata": {"name": "victim"}}).ok()
    own = _owner(kubelet)
    cases = {
        "none": [],
        "two": [own, _owner(kubelet, name="victim", uid=other["metadata"]["uid"])],
        "another node": [_owner(kubelet, name="victim", uid=other["metadata"]["uid"])],
        "a replica set": [own | {"apiVersion": "apps/v1", "kind": "ReplicaSet"}],
        "no controller": [own | {"controller": False}],
        "blocks": [own | {"blockOwnerDeletion": True}],
        "another uid": [own | {"uid": other["metadata"]["uid"]}],
    }

    codes = {
        name: kubelet.post(PODS, _mirror("owned", owners)).code for name, owners in cases.items()
    }

    assert codes == dict.fromkeys(cases, 403)


def test_pod_status_names_a_claim(target: Target, kubelet: Caller) -> None:
    """Claims that the status names may be read by the node."""
    kubelet.post(PODS, _mirror("claims", [_owner(kubelet)])).ok()
    target.admin.post(
        "/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "sa"}}
    )
    body = _mirror("runs", [], serviceAccountName="sa")
    del body["metadata"]["annotations"]
    target.admin.post(PODS, body).ok()
    statuses: dict[str, Obj] = {
        "template": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "gpu"}]},
        "extended": {
            "extendedResourceClaimStatus": {"resourceClaimName": "gpu", "requestMappings": []}
        },
        "allocatable": {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "gpu"}]},
    }

    codes = {
        (pod, name): kubelet.merge(f"{PODS}/{pod}/status", {"status": status}).code
        for pod in ("claims", "runs")
        for name, status in statuses.items()
    }

    assert set(codes.values()) == {403}, codes
    claim = "/apis/resource.k8s.io/v1/namespaces/kube-system/resourceclaims/gpu"
    assert kubelet.get(claim).code == 403


def test_token_for_another_audience(target: Target, kubelet: Caller) -> None:
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    target.admin.post(accounts, {"metadata": {"name": "audience"}}).ok()
    body = _mirror("audience", [], serviceAccountName="audience")
    del body["metadata"]["annotations"]
    pod = target.admin.post(PODS, body).ok()
    bound = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "audience",
        "uid": pod["metadata"]["uid"],
    }

    def asked(*audiences: str) -> int:
        spec = {"boundObjectRef": bound, "audiences": list(audiences)}
        return kubelet.post(f"{accounts}/audience/token", {"spec": spec}).code

    assert [asked(), asked("vault"), asked("a", "b")] == [201, 403, 403]


@pytest.mark.parametrize("kind", ["pods", "slices"])
def test_watches_an_object_of_another_node_by_its_path(
    target: Target, kubelet: Caller, kind: str
) -> None:
    """A selector of its own objects permits the watch, and the path names another object."""
    if kind == "pods":
        pods = "/api/v1/namespaces/default/pods"
        spec = manifests.pod_spec(nodeName="elsewhere")
        target.admin.post(pods, manifests.pod("watched", spec)).ok()
        watch = "/api/v1/watch/namespaces/default/pods/watched"
    else:
        slices = f"{RESOURCE}/resourceslices"
        target.admin.post(slices, _slice("watched", "elsewhere", "elsewhere", 1)).ok()
        watch = f"{RESOURCE}/watch/resourceslices/watched"
    own = f"&fieldSelector=spec.nodeName%3D{NODE}"

    def watched(caller: Caller, selector: str) -> tuple[int, bool]:
        answer = caller.get(f"{watch}?resourceVersion=0&timeoutSeconds=1{selector}")
        return answer.code, b'"ADDED"' in answer.body

    assert watched(target.admin, "") == (200, True)
    assert watched(kubelet, "") == (403, False)
    assert watched(kubelet, own) == (400, False)
    assert watched(kubelet, f"{own},metadata.name%3Dwatched") == (200, False)


def test_has_no_name(target: Target) -> None:
    """What no node has been given yet would be that of the node without a name."""
    nobody = target.node("")
    pods = "/api/v1/namespaces/default/pods"
    target.admin.post(pods, manifests.pod("waits", manifests.pod_spec(nodeName=""))).ok()
    unassigned = "fieldSelector=spec.nodeName%3D"
    slices = f"{RESOURCE}/resourceslices"

    codes = {
        "list pods": nobody.get(f"/api/v1/pods?{unassigned}").code,
        "watch pods": nobody.get(f"/api/v1/pods?watch=1&timeoutSeconds=1&{unassigned}").code,
        "list slices": nobody.get(f"{slices}?{unassigned}").code,
        "delete slices": nobody.delete(f"{slices}?{unassigned}").code,
        "create a node": nobody.post("/api/v1/nodes", {"metadata": {"name": "x"}}).code,
        "create an event": nobody.post(
            "/api/v1/namespaces/default/events", {"metadata": {"name": "x"}}
        ).code,
        "delete a pod": nobody.delete(f"{pods}/waits").code,
        "evict a pod": nobody.post(f"{pods}/waits/eviction", {"metadata": {"name": "waits"}}).code,
        "change a status": nobody.merge(
            f"{pods}/waits/status", {"status": {"phase": "Failed"}}
        ).code,
        "review": nobody.post(
            "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}
        ).code,
    }

    assert codes == dict.fromkeys(codes, 403)
    assert target.admin.get(f"{pods}/waits").code == 200


# -- devices of other nodes ------------------------------------------------------------------------

DRIVER = "gpu.example.com"
RESOURCE = "/apis/resource.k8s.io/v1"


def _slice(name: str, node: str, pool: str, generation: int, **device: Any) -> Obj:
    devices = (gpu | device for gpu in gpus(2))
    return slice_(name, pool, *devices, generation=generation, driver=DRIVER, nodeName=node)


def _using(target: Target, namespace: str, name: str) -> str:
    """Create a pod with a claim for one device; return its path."""
    claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
    target.admin.post(claims, claim(name, DRIVER)).ok()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = manifests.pod_spec(name, resources={"claims": [{"name": "gpu"}]})
    target.admin.post(pods, manifests.pod(name, spec)).ok()
    return f"{pods}/{name}"


def _scheduled_to(target: Target, pod: str) -> str:
    return eventually(lambda: str(target.admin.get(pod).ok()["spec"].get("nodeName", "")), pod)


def test_publishes_devices_in_the_pool_of_another_node(
    target: Target, kubelet: Caller, namespace: str
) -> None:
    """A newer generation of a pool replaces all older ones: here with devices that evict."""
    victim = target.node("rack-owner")
    victim.post("/api/v1/nodes", {"metadata": {"name": "rack-owner"}}).ok()
    team = {"status": {"allocatable": {"pods": "110", "cpu": "8", "memory": "8Gi"}}}
    victim.merge("/api/v1/nodes/rack-owner/status", team).ok()
    expression = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    target.admin.post(
        f"{RESOURCE}/deviceclasses",
        {"metadata": {"name": DRIVER}, "spec": {"selectors": [expression]}},
    ).ok()
    victim.post(f"{RESOURCE}/resourceslices", _slice("one", "rack-owner", "rack-7", 1)).ok()
    first = _using(target, namespace, "first")
    assert _scheduled_to(target, first) == "rack-owner"

    # Of two that came within a second it is unknown which is older.
    published = datetime.now(UTC)
    eventually(lambda: datetime.now(UTC) - published > timedelta(seconds=2))
    evicting = {"taints": [{"key": "evil", "effect": "NoExecute"}]}
    slices = f"{RESOURCE}/resourceslices"
    assert kubelet.post(slices, _slice("two", NODE, "rack-7", 99, **evicting)).code == 201
    assert kubelet.post(slices, _slice("three", NODE, "rack-owner", 99, **evicting)).code == 403

    # Whoever places this one has seen the slice, and so has whoever evicts.
    assert _scheduled_to(target, _using(target, namespace, "second")) == "rack-owner"
    assert "deletionTimestamp" not in target.admin.get(first).ok()["metadata"]
    shown = sully("devices", "--kubeconfig", str(target.up.kubeconfig))
    assert 'ResourceSlice "two" of node "pwned" is ignored' in shown.stderr
