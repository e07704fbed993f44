"""Fields of services that server-side apply treats as a whole."""

from typing import Any

import pytest

from serving import local

PODS = {"containers": [{"name": "c", "image": "i"}]}
SPECS: dict[str, dict[str, Any]] = {
    "services": {"clusterIP": "None", "selector": {"a": "b"}},
    "replicationcontrollers": {
        "selector": {"a": "b"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": PODS},
    },
}


PORTS: dict[str, tuple[list[dict[str, Any]], int]] = {
    "different": ([{"name": "a", "port": 80}, {"name": "b", "port": 81}], 0),
    "the same": ([{"name": "a", "port": 80}, {"name": "b", "port": 80}], 1),
    "none": ([{"name": "a"}, {"name": "b"}], 1),
}


@pytest.mark.parametrize(("ports", "repeated"), PORTS.values(), ids=PORTS.keys())
async def test_repeated_ports(ports: list[dict[str, Any]], repeated: int) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "ports": ports}}
    async with local() as server:
        answer = await server.post("/api/v1/namespaces/default/services", body)

    assert answer.body.count(b'"field":"spec.ports[1]"') == repeated


@pytest.mark.parametrize("plural", SPECS)
async def test_a_selector_has_one_owner(plural: str) -> None:
    path = f"/api/v1/namespaces/default/{plural}"
    async with local() as server:
        made = await server.post(path, {"metadata": {"name": "a"}, "spec": SPECS[plural]})

    managed = made.ok(201)["metadata"]["managedFields"]
    assert [entry["fieldsV1"]["f:spec"]["f:selector"] for entry in managed] == [{}]
