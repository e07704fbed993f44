"""One object, several versions: written in one, read in another, watched in a third."""

from itertools import product
from typing import Any

import pytest

import manifests
from manifests import rule
from serving import APPLY, MERGE, Http, Obj, fresh, types_and_names

pytestmark = pytest.mark.asyncio(loop_scope="session")
GROUP = "/apis/resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")
DEVICES = {
    "v1": [{"name": "d", "attributes": {"a": {"int": 1}}}],
    "v1beta2": [{"name": "d", "attributes": {"a": {"int": 1}}}],
    "v1beta1": [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}],
}


def path(version: str, name: str = "") -> str:
    return f"{GROUP}/{version}/resourceslices" + (f"/{name}" if name else "")


def slice_(version: str, name: str) -> Obj:
    body = manifests.slice_(name, name, *DEVICES[version], allNodes=True)
    return body | {"apiVersion": f"resource.k8s.io/{version}"}


@pytest.mark.parametrize(("written", "read", "watched"), list(product(VERSIONS, repeat=3)))
async def test_any_version_of_the_same_thing(
    http: Http, written: str, read: str, watched: str
) -> None:
    name = fresh("slice")
    before = (await http.get(path("v1"), limit="1")).ok()["metadata"]["resourceVersion"]
    query = {"resourceVersion": before, "fieldSelector": f"metadata.name={name}"}

    async with http.watch(path(watched), **query) as lines:
        made = (await http.post(path(written), slice_(written, name))).ok(201)
        body = (await http.get(path(read, name))).ok()
        (event,) = await lines.take(1)

    assert made["apiVersion"] == f"resource.k8s.io/{written}"
    assert body["apiVersion"] == f"resource.k8s.io/{read}"
    assert body["spec"]["devices"] == DEVICES[read]
    assert types_and_names([event]) == [("ADDED", name)]
    assert event["object"]["apiVersion"] == f"resource.k8s.io/{watched}"
    assert event["object"]["spec"]["devices"] == DEVICES[watched]
    versions = {obj["metadata"]["resourceVersion"] for obj in (made, body, event["object"])}
    assert len(versions) == 1


@pytest.mark.parametrize(("written", "changed"), list(product(VERSIONS, repeat=2)))
async def test_a_round_trip_through_another_version(http: Http, written: str, changed: str) -> None:
    name = fresh("slice")
    made = (await http.post(path(written), slice_(written, name))).ok(201)
    view = (await http.get(path(changed, name))).ok()

    same = (await http.put(path(changed, name), view)).ok()
    labels = {"metadata": {"labels": {"x": "y"}}}
    labelled = (await http.patch(path(changed, name), labels, MERGE)).ok()

    # Nothing changed but the managers' notes of their version.
    assert same["spec"] == view["spec"]
    assert labelled["metadata"]["labels"] == {"x": "y"}
    assert (await http.get(path(written, name))).ok()["spec"] == made["spec"]


async def test_old_versions_are_marked_as_old(http: Http) -> None:
    name = fresh("slice")
    (await http.post(path("v1"), slice_("v1", name))).ok(201)

    warned = {v: (await http.get(path(v, name))).warnings for v in VERSIONS}

    assert warned["v1"] == []
    assert warned["v1beta1"] == [
        '299 - "resource.k8s.io/v1beta1 ResourceSlice is deprecated in v1.35+, unavailable in'
        ' v1.38+"'
    ]


async def test_apply_in_one_version_and_again_in_another(http: Http) -> None:
    name = fresh("slice")

    first = await http.patch(path("v1", name), slice_("v1", name), APPLY, fieldManager="m")
    second = await http.patch(
        path("v1beta1", name), slice_("v1beta1", name), APPLY, fieldManager="m"
    )

    assert (first.code, second.code) == (201, 200)
    assert (await http.get(path("v1", name))).ok()["spec"] == first.json["spec"]


@pytest.mark.parametrize(("first", "second"), list(product(("v1", "v1beta1"), repeat=2)))
async def test_what_was_applied_in_another_version_is_given_up(
    http: Http, first: str, second: str
) -> None:
    name = fresh("slice")

    def labelled(version: str, **labels: str) -> Obj:
        body = slice_(version, name)
        return body | {"metadata": body["metadata"] | {"labels": labels}}

    before = labelled(first, kept="1", gone="2")
    (await http.patch(path(first, name), before, APPLY, fieldManager="m")).ok(201)
    after = await http.patch(
        path(second, name), labelled(second, kept="1"), APPLY, fieldManager="m"
    )

    assert after.ok()["metadata"]["labels"] == {"kept": "1"}
    assert after.json["spec"]["devices"] == DEVICES[second]
    assert after.warnings == (await http.get(path(second, name))).warnings


async def test_lists_and_tables_in_every_version(http: Http) -> None:
    name = fresh("slice")
    (await http.post(path("v1beta2"), slice_("v1beta2", name))).ok(201)
    only = {"fieldSelector": f"metadata.name={name}"}

    for version in VERSIONS:
        listed: dict[str, Any] = (await http.get(path(version), **only)).ok()
        assert listed["apiVersion"] == f"resource.k8s.io/{version}"
        assert [item["spec"]["devices"] for item in listed["items"]] == [DEVICES[version]]
        table = (
            await http.get(path(version), "application/json;as=Table;v=v1;g=meta.k8s.io", **only)
        ).ok()
        assert table["rows"][0]["cells"][0] == name


async def test_versions_of_rules_share_the_status(http: Http) -> None:
    name = fresh("rule")
    v1, alpha = (f"{GROUP}/{v}/devicetaintrules" for v in ("v1", "v1alpha3"))
    body = rule(name) | {"apiVersion": "resource.k8s.io/v1alpha3"}
    (await http.post(alpha, body)).ok(201)

    assert (await http.get(f"{v1}/{name}/status")).ok()["spec"] == (
        await http.get(f"{alpha}/{name}")
    ).ok()["spec"]
    assert (await http.get(f"{GROUP}/v1beta9/devicetaintrules")).code == 404


async def test_events_in_both_groups(http: Http, namespace_path: str) -> None:
    old = {
        "metadata": {"name": "e", "namespace": namespace_path.rsplit("/", 1)[-1]},
        "involvedObject": {
            "namespace": namespace_path.rsplit("/", 1)[-1],
            "name": "x",
            "kind": "Pod",
        },
        "reason": "r",
        "message": "m",
        "type": "Normal",
    }
    (await http.post(f"{namespace_path}/events", old)).ok(201)
    newer = namespace_path.replace("/api/v1", "/apis/events.k8s.io/v1")

    body = (await http.get(f"{newer}/events/e")).ok()
    (await http.delete(f"{newer}/events/e")).ok()

    assert (body["apiVersion"], body["note"]) == ("events.k8s.io/v1", "m")
    assert body["regarding"]["name"] == "x"
    assert (await http.get(f"{namespace_path}/events/e")).code == 404


@pytest.mark.parametrize("path", ["/api/v9", "/apis/resource.k8s.io/v9"])
async def test_a_version_that_a_known_group_does_not_have(http: Http, path: str) -> None:
    answer = await http.get(path)

    assert answer.code == 404
    assert answer.message == "the server could not find the requested resource"
