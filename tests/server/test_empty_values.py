"""Errors show empty lists and maps as they were sent; what is stored has none."""

import pytest

from manifests import pod, pod_spec
from serving import MERGE, STRATEGIC, Http, Obj, fresh

pytestmark = pytest.mark.asyncio(loop_scope="session")

RESOURCE = "/apis/resource.k8s.io"
EXACT = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}]}


def template(request: Obj, *, name: str, metadata: Obj | None = None) -> Obj:
    spec = {"devices": {"requests": [{"name": "r", **request}]}}
    return {"metadata": {"name": name}, "spec": {"metadata": metadata or {}, "spec": spec}}


async def test_in_a_template_that_changes(http: Http, namespace_path: str) -> None:
    path = namespace_path.replace("/api/v1", f"{RESOURCE}/v1") + "/resourceclaimtemplates"
    name = fresh("template")
    (await http.post(path, template({"exactly": EXACT}, name=name))).ok(201)

    empty = {"selectors": [], "tolerations": [], "capacity": {"requests": {}}}
    changed = template({"exactly": EXACT | empty}, name=name, metadata={"labels": {}})
    got = await http.put(f"{path}/{name}", changed)

    assert got.code == 422
    assert '{"Spec":{"Devices":{"Requests":[{"Name":"r"' in got.message
    assert '"Selectors":[]' in got.message
    assert '"Tolerations":[]' in got.message
    assert '"Capacity":{"Requests":{}}' in got.message
    assert '"Constraints":null' in got.message


async def test_in_a_template_of_another_shape(http: Http, namespace_path: str) -> None:
    path = namespace_path.replace("/api/v1", f"{RESOURCE}/v1beta1") + "/resourceclaimtemplates"
    name = fresh("template")
    (await http.post(path, template(EXACT, name=name))).ok(201)

    changed = template({**EXACT, "selectors": [], "tolerations": []}, name=name)
    got = await http.put(f"{path}/{name}", changed)

    assert '"Selectors":[],' in got.message
    # Conversion copies these one by one, so they are nil in Kubernetes too.
    assert '"Tolerations":null,' in got.message


async def test_beside_another_problem(http: Http, namespace_path: str) -> None:
    path = namespace_path.replace("/api/v1", f"{RESOURCE}/v1") + "/resourceclaimtemplates"
    name = fresh("template")
    (await http.post(path, template({"exactly": EXACT}, name=name))).ok(201)

    same = template({"exactly": EXACT | {"tolerations": []}}, name=name)
    same["metadata"]["labels"] = {"a b": ""}
    got = await http.put(f"{path}/{name}", same)

    # An empty list is not a change.
    assert got.code == 422
    assert "field is immutable" not in got.message


async def test_in_a_device(http: Http) -> None:
    device = {"name": "d", "bindingConditions": ["a"], "bindingFailureConditions": []}
    spec: Obj = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}
    body = {"metadata": {"name": fresh("slice")}, "spec": spec | {"nodeName": "n"}}

    sent = await http.post(f"{RESOURCE}/v1/resourceslices", _with_devices(body, device))
    del device["bindingFailureConditions"]
    left_out = await http.post(f"{RESOURCE}/v1/resourceslices", _with_devices(body, device))

    assert "bindingFailureConditions: Invalid value: []: " in sent.message
    assert "bindingFailureConditions: Invalid value: null: " in left_out.message


def _with_devices(body: Obj, *devices: Obj) -> Obj:
    return {**body, "spec": {**body["spec"], "devices": list(devices)}}


async def test_in_the_labels_of_pods(http: Http, namespace_path: str) -> None:
    path = namespace_path.replace("/api/v1", "/apis/apps/v1") + "/deployments"
    containers = {"containers": [{"name": "c", "image": "i"}]}
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {}}, "spec": containers},
    }

    got = await http.post(path, {"metadata": {"name": "d"}, "spec": spec})

    assert "spec.template.metadata.labels: Invalid value: {}: " in got.message

    spec["selector"] = {"matchLabels": {}}
    got = await http.post(path, {"metadata": {"name": "d"}, "spec": spec})

    assert "spec.selector: Invalid value: {}: empty selector" in got.message


@pytest.mark.parametrize("patch_type", ["", MERGE, STRATEGIC])
async def test_in_a_pod_that_changes(http: Http, namespace_path: str, patch_type: str) -> None:
    name = fresh("pod")
    container = {"name": "c", "image": "i", "command": ["a"]}
    body = pod(name) | {"spec": {"containers": [container]}}
    made = (await http.post(f"{namespace_path}/pods", body)).ok(201)
    at = f"{namespace_path}/pods/{name}"
    containers = [{**container, "command": []}]

    if patch_type:
        change = {"spec": {"containers": containers}}
        got = await http.patch(at, change, patch_type)
    else:
        spec = made["spec"] | {"containers": containers}
        got = await http.put(at, {"metadata": {"name": name}, "spec": spec})

    assert '+   "Command": [],\n' in got.message
    assert (await http.get(at)).ok()["spec"] == made["spec"]


async def test_in_a_list_that_is_always_written(http: Http, namespace_path: str) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]

    def spec(terms: list[Obj]) -> Obj:
        affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}
        return pod_spec(affinity=affinity, schedulingGates=[{"name": "example.com/g"}])

    name = fresh("pod")
    (await http.post(f"{namespace_path}/pods", pod(name, spec(terms)))).ok(201)

    got = await http.put(f"{namespace_path}/pods/{name}", pod(name, spec([])))

    assert "nodeSelectorTerms: Invalid value: []: no additions" in got.message
