"""`/debug/placements`: I16, the answers of OCM, and verdicts."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from placements import CLUSTERS, GROUP, PAGE, SHUNNED, config, furnish, grant, respec, taint
from serving import Http, connected
from sully.api.cluster.types import SET_LABEL
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


async def test_s1_s10_the_stages_of_kubernetes(admin: Http) -> None:
    await taint(admin, "c2", SHUNNED)
    answer = (await admin.get(f"{PAGE}/one/web")).ok(200)
    assert answer["placement"]["metadata"] == {"name": "web", "namespace": "one"}
    assert answer["placement"]["spec"]["numberOfClusters"] == 2
    assert "status" not in answer["placement"]
    assert answer["filteredPipelineResults"] == [
        {"name": "Predicate", "filteredClusters": ["c0", "c1", "c2"]},
        {"name": "Predicate,TaintToleration", "filteredClusters": ["c0", "c1"]},
    ]
    assert answer["prioritizeResults"] == [
        {"name": "Balance", "weight": 1, "scores": {"c0": -100, "c1": -100}},
        {"name": "Steady", "weight": 1, "scores": {"c0": 100, "c1": 100}},
    ]
    assert answer["aggregatedScores"] == [
        {"clusterName": "c0", "score": 0},
        {"clusterName": "c1", "score": 0},
    ]


async def test_verdicts_show_why(admin: Http) -> None:
    await taint(admin, "c1", SHUNNED)
    await respec(
        admin, {"numberOfClusters": 1, "tolerations": [{"key": "maintenance", "value": "x"}]}
    )
    answer = (await admin.get(f"{PAGE}/one/web")).ok(200)
    assert answer["status"] == {"code": "Success"}
    assert answer["breakdown"] == (
        "3 considered, 0 by predicate, 1 by taint, 2 feasible, 1 selected"
    )
    verdicts = {verdict["cluster"]: verdict for verdict in answer["verdicts"]}
    assert {name: entry["stage"] for name, entry in verdicts.items()} == {
        "c0": "Rank",
        "c1": "TaintToleration",
        "c2": "Selected",
    }
    blocked = verdicts["c1"]["blockedBy"]
    assert (blocked["key"], blocked["tolerated"], blocked["failure"]) == (
        "maintenance",
        False,
        "value",
    )
    assert verdicts["c2"]["rank"] == 1
    assert verdicts["c0"]["cutOff"] == 1
    assert {score["name"] for score in verdicts["c2"]["scores"]} == {"Balance", "Steady"}


async def test_a_misconfigured_placement_reports_it(admin: Http) -> None:
    await respec(admin, {"tolerations": [{"operator": "Equal", "value": "x"}]})
    answer = (await admin.get(f"{PAGE}/one/web")).ok(200)
    assert answer["status"] == {
        "code": "Misconfigured",
        "plugin": "TaintToleration",
        "message": "If the key is empty, operator must be Exists.",
    }
    assert [result["name"] for result in answer["filteredPipelineResults"]] == ["Predicate"]


async def test_kubernetes_answers_less(tmp_path: Path) -> None:
    async with running(config(tmp_path, strict=True)) as plane, connected(plane) as http:
        await furnish(http)
        answer = (await http.get(f"{PAGE}/one/web")).ok(200)
        whatif = await http.post(f"{PAGE}/one/web", {"changes": []})
    assert sorted(answer) == [
        "aggregatedScores",
        "filteredPipelineResults",
        "placement",
        "prioritizeResults",
    ]
    assert whatif.code == 400


async def test_a_placement_that_does_not_exist_is_tried(admin: Http) -> None:
    predicate = {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": "us"}}}}
    body = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "trial", "namespace": "one"},
        "spec": {"predicates": [predicate]},
    }
    answer = (await admin.post(f"{PAGE}/", body)).ok(200)
    assert answer["filteredPipelineResults"][0]["filteredClusters"] == ["c2"]
    names = (await admin.get(f"{GROUP}/v1beta1/namespaces/one/placements")).json["items"]
    assert [name["metadata"]["name"] for name in names] == ["web"]


async def test_pages_follow_what_is_written(admin: Http) -> None:
    for number in range(3):
        name = f"d{number}"
        body = {"metadata": {"name": name, "labels": {SET_LABEL: "prod"}}, "spec": {}}
        (await admin.post(CLUSTERS, body)).ok(201)
        answer = (await admin.get(f"{PAGE}/one/web")).ok(200)
        assert name in answer["filteredPipelineResults"][0]["filteredClusters"]
        (await admin.delete(f"{CLUSTERS}/{name}")).ok(200)
    answer = (await admin.get(f"{PAGE}/one/web")).ok(200)
    assert answer["filteredPipelineResults"][0]["filteredClusters"] == ["c0", "c1", "c2"]


WRONG: dict[str, tuple[str, str, Any, int, str]] = {
    "no name": ("GET", "/one", None, 400, "invalid debug path: namespace and name required"),
    "nothing": ("GET", "/one/none", None, 404, "placement 'none' not found"),
    "another method": ("DELETE", "/one/web", None, 405, "method DELETE not allowed"),
    "no object": ("POST", "/one/web", [1], 400, "failed to unmarshal placement JSON: "),
    "no placement": ("POST", "/one/web", {"spec": 3}, 400, "failed to unmarshal placement JSON: "),
    "too much": (
        "POST",
        "/one/web",
        {"metadata": {"name": "x" * (1 << 20)}},
        400,
        "request body too large: ",
    ),
    "a misspelt change": (
        "POST",
        "/one/web",
        {"changes": [{"tiant": {}}]},
        400,
        "failed to read what-if JSON: Object contains unknown field `tiant`",
    ),
    "two things together": (
        "POST",
        "/one/web",
        {"changes": [{"delete": {"cluster": "c0"}, "advance": {"seconds": 1}}]},
        400,
        "changes[0] must have exactly one field",
    ),
    "an effect of pods": (
        "POST",
        "/one/web",
        {"changes": [{"taint": {"cluster": "c0", "key": "k", "effect": "NoExecute"}}]},
        400,
        "changes[0].taint.effect must be NoSelect, PreferNoSelect, NoSelectIfNew",
    ),
    "back in time": (
        "POST",
        "/one/web",
        {"changes": [{"advance": {"seconds": -1}}]},
        400,
        "changes[0].advance.seconds is out of range",
    ),
    "a bad selector": (
        "POST",
        "/one/web",
        {"changes": [{"unreachable": {"selector": "a in"}}]},
        400,
        "changes[0].unreachable.selector: ",
    ),
    "a cluster that is not there": (
        "POST",
        "/one/web",
        {"changes": [{"untaint": {"cluster": "c9", "key": "k"}}]},
        400,
        "cluster c9 not found",
    ),
    "a cluster that cannot be dropped": (
        "POST",
        "/one/web",
        {"changes": [{"delete": {"cluster": "c9"}}]},
        400,
        "cluster c9 not found",
    ),
}


@pytest.mark.parametrize(("method", "path", "body", "code", "text"), WRONG.values(), ids=WRONG)
async def test_what_is_refused(
    admin: Http, method: str, path: str, body: Any, code: int, text: str
) -> None:
    answer = await admin.call(method, PAGE + path, body)
    assert answer.code == code
    assert answer.json["error"].startswith(text)


async def test_i16_who_may_ask(plane: RunningControlPlane, admin: Http) -> None:
    await grant(admin, "reader", "one", "get")
    trial = {"metadata": {"name": "trial", "namespace": "one"}}
    async with connected(plane, "reader", ()) as reader:
        assert (await reader.get(f"{PAGE}/one/web")).code == 200
        assert (await reader.get(f"{PAGE}/one/none")).code == 404
        refused = [
            # Not even whether it exists.
            await reader.get(f"{PAGE}/two/web"),
            await reader.get(f"{PAGE}/two/none"),
            await reader.post(f"{PAGE}/one/web", trial),
            await reader.post(f"{PAGE}/one/web", {"changes": []}),
        ]
    assert [answer.code for answer in refused] == [403] * 4
    assert [answer.json["error"] for answer in refused] == [
        "user does not have permission to get placements in namespace two",
        "user does not have permission to get placements in namespace two",
        "user does not have permission to create placements in namespace one",
        "user does not have permission to create placements in namespace one",
    ]


async def test_i16_nobody_asks_without_a_name(plane: RunningControlPlane, admin: Http) -> None:
    assert (await admin.get(f"{PAGE}/one/web")).code == 200
    async with connected(plane, user="") as nobody:
        responses = [await nobody.get(f"{PAGE}/one/web"), await nobody.post(f"{PAGE}/one/web", {})]
    assert [answer.code for answer in responses] == [401, 401]
