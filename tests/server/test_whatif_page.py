"""POST to `/debug/placements` with changes: what would become of all decisions."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from placements import GROUP, PAGE, SHUNNED, Obj, config, furnish, grant, grant_clusters, respec
from serving import Http, connected
from sully.api.cluster.types import SET_LABEL, UNREACHABLE
from sully.app import RunningControlPlane, running


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[RunningControlPlane]:
    async with running(config(tmp_path)) as plane:
        yield plane


@pytest.fixture
async def admin(plane: RunningControlPlane) -> AsyncIterator[Http]:
    async with connected(plane) as http:
        await furnish(http)
        yield http


CHANGES: dict[str, tuple[list[Obj], dict[str, list[str]], list[str]]] = {
    "a taint": (
        [{"taint": {"cluster": "c0", **SHUNNED}}],
        {"one": ["c1", "c2"], "two": ["c1", "c2"]},
        ["c0"],
    ),
    "a region becomes unreachable": (
        [{"unreachable": {"selector": "region=eu"}}],
        {"one": ["c2"], "two": ["c2"]},
        ["c0", "c1"],
    ),
    "the same as an object": (
        [{"unreachable": {"selector": {"matchLabels": {"region": "eu"}}}}],
        {"one": ["c2"], "two": ["c2"]},
        ["c0", "c1"],
    ),
    "a cluster is dropped": (
        [{"delete": {"cluster": "c1"}}],
        {"one": ["c0", "c2"], "two": ["c0", "c2"]},
        ["c1"],
    ),
    "a cluster leaves its set": (
        [{"label": {"cluster": "c1", "label": SET_LABEL, "value": "other"}}],
        {"one": ["c0", "c2"], "two": ["c0", "c2"]},
        ["c1"],
    ),
    "a taint is created and deleted": (
        [
            {"taint": {"cluster": "c2", **SHUNNED}},
            {"advance": {"seconds": 60}},
            {"untaint": {"cluster": "c2", "key": "maintenance"}},
        ],
        {},
        [],
    ),
}


async def rest(http: Http) -> None:
    """Let the placements not look at each other, so that they want what they have."""
    for team in ("one", "two"):
        await respec(http, {"prioritizerPolicy": {"mode": "Exact"}}, team)


@pytest.mark.parametrize(("changes", "after", "left"), CHANGES.values(), ids=CHANGES)
async def test_what_if(
    admin: Http, changes: list[Obj], after: dict[str, list[str]], left: list[str]
) -> None:
    await rest(admin)
    answer = (await admin.post(f"{PAGE}/one/web", {"changes": changes})).ok(200)
    assert {
        placement["namespace"]: placement["after"] for placement in answer["placements"]
    } == after
    assert all(placement["before"] == ["c0", "c1"] for placement in answer["placements"])
    assert all(placement["removed"] == left for placement in answer["placements"])


async def test_what_if_time_passes(admin: Http) -> None:
    await rest(admin)
    toleration = {"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 90}
    await respec(admin, {"tolerations": [toleration]})
    unreachable = {"unreachable": {"selector": "region=eu"}}
    soon = (await admin.post(f"{PAGE}/one/web", {"changes": [unreachable]})).ok(200)
    assert [placement["namespace"] for placement in soon["placements"]] == ["two"]
    assert "requeueTime" in soon
    later = [unreachable, {"advance": {"seconds": 90}}]
    answer = (await admin.post(f"{PAGE}/one/web", {"changes": later})).ok(200)
    assert {placement["namespace"]: placement["after"] for placement in answer["placements"]} == {
        "one": ["c2"],
        "two": ["c2"],
    }
    first, last = answer["moves"][0], answer["moves"][-1]
    assert (first["namespace"], last["namespace"]) == ("two", "one")
    assert first["at"] < last["at"]


async def test_what_if_a_placement_were_there(admin: Http) -> None:
    await rest(admin)
    placement = {"metadata": {"name": "extra", "namespace": "one"}, "spec": {"numberOfClusters": 1}}
    body = {"placement": placement, "changes": []}
    answer = (await admin.post(f"{PAGE}/", body)).ok(200)
    assert answer["placements"] == [
        {
            "namespace": "one",
            "name": "extra",
            "before": [],
            "after": ["c2"],
            "removed": [],
            "added": ["c2"],
            "conditions": answer["placements"][0]["conditions"],
        }
    ]
    conditions = {
        condition["type"]: condition["status"]
        for condition in answer["placements"][0]["conditions"]
    }
    assert conditions == {"PlacementMisconfigured": "False", "PlacementSatisfied": "True"}


async def test_what_if_shows_only_what_one_may_read(
    plane: RunningControlPlane, admin: Http
) -> None:
    await grant(admin, "planner", "one", "get", "create")
    await grant_clusters(admin, "planner", "get")
    body = {"changes": [{"delete": {"cluster": "c0"}}]}
    async with connected(plane, "planner", ()) as planner:
        answer = (await planner.post(f"{PAGE}/one/", body)).ok(200)
    assert {placement["namespace"] for placement in answer["placements"]} == {"one"}
    assert {move["namespace"] for move in answer["moves"]} == {"one"}
    # And nothing was written.
    decisions = f"{GROUP}/v1beta1/namespaces/one/placementdecisions/web-decision-1"
    stored = (await admin.get(decisions)).json["status"]["decisions"]
    assert json.dumps(stored).count("c0") == 1


# name → (a change, with the cluster as {}; what one must be allowed to do for it)
READS: dict[str, tuple[str, str]] = {
    "taint": ('{"taint": {"cluster": "%s", "key": "a", "effect": "NoSelect"}}', "get"),
    "untaint": ('{"untaint": {"cluster": "%s", "key": "a"}}', "get"),
    "delete": ('{"delete": {"cluster": "%s"}}', "get"),
    "label": ('{"label": {"cluster": "%s", "label": "a", "value": "b"}}', "get"),
    "unreachable": ('{"unreachable": {"selector": "name=%s"}}', "list"),
}


@pytest.mark.parametrize(("change", "verb"), READS.values(), ids=READS)
async def test_what_if_does_not_show_which_clusters_exist(
    plane: RunningControlPlane, admin: Http, change: str, verb: str
) -> None:
    await grant(admin, "planner", "one", "get", "create")
    async with connected(plane, "planner", ()) as planner:
        for name in ("c0", "no-such"):
            body = {"changes": [json.loads(change % name)]}
            answer = await planner.post(f"{PAGE}/one/", body)
            which = f'managedclusters "{name}"' if verb == "get" else "managedclusters"
            assert answer.code == 403
            assert answer.json == {"error": f"user does not have permission to {verb} {which}"}

        await grant_clusters(admin, "planner", verb)
        body = {"changes": [json.loads(change % "c0")]}
        (await planner.post(f"{PAGE}/one/", body)).ok(200)


async def test_what_if_without_clusters_needs_no_right_to_read_them(
    plane: RunningControlPlane, admin: Http
) -> None:
    await grant(admin, "planner", "one", "get", "create")
    placement = {"metadata": {"name": "extra", "namespace": "one"}, "spec": {}}
    body = {"placement": placement, "changes": [{"advance": {"seconds": 60}}]}
    async with connected(plane, "planner", ()) as planner:
        (await planner.post(f"{PAGE}/one/", body)).ok(200)
