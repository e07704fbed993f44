"""The forms of an answer: tables, metadata only, YAML, pretty; and what nobody can give."""

import gzip
import json
from typing import Any

import pytest
import yaml

from manifests import secret
from serving import YAML, Asgi, Http, Obj, local
from sully.machinery.serialization.codec import to_json
from sully.server.http.http_request import PIECE
from sully.testing.clock import FakeClock

pytestmark = pytest.mark.asyncio(loop_scope="session")


INITIAL = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


def shaped(shape: str, version: str = "v1", media: str = "application/json") -> str:
    return f"{media};as={shape};v={version};g=meta.k8s.io"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_list_as_a_table(http: Http, namespace_path: str, version: str) -> None:
    for name in ("a", "b"):
        (await http.post(f"{namespace_path}/secrets", secret(name))).ok(201)

    table = (await http.get(f"{namespace_path}/secrets", shaped("Table", version))).ok()
    plain = (await http.get(f"{namespace_path}/secrets")).ok()

    assert (table["kind"], table["apiVersion"]) == ("Table", f"meta.k8s.io/{version}")
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Type",
        "Data",
        "Age",
    ]
    assert table["columnDefinitions"][0]["format"] == "name"
    assert table["metadata"] == plain["metadata"]
    assert [row["cells"][:3] for row in table["rows"]] == [["a", "Opaque", 1], ["b", "Opaque", 1]]
    for row, item in zip(table["rows"], plain["items"], strict=True):
        assert row["object"] == {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": item["metadata"],
        }


async def test_one_object_as_a_table(http: Http, namespace_path: str) -> None:
    made = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    table = (await http.get(f"{namespace_path}/secrets/a", shaped("Table"))).ok()

    assert len(table["rows"]) == 1
    assert table["metadata"] == {"resourceVersion": made["metadata"]["resourceVersion"]}


async def test_what_rows_carry(http: Http, namespace_path: str) -> None:
    made = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)
    table = shaped("Table")

    none = (await http.get(f"{namespace_path}/secrets", table, includeObject="None")).ok()
    whole = (await http.get(f"{namespace_path}/secrets", table, includeObject="Object")).ok()

    assert none["rows"][0]["object"] is None
    assert whole["rows"][0]["object"] == made


async def test_a_write_can_answer_with_a_table(http: Http, namespace_path: str) -> None:
    headers = {"accept": shaped("Table")}

    answer = await http.call("POST", f"{namespace_path}/secrets", secret("a"), headers=headers)

    assert answer.ok(201)["kind"] == "Table"
    assert answer.json["rows"][0]["cells"][0] == "a"


async def test_ages_move() -> None:
    clock = FakeClock()
    async with local(clock=clock) as server:
        path = "/api/v1/namespaces/default/secrets"
        (await server.post(path, secret("a"))).ok(201)
        shown = []
        for seconds in (0, 90, 3600):
            clock.advance(seconds)
            table = (await server.get(path, shaped("Table"))).ok()
            shown.append(table["rows"][0]["cells"][-1])

    assert shown == ["0s", "90s", "61m"]


async def test_metadata_only(http: Http, namespace_path: str) -> None:
    made = (await http.post(f"{namespace_path}/secrets", secret("a", labels={"x": "y"}))).ok(201)

    one = (await http.get(f"{namespace_path}/secrets/a", shaped("PartialObjectMetadata"))).ok()
    many = (await http.get(f"{namespace_path}/secrets", shaped("PartialObjectMetadataList"))).ok()

    assert one == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["items"] == [one]


async def test_yaml_in_and_out(http: Http, namespace_path: str) -> None:
    body = yaml.safe_dump(secret("a", annotations={"x": "yes", "m": "1"}))

    made = await http.call(
        "POST", f"{namespace_path}/secrets", body, YAML, headers={"accept": "application/yaml"}
    )

    assert (made.code, made.header("content-type")) == (201, YAML)
    read = yaml.safe_load(made.body)
    assert read["metadata"]["annotations"] == {"x": "yes", "m": "1"}
    assert read == (await http.get(f"{namespace_path}/secrets/a")).ok()
    listed = yaml.safe_load((await http.get(f"{namespace_path}/secrets", YAML)).body)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]


async def test_for_people(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)
    plain = await http.get(f"{namespace_path}/secrets/a")

    for pretty in (
        await http.get(f"{namespace_path}/secrets/a", pretty="true"),
        await http.get(f"{namespace_path}/secrets/a", "application/json;pretty=1"),
    ):
        assert pretty.json == plain.json
        assert pretty.body == (json.dumps(plain.json, indent=2, ensure_ascii=False) + "\n").encode()
    assert plain.body.index(b"\n") == len(plain.body) - 1
    assert (await http.get(f"{namespace_path}/secrets/a", pretty="false")).body == plain.body


ACCEPTED: dict[str, tuple[str, str]] = {
    "nothing": ("", "Secret"),
    "anything": ("*/*", "Secret"),
    "the second choice": ("image/png, application/json", "Secret"),
    "a table, or else JSON": (f"{shaped('Table', 'v9')},application/json", "Secret"),
    "as kubectl asks": (
        f"{shaped('Table')},{shaped('Table', 'v1beta1')},application/json",
        "Table",
    ),
    "spaces": ("application/json; as=Table; v=v1; g=meta.k8s.io", "Table"),
    "what is wanted most": (f"application/json;q=0.5,{shaped('Table')};q=0.9", "Table"),
    "anything else, if need be": (f"*/*,{shaped('Table')}", "Table"),
    "what is wanted as much, in order": (
        f"{shaped('Table')};q=0.5,application/json;q=0.5",
        "Table",
    ),
    "a quality that is not a number": (f"{shaped('Table')};q=much,application/json", "Table"),
}


@pytest.mark.parametrize(("accept", "kind"), ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_accepted(http: Http, namespace_path: str, accept: str, kind: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    assert (await http.get(f"{namespace_path}/secrets/a", accept)).ok()["kind"] == kind


REFUSED = {
    "a picture": "image/png",
    "any application": "application/*",
    "an unknown shape": shaped("Poem"),
    "a table of another group": "application/json;as=Table;v=v1;g=example.com",
    "a table of another version": shaped("Table", "v2"),
}


@pytest.mark.parametrize("accept", REFUSED.values(), ids=REFUSED.keys())
async def test_refused(http: Http, namespace_path: str, accept: str) -> None:
    answer = await http.get(f"{namespace_path}/secrets", accept)

    assert (answer.code, answer.json["reason"]) == (406, "NotAcceptable")


async def test_an_error_has_the_form_that_was_requested(http: Http, namespace_path: str) -> None:
    answer = await http.get(f"{namespace_path}/secrets/none", "application/yaml")

    assert (answer.code, answer.header("content-type")) == (404, "application/yaml")
    assert yaml.safe_load(answer.body)["message"] == 'secrets "none" not found'


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"])
async def test_discovery_in_yaml(http: Http, path: str) -> None:
    answer = await http.get(path, YAML)

    assert answer.header("content-type") == YAML
    assert yaml.safe_load(answer.body) == (await http.get(path)).ok()


async def test_a_watch_in_yaml_is_refused(http: Http, namespace_path: str) -> None:
    answer = await http.get(f"{namespace_path}/secrets", "application/yaml", watch="true")

    assert answer.code == 406
    assert "application/json;stream=watch" in yaml.safe_load(answer.body)["message"]


async def test_an_empty_list_of_metadata_has_no_items(http: Http, namespace_path: str) -> None:
    listed = await http.get(f"{namespace_path}/secrets", shaped("PartialObjectMetadataList"))

    assert listed.ok()["items"] is None


TIMEOUTS: dict[str, tuple[str, int]] = {
    "seconds": ("5s", 200),
    "several units": ("1h2m3.5s", 200),
    "negative": ("-5s", 200),
    "zero": ("0", 200),
    "no unit": ("5", 400),
    "no number": ("s", 400),
    "an unknown unit": ("5d", 400),
    "a word": ("soon", 400),
}


@pytest.mark.parametrize(("text", "code"), TIMEOUTS.values(), ids=TIMEOUTS.keys())
async def test_timeouts(http: Http, namespace_path: str, text: str, code: int) -> None:
    assert (await http.get(f"{namespace_path}/secrets", timeout=text)).code == code


async def test_metadata_of_the_wrong_number(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    one = await http.get(f"{namespace_path}/secrets/a", shaped("PartialObjectMetadataList"))
    many = await http.get(f"{namespace_path}/secrets", shaped("PartialObjectMetadata"))

    assert (one.code, one.json["reason"], one.message) == (
        406,
        "NotAcceptable",
        "you requested PartialObjectMetadataList, but the requested object is not a list"
        " (*core.Secret)",
    )
    assert (many.code, many.message) == (
        406,
        "you requested PartialObjectMetadata, but the requested object is a list"
        " (*core.SecretList)",
    )


INSIDE = {
    "/apis/cluster.open-cluster-management.io/v1/managedclusters": "*unstructured.UnstructuredList",
    "/apis/events.k8s.io/v1/events": "*core.EventList",
    "/apis/resource.k8s.io/v1/deviceclasses": "*resource.DeviceClassList",
}


@pytest.mark.parametrize(("path", "want"), INSIDE.items())
async def test_the_name_that_a_list_has_inside(http: Http, path: str, want: str) -> None:
    answer = await http.get(path, shaped("PartialObjectMetadata"))

    assert answer.message.endswith(f"is a list ({want})")


async def test_rows_with_something_else(http: Http, namespace_path: str) -> None:
    for path in (f"{namespace_path}/secrets", f"{namespace_path}/secrets?watch=1"):
        answer = await http.get(path, shaped("Table"), includeObject="Maybe")

        assert (answer.code, answer.message) == (
            400,
            'Unable to convert to Table as requested: includeObject: Invalid value: "Maybe":'
            " must be"
            " 'Metadata', 'Object', 'None', or empty",
        )


async def test_every_kind_prints() -> None:
    """Any object that can be stored can be printed, also an empty list of it."""
    async with local() as server:
        for resource in server.api.scheme.resources():
            for version in resource.versions:
                if not version.enabled or "list" not in resource.verbs:
                    continue
                prefix = f"/apis/{resource.group}" if resource.group else "/api"
                path = f"{prefix}/{version.name}/{resource.plural}"
                table: Obj = (await server.get(path, shaped("Table"))).ok()
                assert table["columnDefinitions"][0]["name"] in ("Name", "Last Seen"), path


@pytest.mark.parametrize("shape", ["Table", "PartialObjectMetadata"])
async def test_watches_in_other_forms(http: Http, namespace_path: str, shape: str) -> None:
    path = f"{namespace_path}/secrets"
    start = (await http.get(path)).ok()["metadata"]["resourceVersion"]
    (await http.post(path, secret("a"))).ok(201)

    async with http.watch(path, shaped(shape), resourceVersion=start) as lines:
        (await http.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})).ok()
        events: list[Any] = await lines.take(2)

    objects = [event["object"] for event in events]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED"]
    assert {obj["kind"] for obj in objects} == {shape}
    if shape == "Table":
        # Columns are reported once.
        assert objects[0]["columnDefinitions"][0]["name"] == "Name"
        assert objects[1]["columnDefinitions"] is None
        assert [obj["rows"][0]["cells"][0] for obj in objects] == ["a", "a"]
    else:
        assert [obj["metadata"].get("labels") for obj in objects] == [None, {"a": "b"}]


ENCODINGS = {
    "none asked for": ("", 200_000, ""),
    "gzip, and much to send": ("gzip", 200_000, "gzip"),
    "gzip among others": ("br, gzip", 200_000, "gzip"),
    "gzip, and little to send": ("gzip", 100, ""),
    "only others": ("br, deflate", 200_000, ""),
}


@pytest.mark.parametrize(("accept", "size", "want"), ENCODINGS.values(), ids=ENCODINGS.keys())
async def test_large_answers_are_compressed_for_who_wants_it(
    calm: Asgi, accept: str, size: int, want: str
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    (await calm.post(path, {"metadata": {"name": "a"}, "data": {"k": "x" * size}})).ok(201)
    plain = await calm.get(path)

    answer = await calm.call("GET", path, headers={"accept-encoding": accept})

    assert answer.header("content-encoding") == want
    # What is large is encoded while it is sent, so its length is unknown.
    assert answer.header("content-length") == ("" if size > 2 * PIECE else str(len(answer.body)))
    assert bool(answer.header("vary")) == bool(want)
    assert (gzip.decompress(answer.body) if want else answer.body) == plain.body


@pytest.mark.parametrize("shape", ["", shaped("Table"), shaped("PartialObjectMetadataList")])
async def test_a_large_list_has_the_bytes_of_a_small_one(calm: Asgi, shape: str) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    metadata = {"annotations": {"much": "x" * 3000}}
    for number in range(100):
        body = {"metadata": {"name": f"a{number:03}", **metadata}}
        (await calm.post(path, body)).ok(201)

    whole = await calm.get(path, shape)
    pages, token = list[Obj](), ""
    while not pages or token:
        page = (
            await calm.get(path, shape, limit="10", **{"continue": token} if token else {})
        ).json
        pages.append(page)
        token = page["metadata"].get("continue", "")

    rows = "rows" if "Table" in shape else "items"
    assert whole.header("content-length") == ""
    assert len(whole.body) > 2 * PIECE
    assert whole.json[rows] == [row for page in pages for row in page[rows]]
    # One spelling: whoever encodes the whole list together gets the same bytes.
    assert whole.body == to_json(whole.json) + b"\n"


async def test_initial_events_as_tables_end_with_a_row(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    async with http.watch(f"{namespace_path}/secrets", shaped("Table"), **INITIAL) as lines:
        first, mark = await lines.take(2)

    assert (first["type"], mark["type"]) == ("ADDED", "BOOKMARK")
    version = mark["object"]["metadata"]["resourceVersion"]
    assert mark["object"]["columnDefinitions"] is None
    assert mark["object"]["rows"] == [
        {
            "cells": ["", "", 0, "<unknown>"],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {
                    "resourceVersion": version,
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            },
        }
    ]


async def test_every_kind_has_a_row_for_bookmarks(http: Http) -> None:
    groups = (await http.get("/apis")).ok()["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    for base in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        for resource in (await http.get(base)).ok()["resources"]:
            if "watch" not in resource["verbs"] or "/" in resource["name"]:
                continue
            only = {**INITIAL, "fieldSelector": "metadata.name=none"}
            async with http.watch(f"{base}/{resource['name']}", shaped("Table"), **only) as lines:
                (mark,) = await lines.take(1)
            (row,) = mark["object"]["rows"]
            columns = mark["object"]["columnDefinitions"]
            assert (mark["type"], len(row["cells"])) == ("BOOKMARK", len(columns)), resource
