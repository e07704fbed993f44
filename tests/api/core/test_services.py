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


@pytest.mark.parametrize("plural", SPECS)
async def test_a_selector_has_one_owner(plural: str) -> None:
    path = f"/api/v1/namespaces/default/{plural}"
    async with local() as server:
        made = await server.post(path, {"metadata": {"name": "a"}, "spec": SPECS[plural]})

    managed = made.ok(201)["metadata"]["managedFields"]
    assert [entry["fieldsV1"]["f:spec"]["f:selector"] for entry in managed] == [{}]
