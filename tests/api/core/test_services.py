"""Fields of services that server-side apply treats as a whole."""

from typing import Any

import pytest

from serving import MERGE, local

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


HEADLESS = {"clusterIP": "None"}
SELECTS = {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}
UNSET = {"ipFamilies": None, "ipFamilyPolicy": None}
# What a service is, how a patch changes it, and its families and their policy then. Recorded.
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], str]] = {
    "selects": (SELECTS, {}, ["IPv4"], "SingleStack"),
    "selects nothing": (HEADLESS, {}, ["IPv4", "IPv6"], "RequireDualStack"),
    "selects no longer": (SELECTS, {"selector": None}, ["IPv4"], "SingleStack"),
    "selects no longer, families unset": (
        SELECTS, {"selector": None, **UNSET}, ["IPv4"], "SingleStack",
    ),
    "policy unset": (HEADLESS, {"ipFamilyPolicy": None}, ["IPv4", "IPv6"], "RequireDualStack"),
    "one stack from now on": (
        HEADLESS, {"ipFamilyPolicy": "SingleStack"}, ["IPv4"], "SingleStack",
    ),
    "prefers two": (
        HEADLESS | {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6"]},
        {},
        ["IPv6", "IPv4"],
        "PreferDualStack",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "change", "families", "policy"), FAMILIES.values(), ids=FAMILIES.keys()
)
async def test_families(
    spec: dict[str, Any], change: dict[str, Any], families: list[str], policy: str
) -> None:
    path = "/api/v1/namespaces/default/services"
    async with local() as server:
        (await server.post(path, {"metadata": {"name": "a"}, "spec": spec})).ok(201)
        after = (await server.patch(f"{path}/a", {"spec": change}, MERGE)).ok()["spec"]

    assert (after["ipFamilies"], after["ipFamilyPolicy"]) == (families, policy)
