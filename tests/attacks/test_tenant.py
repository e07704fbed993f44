"""A tenant: somebody with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from attacks.target import SECONDS, Caller, Target

pytestmark = pytest.mark.slow

Obj = dict[str, Any]


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403


# -- expressions within their cost limits, but many of them ----------------------------------------

RESOURCE = "/apis/resource.k8s.io/v1"
CLUSTER = "/apis/cluster.open-cluster-management.io"
DEVICES = 96
SELECTORS = 31
LIST = f"[{','.join(map(str, range(22)))}]"
FOUR_DEEP = f"{LIST}.all(a, {LIST}.all(b, {LIST}.all(c, {LIST}.all(d, true))))"
"""Costs 0.9 million units, where a million is allowed."""
CLUSTER_LIST = f"[{','.join(map(str, range(16)))}]"
THREE_DEEP = (
    f"{CLUSTER_LIST}.all(a, {CLUSTER_LIST}.all(b, {CLUSTER_LIST}.all(c,"
    ' managedCluster.metadata.name != "x")))'
)
USUAL_WORK = 0.15
"""Seconds of the server's processor time between a question and its answer, nine times of ten."""
MOST_WORK = 1.0
"""The same for all answers: who asks may have to wait for a processor of this machine."""


def heavy(count: int) -> list[Obj]:
    """Return selectors of which no two are alike."""
    return [{"cel": {"expression": f"{FOUR_DEEP} && {at} >= 0"}} for at in range(count)]


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
    claim = {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
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


def eventually(look: Callable[[], str]) -> str:
    """Wait until there is something to see, and return it."""
    until = time.monotonic() + 2 * SECONDS
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError("nothing happened")


def condition(obj: Obj, type_: str, status: str) -> str:
    """Return the message of a condition; empty if it says something else."""
    for each in obj.get("status", {}).get("conditions", ()):
        if (each["type"], each["status"]) == (type_, status):
            return str(each["message"])
    return ""


def node_of(caller: Caller, namespace: str, name: str) -> str:
    pod = caller.get(f"/api/v1/namespaces/{namespace}/pods/{name}").ok()
    return str(pod["spec"].get("nodeName", ""))


def why_pending(caller: Caller, namespace: str, name: str) -> str:
    pod = caller.get(f"/api/v1/namespaces/{namespace}/pods/{name}").ok()
    return condition(pod, "PodScheduled", "False")


def test_selectors_that_are_expensive_together(target: Target, namespace: str) -> None:
    mallory, alice = target.tenant("mallory-cel"), target.tenant(namespace)
    class_ = publish(target, "heavy-node", DEVICES)

    with target.bystander() as delays:
        run_pod(mallory, "mallory-cel", "heavy", class_, heavy(SELECTORS))
        ordinary = [{"cel": {"expression": f'device.attributes["{class_}.example.com"].index > 3'}}]
        run_pod(alice, namespace, "ordinary", class_, ordinary)
        assert eventually(lambda: node_of(alice, namespace, "ordinary")) == "heavy-node"
        assert not why_pending(mallory, "mallory-cel", "heavy"), "others do not wait for it"
        told = eventually(lambda: why_pending(mallory, "mallory-cel", "heavy"))

    assert "node heavy-node: timed out trying to allocate devices" in told
    assert not delays.failures
    assert delays.usual_work() <= USUAL_WORK, delays
    assert max(delays.work) <= MOST_WORK, delays
    before = target.processor_time()
    run_pod(alice, namespace, "later", class_, ordinary)
    eventually(lambda: node_of(alice, namespace, "later"))
    assert target.processor_time() - before < 2, "the heavy pod is not tried again immediately"
    mallory.delete("/api/v1/namespaces/mallory-cel/pods/heavy")


def test_a_placement_that_is_expensive(target: Target, namespace: str) -> None:
    tenant = target.tenant(namespace)
    for at in range(20):
        made = {"metadata": {"name": f"member-{at}"}, "spec": {"hubAcceptsClient": True}}
        target.admin.post(f"{CLUSTER}/v1/managedclusters", made).ok()
    target.admin.post(
        f"{CLUSTER}/v1beta2/namespaces/{namespace}/managedclustersetbindings",
        {"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}},
    ).ok()
    placements = f"{CLUSTER}/v1beta1/namespaces/{namespace}/placements"

    def place(name: str, expressions: list[str]) -> None:
        selector = {"celSelector": {"celExpressions": expressions}}
        spec = {
            "predicates": [{"requiredClusterSelector": selector}],
            # Nobody renews the leases of these clusters.
            "tolerations": [{"operator": "Exists"}],
        }
        tenant.post(placements, {"metadata": {"name": name}, "spec": spec}).ok()

    def satisfied(name: str) -> str:
        found = tenant.get(f"{placements}/{name}").ok()
        return condition(found, "PlacementSatisfied", "True")

    with target.bystander() as delays:
        place("heavy", [f"{THREE_DEEP} && {at} >= 0" for at in range(10)])
        place("ordinary", ['managedCluster.metadata.name == "member-3"'])
        assert eventually(lambda: satisfied("ordinary"))
        assert not satisfied("heavy"), "others do not wait for it"
        assert eventually(lambda: satisfied("heavy"))

    assert not delays.failures
    assert delays.usual_work() <= USUAL_WORK, delays
    assert max(delays.work) <= MOST_WORK, delays


def test_a_rule_that_is_expensive_by_mistake(target: Target, namespace: str) -> None:
    tenant = target.tenant(namespace)
    class_ = publish(target, "ruled-node", DEVICES)
    rules = f"{RESOURCE}/devicetaintrules"

    with target.bystander() as delays:
        run_pod(tenant, namespace, "running", class_, [])
        assert eventually(lambda: node_of(tenant, namespace, "running")) == "ruled-node"
        target.admin.post(
            rules,
            {
                "metadata": {"name": "heavy"},
                "spec": {
                    "deviceSelector": {
                        "driver": "ruled-node.example.com",
                        "selectors": heavy(SELECTORS),
                    },
                    "taint": {"key": "example.com/heavy", "effect": "NoExecute"},
                },
            },
        ).ok()

        def problem() -> str:
            rule = target.admin.get(f"{rules}/heavy").ok()
            told = condition(rule, "sully.dev/SelectorProblem", "True")
            return told if "budget" in told else ""

        told = eventually(problem)
        run_pod(tenant, namespace, "later", class_, [])
        assert eventually(lambda: node_of(tenant, namespace, "later")) == "ruled-node"

    assert "evaluation exceeds the budget of 100000000 cost units" in told
    assert node_of(tenant, namespace, "running") == "ruled-node"
    assert not delays.failures
    assert delays.usual_work() <= USUAL_WORK, delays
    assert max(delays.work) <= MOST_WORK, delays
    target.admin.delete(f"{rules}/heavy")


def test_selectors_that_take_long_to_compile(target: Target, namespace: str) -> None:
    tenant = target.tenant(namespace)
    class_ = publish(target, "long-node", 2)
    long = "[1].all(a,a>0)&&" * 550

    def claim(name: str, word: str) -> Obj:
        requests = [
            {
                "name": f"r{request}",
                "exactly": {
                    "deviceClassName": class_,
                    "selectors": [
                        {"cel": {"expression": f'{long}"{word}{request}-{at}" != ""'}}
                        for at in range(6)
                    ],
                },
            }
            for request in range(4)
        ]
        return {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}

    claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
    pod = {
        "metadata": {"name": "long"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpus", "resourceClaimName": "long"}],
        },
    }

    with target.bystander() as delays:
        assert tenant.post(claims, claim("long", "a")).code in (201, 413)
        patch = {"spec": claim("long", "b")["spec"]}
        assert tenant.merge(f"{claims}/long", patch).code == 422
        tenant.post(f"/api/v1/namespaces/{namespace}/pods", pod).ok()
        assert eventually(lambda: why_pending(tenant, namespace, "long"))

    assert not delays.failures
    assert delays.usual_work() <= USUAL_WORK, delays
    assert max(delays.work) <= MOST_WORK, delays
