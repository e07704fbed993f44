"""PUT: who may overwrite whom, what endpoints own, and that nothing is lost."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from manifests import ONE, RULES, TWO, group_path, lease, pod, rule, secret
from serving import Asgi, Http, Obj, fresh

pytestmark = pytest.mark.asyncio(loop_scope="session")
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


async def made(http: Http, namespace_path: str, **metadata: Any) -> Obj:
    body: Obj = (await http.post(f"{namespace_path}/secrets", secret("a", **metadata))).ok(201)
    return body


async def test_only_the_newest_may_be_replaced(http: Http, namespace_path: str) -> None:
    first = await made(http, namespace_path)
    second = (await http.put(f"{namespace_path}/secrets/a", first | {"data": {"k": TWO}})).ok(200)

    late = await http.put(f"{namespace_path}/secrets/a", first | {"data": {"k": "Mw=="}})

    assert (late.code, late.message) == (
        409,
        f'Operation cannot be fulfilled on secrets "a": {MODIFIED}',
    )
    assert late.json["details"] == {"name": "a", "kind": "secrets"}
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == second


@pytest.mark.parametrize("version", ["", "0"])
async def test_without_a_version_the_last_one_wins(
    http: Http, namespace_path: str, version: str
) -> None:
    before = await made(http, namespace_path)
    body = secret("a", TWO, resourceVersion=version)

    after = (await http.put(f"{namespace_path}/secrets/a", body)).ok()

    assert after["data"] == {"k": TWO}
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["creationTimestamp"] == before["metadata"]["creationTimestamp"]


async def test_kinds_that_insist_on_a_version(http: Http, namespace_path: str) -> None:
    path = group_path(namespace_path, "coordination.k8s.io/v1", "leases")
    (await http.post(path, lease("l"))).ok(201)

    answer = await http.put(f"{path}/l", lease("l", "b"))

    assert (answer.code, answer.message) == (
        422,
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value:'
        " 0: must"
        " be specified for an update",
    )
    assert (await http.get(f"{path}/l")).ok()["spec"]["holderIdentity"] == "a"


@dataclass(frozen=True)
class Case:
    change: dict[str, Any]
    code: int
    text: str
    query: dict[str, str] = field(default_factory=dict)


REFUSED = {
    "another name": Case(
        {"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (a)"
    ),
    "no name": Case(
        {"name": ""},
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    ),
    "another namespace": Case(
        {"namespace": "b"}, 400, "the namespace of the provided object does not match the"
    ),
    "another uid": Case(
        {"uid": "b", "resourceVersion": ""}, 409, "Precondition failed: UID in precondition: b, UID"
    ),
    "another uid, in a dry run": Case(
        {"uid": "b", "resourceVersion": ""}, 409, "Code: 4, Key: /secrets/", {"dryRun": "All"}
    ),
    "a version that is none": Case(
        {"resourceVersion": "x"}, 400, 'strconv.ParseUint: parsing "x": invalid syntax'
    ),
    "a deletion": Case(
        {"deletionTimestamp": "2030-01-01T00:00:00Z"},
        422,
        'metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable',
    ),
    "a bad label": Case({"labels": {"a": "b c"}}, 422, "metadata.labels: Invalid value"),
    "an unknown field, strictly": Case(
        {"colour": 1},
        400,
        'strict decoding error: unknown field "metadata.colour"',
        {"fieldValidation": "Strict"},
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_refused(http: Http, namespace_path: str, case: Case) -> None:
    before = await made(http, namespace_path)
    body = before | {"metadata": before["metadata"] | case.change, "data": {"k": TWO}}

    answer = await http.put(f"{namespace_path}/secrets/a", body, **case.query)

    assert answer.code == case.code, answer.body
    assert case.text in answer.message
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == before


async def test_where_etcd_has_nodes(http: Http) -> None:
    (await http.post("/api/v1/nodes", {"metadata": {"name": "n"}})).ok(201)

    answer = await http.put("/api/v1/nodes/n", {"metadata": {"name": "n", "uid": "b"}})

    assert "Key: /registry/minions/n, ResourceVersion: 0" in answer.message


async def test_bad_finalizers_come_before_new_ones(http: Http, namespace_path: str) -> None:
    await made(http, namespace_path, finalizers=["a/b"])
    await http.delete(f"{namespace_path}/secrets/a")

    answer = await http.put(f"{namespace_path}/secrets/a", secret("a", finalizers=["a/b", "c d"]))

    assert [cause["message"].partition(":")[0] for cause in answer.json["details"]["causes"]] == [
        "Invalid value",
        "Forbidden",
        "Invalid value",
    ]
    assert answer.message.endswith("nor is it fully qualified]")


@pytest.mark.parametrize("plural", ["limitranges", "endpoints"])
async def test_a_put_that_creates(http: Http, namespace_path: str, plural: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"limits": []}}

    (await http.put(f"{namespace_path}/{plural}/a", body)).ok(201)


async def test_what_is_not_there(http: Http, namespace_path: str) -> None:
    answer = await http.put(f"{namespace_path}/secrets/a", secret("a"))

    assert (answer.code, answer.message) == (404, 'secrets "a" not found')


async def test_changing_nothing_changes_nothing(http: Http, namespace_path: str) -> None:
    before = await made(http, namespace_path)

    after = (await http.put(f"{namespace_path}/secrets/a", before)).ok()
    bare = (await http.put(f"{namespace_path}/secrets/a", secret("a"))).ok()

    assert before == after == bare
    start = before["metadata"]["resourceVersion"]
    async with http.watch(f"{namespace_path}/secrets", resourceVersion=start) as lines:
        (await http.delete(f"{namespace_path}/secrets/a")).ok()
        assert (await lines.take(1))[0]["type"] == "DELETED"


async def test_a_dry_run_changes_nothing(http: Http, namespace_path: str) -> None:
    before = await made(http, namespace_path)

    shown = (await http.put(f"{namespace_path}/secrets/a", secret("a", TWO), dryRun="All")).ok()

    assert shown["data"] == {"k": TWO}
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == before


async def test_generation_counts_changes_of_the_spec(calm: Asgi) -> None:
    name = fresh("rule")
    before = (await calm.post(RULES, rule(name))).ok(201)
    path = f"{RULES}/{name}"

    labelled = (await calm.patch(path, {"metadata": {"labels": {"a": "b"}}})).ok()
    forged = (await calm.patch(path, {"metadata": {"generation": 99}})).ok()
    changed = (await calm.patch(path, {"spec": {"taint": {"value": "x"}}})).ok()

    generations = [o["metadata"]["generation"] for o in (before, labelled, forged, changed)]
    assert generations == [1, 1, 1, 2]


async def test_status_and_the_rest_are_apart(calm: Asgi) -> None:
    before = (await calm.post("/api/v1/namespaces/default/pods", pod("a"))).ok(201)
    path = "/api/v1/namespaces/default/pods/a"
    both = {
        **before,
        "metadata": before["metadata"] | {"labels": {"from": "status"}},
        "spec": before["spec"] | {"activeDeadlineSeconds": 5},
        "status": {"phase": "Running", "message": "m"},
    }

    by_status = (await calm.put(f"{path}/status", both)).ok()
    both["metadata"] = by_status["metadata"] | {"labels": {"from": "main"}}
    both["status"] = {"phase": "Failed"}
    by_main = (await calm.put(path, both)).ok()

    assert by_status["status"]["phase"] == "Running"
    assert "activeDeadlineSeconds" not in by_status["spec"]
    assert by_main["spec"]["activeDeadlineSeconds"] == 5
    assert by_main["status"]["phase"] == "Running"
    assert (await calm.get(f"{path}/status")).ok() == by_main


async def test_status_of_what_has_none(http: Http, namespace_path: str) -> None:
    await made(http, namespace_path)

    for answer in (
        await http.get(f"{namespace_path}/secrets/a/status"),
        await http.put(f"{namespace_path}/secrets/a/status", secret("a")),
    ):
        assert (answer.code, answer.json["reason"]) == (404, "NotFound")


async def test_a_finalizer_with_two_slashes(http: Http, namespace_path: str) -> None:
    await made(http, namespace_path)

    answer = await http.patch(
        f"{namespace_path}/secrets/a", {"metadata": {"finalizers": ["a/b/c"]}}
    )

    assert answer.code == 422
    assert answer.message.startswith(
        'Secret "a" is invalid: metadata.finalizers: Invalid value: "a/b/c": a valid label key'
    )


async def test_new_finalizers_come_too_late(http: Http, namespace_path: str) -> None:
    await made(http, namespace_path, finalizers=["example.com/a"])
    (await http.delete(f"{namespace_path}/secrets/a")).ok()
    patch = {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}

    answer = await http.patch(f"{namespace_path}/secrets/a", patch)

    assert (answer.code, answer.message) == (
        422,
        'Secret "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if'
        ' the object is being deleted, found new finalizers []string{"example.com/b"}',
    )


async def test_some_kinds_are_made_by_replacing(http: Http, namespace_path: str) -> None:
    path = f"{group_path(namespace_path, 'coordination.k8s.io/v1', 'leases')}/l"

    first = await http.put(path, lease("l", "a"))
    newer = first.ok() | {"spec": {"holderIdentity": "b"}}
    second = await http.put(path, newer)

    assert (first.code, second.code) == (201, 200)
    assert second.json["metadata"]["uid"] == first.json["metadata"]["uid"]
    assert (await http.get(path)).ok()["spec"]["holderIdentity"] == "b"


async def test_making_by_replacing_as_a_dry_run(http: Http, namespace_path: str) -> None:
    path = f"{group_path(namespace_path, 'coordination.k8s.io/v1', 'leases')}/l"

    assert (await http.put(path, lease("l"), dryRun="All")).code == 201
    assert (await http.get(path)).code == 404


async def _count_up(http: Http, path: str, times: int) -> int:
    """Add one so many times, trying again after every conflict; return the conflicts."""
    conflicts = 0
    while times:
        obj = (await http.get(path)).ok()
        count = int(obj["metadata"]["annotations"]["count"]) + 1
        obj["metadata"]["annotations"]["count"] = str(count)
        answer = await http.put(path, obj)
        if answer.code == 409:
            conflicts += 1
        else:
            answer.ok()
            times -= 1
    return conflicts


async def test_many_writers_lose_nothing(http: Http, namespace_path: str) -> None:
    await made(http, namespace_path, annotations={"count": "0"})
    path = f"{namespace_path}/secrets/a"

    conflicts = await asyncio.gather(*(_count_up(http, path, 8) for _ in range(8)))

    assert (await http.get(path)).ok()["metadata"]["annotations"] == {"count": "64"}
    assert sum(conflicts) > 0


async def test_patches_need_no_second_try(http: Http, namespace_path: str) -> None:
    await made(http, namespace_path)
    path = f"{namespace_path}/secrets/a"

    responses = await asyncio.gather(
        *(http.patch(path, {"data": {f"k{n}": ONE}}) for n in range(40))
    )

    assert {answer.code for answer in responses} == {200}
    assert len((await http.get(path)).ok()["data"]) == 41


async def test_addresses_of_a_service_are_checked_alone(http: Http, namespace_path: str) -> None:
    services = f"{namespace_path}/services"
    good = {"clusterIP": "None", "ports": [{"port": 80}]}
    bad = good | {"clusterIP": "here", "sessionAffinity": "Odd"}
    (await http.post(services, {"metadata": {"name": "a"}, "spec": good})).ok(201)

    responses = [
        await http.post(services, {"metadata": {}, "spec": bad}),
        await http.put(f"{services}/a", {"metadata": {"name": "a"}, "spec": bad}),
    ]

    problem = "spec.clusterIPs[0]: Invalid value: "
    text = 'Service "{}" is invalid: ' + f'{problem}"here": must be a valid IP address, '
    assert [answer.message.split("(")[0] for answer in responses] == [
        text.format(""),
        text.format("a"),
    ]
