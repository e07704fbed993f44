"""Objects with expressions that are within their cost limits, but many of them."""

from __future__ import annotations

from collections import Counter

from hostile.target import Caller, Obj, Target, eventually

RESOURCE = "/apis/resource.k8s.io/v1"
CLUSTER = "/apis/cluster.open-cluster-management.io"
DEVICES = 96
MOST_SELECTORS = 31
"""As many as a request may have, with that of its class."""
MOST_CONSTRAINTS = 32
"""As many as a claim may have."""
LIST = f"[{','.join(map(str, range(22)))}]"
FOUR_DEEP = f"{LIST}.all(a, {LIST}.all(b, {LIST}.all(c, {LIST}.all(d, true))))"
"""Costs 0.9 million units, where a million is allowed."""
CLUSTER_LIST = f"[{','.join(map(str, range(16)))}]"
THREE_DEEP = (
    f"{CLUSTER_LIST}.all(a, {CLUSTER_LIST}.all(b, {CLUSTER_LIST}.all(c,"
    ' managedCluster.metadata.name != "x")))'
)


def heavy(count: int) -> list[Obj]:
    """Return selectors of which no two are alike."""
    return [{"cel": {"expression": f"{FOUR_DEEP} && {at} >= 0"}} for at in range(count)]


def heavy_predicates(count: int) -> list[str]:
    """Return expressions over clusters of which no two are alike."""
    return [f"{THREE_DEEP} && {at} >= 0" for at in range(count)]


def publish(target: Target, node: str, devices: int) -> str:
    """Add a node whose devices all look different; return their class."""
    made = {"metadata": {"name": node}, "status": {"allocatable": {"pods": "110"}}}
    target.admin.post("/api/v1/nodes", made).ok()
    driver = f"{node}.example.com"
    slice_ = {
        "metadata": {"name": f"{node}-devices"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"gpu-{at}", "attributes": {"index": {"int": at}}} for at in range(devices)
            ],
        },
    }
    target.node(node).post(f"{RESOURCE}/resourceslices", slice_).ok()
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    target.admin.post(
        f"{RESOURCE}/deviceclasses", {"metadata": {"name": node}, "spec": {"selectors": selectors}}
    ).ok()
    return node


def run_pod(caller: Caller, namespace: str, name: str, class_: str, selectors: list[Obj]) -> None:
    """Create a pod with a claim for one device."""
    exactly = {"deviceClassName": class_, "selectors": selectors}
    run_claim(caller, namespace, name, {"requests": [{"name": "gpu", "exactly": exactly}]})


def entangled(class_: str, constraints: int) -> Obj:
    """Return requests and constraints for which more combinations are tried than ever end.

    The second request wants the device that the first one takes first, and no two devices are
    alike to the constraints.
    """
    first = f'device.attributes["{class_}.example.com"].index == 0'
    last = {"deviceClassName": class_, "selectors": [{"cel": {"expression": first}}]}
    many = {"deviceClassName": class_, "count": 31}
    distinct = {"requests": ["many"], "distinctAttribute": f"{class_}.example.com/index"}
    return {
        "requests": [{"name": "many", "exactly": many}, {"name": "last", "exactly": last}],
        "constraints": [distinct] * constraints,
    }


def run_claim(caller: Caller, namespace: str, name: str, devices: Obj) -> None:
    """Create a pod with a claim for devices."""
    claim = {"metadata": {"name": name}, "spec": {"devices": devices}}
    pod = {
        "metadata": {"name": name},
        "spec": {
            "containers": [
                {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        },
    }
    caller.post(f"{RESOURCE}/namespaces/{namespace}/resourceclaims", claim).ok()
    caller.post(f"/api/v1/namespaces/{namespace}/pods", pod).ok()


def heavy_claims(target: Target) -> Counter[int]:
    """Let a tenant run a pod whose selectors cost all that is allowed, on many devices."""
    mallory = target.tenant("hostile-cel")
    class_ = publish(target, "hostile-node", DEVICES)
    run_pod(mallory, "hostile-cel", "heavy", class_, heavy(MOST_SELECTORS))
    pod = "/api/v1/namespaces/hostile-cel/pods/heavy"
    codes = Counter(target.admin.get(pod).code for _ in range(20))
    eventually(lambda: _conditions(mallory, pod).get("PodScheduled") == "False")
    mallory.delete(pod).ok()
    return codes


def heavy_search(target: Target) -> Counter[int]:
    """Let a tenant run a pod for which very many combinations of devices are tried."""
    mallory = target.tenant("hostile-search")
    class_ = publish(target, "hostile-search", DEVICES)
    run_claim(mallory, "hostile-search", "heavy", entangled(class_, MOST_CONSTRAINTS))
    pod = "/api/v1/namespaces/hostile-search/pods/heavy"
    # The search takes minutes beside everything else.
    codes = Counter(target.admin.get(pod).code for _ in range(400))
    mallory.delete(pod).ok()
    return codes


def heavy_placement(target: Target) -> Counter[int]:
    """Let a tenant write a placement whose expressions cost all that is allowed."""
    mallory = target.tenant("hostile-placements")
    for at in range(20):
        made = {"metadata": {"name": f"hostile-{at}"}, "spec": {"hubAcceptsClient": True}}
        target.admin.post(f"{CLUSTER}/v1/managedclusters", made).ok()
    target.admin.post(
        f"{CLUSTER}/v1beta2/namespaces/hostile-placements/managedclustersetbindings",
        {"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}},
    ).ok()
    placements = f"{CLUSTER}/v1beta1/namespaces/hostile-placements/placements"
    selector = {"celSelector": {"celExpressions": heavy_predicates(10)}}
    spec = {
        "predicates": [{"requiredClusterSelector": selector}],
        # Nobody renews the leases of these clusters.
        "tolerations": [{"operator": "Exists"}],
    }
    mallory.post(placements, {"metadata": {"name": "heavy"}, "spec": spec}).ok()
    codes = Counter(target.admin.get(placements).code for _ in range(20))
    eventually(lambda: _conditions(mallory, f"{placements}/heavy").get("PlacementSatisfied"))
    return codes


def _conditions(caller: Caller, path: str) -> dict[str, str]:
    conditions = caller.get(path).ok().get("status", {}).get("conditions", ())
    return {condition["type"]: condition["status"] for condition in conditions}
