"""GET: selectors, pages of one state, versions and how they are matched."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests import TWO, pod, secret
from property_examples import examples
from serving import Asgi, Obj, local
from sully.server.storage.continue_tokens import write_token

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"


def names(listing: Obj) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[Asgi]:
    """Serve five secrets, a pod elsewhere, and nothing that moves by itself."""
    async with local() as made:
        labels: tuple[dict[str, str], ...] = (
            {},
            {"tier": "a"},
            {"tier": "b"},
            {"tier": "a", "x": "1"},
            {"tier": ""},
        )
        for number, given_labels in enumerate(labels):
            (await made.post(SECRETS, secret(f"s{number}", labels=given_labels))).ok(201)
        elsewhere = "/api/v1/namespaces/kube-system/secrets"
        (await made.post(elsewhere, secret("s0", labels={"tier": "a"}))).ok(201)
        yield made


SELECTED: dict[str, tuple[dict[str, str], list[str]]] = {
    "everything": ({}, ["s0", "s1", "s2", "s3", "s4"]),
    "equal": ({"labelSelector": "tier=a"}, ["s1", "s3"]),
    "equal to nothing": ({"labelSelector": "tier="}, ["s4"]),
    "different, or without": ({"labelSelector": "tier!=a"}, ["s0", "s2", "s4"]),
    "one of": ({"labelSelector": "tier in (a,b)"}, ["s1", "s2", "s3"]),
    "none of": ({"labelSelector": "tier notin (a,b)"}, ["s0", "s4"]),
    "with": ({"labelSelector": "tier"}, ["s1", "s2", "s3", "s4"]),
    "without": ({"labelSelector": "!tier"}, ["s0"]),
    "greater": ({"labelSelector": "x>0"}, ["s3"]),
    "both": ({"labelSelector": "tier=a,x"}, ["s3"]),
    "by name": ({"fieldSelector": "metadata.name=s2"}, ["s2"]),
    "by another name": ({"fieldSelector": "metadata.name!=s2"}, ["s0", "s1", "s3", "s4"]),
    "by two names": ({"fieldSelector": "metadata.name=s2,metadata.name=s3"}, []),
    "by nothing": ({"fieldSelector": "=,=="}, ["s0", "s1", "s2", "s3", "s4"]),
    "by namespace": ({"fieldSelector": "metadata.namespace=other"}, []),
    "by a field of the kind": ({"fieldSelector": "type=Opaque"}, ["s0", "s1", "s2", "s3", "s4"]),
    "by label and field": (
        {"labelSelector": "tier=a", "fieldSelector": "metadata.name=s3"},
        ["s3"],
    ),
}


@pytest.mark.parametrize(("query", "want"), SELECTED.values(), ids=SELECTED.keys())
async def test_selectors(server: Asgi, query: dict[str, str], want: list[str]) -> None:
    assert names((await server.get(SECRETS, **query)).ok()) == want


async def test_all_namespaces_in_order(server: Asgi) -> None:
    body = (await server.get("/api/v1/secrets", labelSelector="tier=a")).ok()

    where = [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in body["items"]]
    assert where == [("default", "s1"), ("default", "s3"), ("kube-system", "s0")]


async def test_pods_by_what_happens_to_them(calm: Asgi) -> None:
    bound = pod("b") | {"spec": pod("b")["spec"] | {"nodeName": "n1"}}
    (await calm.post("/api/v1/namespaces/default/pods", pod("a"))).ok(201)
    (await calm.post("/api/v1/namespaces/default/pods", bound)).ok(201)

    for selector, want in {
        "spec.nodeName=n1": ["b"],
        "spec.nodeName=": ["a"],
        "status.phase=Pending": ["a", "b"],
        "spec.nodeName!=n1,status.phase!=Failed": ["a"],
    }.items():
        assert (
            names((await calm.get("/api/v1/namespaces/default/pods", fieldSelector=selector)).ok())
            == want
        )


BAD_OPTIONS: dict[str, tuple[dict[str, str], int, str]] = {
    "label selector": ({"labelSelector": "a in ("}, 400, "unable to parse requirement"),
    "label key": ({"labelSelector": "a b"}, 400, "found 'b', expected"),
    "field selector": ({"fieldSelector": "a"}, 400, "invalid selector: 'a'; can't understand 'a'"),
    "token of another kind": ({"continue": "e30"}, 400, "does not recognize this encoded version"),
    "field": ({"fieldSelector": "spec.x=1"}, 400, "field label not supported: spec.x"),
    "timeout": ({"timeoutSeconds": "soon"}, 400, 'ParseInt: parsing "soon": invalid syntax'),
    "limit": ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    "empty limit": ({"limit": ""}, 400, 'strconv.ParseInt: parsing "": invalid syntax'),
    "empty timeout": ({"timeoutSeconds": ""}, 400, 'ParseInt: parsing "": invalid syntax'),
    "limit in another script": ({"limit": "１"}, 400, 'parsing "１": invalid syntax'),
    "limit too large": ({"limit": "9" * 5000}, 400, "value out of range"),
    "version": (
        {"resourceVersion": "x"},
        400,
        'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing'
        ' "x": invalid syntax',
    ),
    "version of too many digits": ({"resourceVersion": "1" * 5000}, 400, "value out of range"),
    "version in the future": ({"resourceVersion": "999999"}, 504, "Too large resource version"),
    "token": ({"continue": "x"}, 400, "continue key is not valid"),
    "token and version": (
        {"continue": write_token("default", ("default", "s1"), 3), "resourceVersion": "5"},
        400,
        "specifying resource version is not allowed when using continue",
    ),
    "initial events": (
        {"sendInitialEvents": "true"},
        422,
        "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
    ),
}


@pytest.mark.parametrize(("query", "code", "text"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
async def test_bad_options(server: Asgi, query: dict[str, str], code: int, text: str) -> None:
    answer = await server.get(SECRETS, **query)

    assert answer.code == code
    assert text in answer.message


@pytest.mark.parametrize(
    "path", ["/api/v1/nodes", "/apis/resource.k8s.io/v1/resourceslices", "/api/v1/namespaces"]
)
async def test_kinds_outside_of_namespaces_with_fields_of_their_own(
    server: Asgi, path: str
) -> None:
    answer = await server.get(path, fieldSelector="metadata.namespace=x")

    assert answer.code == 400
    assert "field label not supported" in answer.message
    assert "metadata.namespace" in answer.message


V1 = "meta.k8s.io/v1"
FORGED: dict[str, tuple[Any, str]] = {
    "no object": ([1], ": json: cannot unmarshal array into Go value of type continueToken"),
    "no version": ({"rv": 5}, ": server does not recognize this encoded version "),
    "another version": (
        {"v": "v9", "rv": 5, "start": "a"},
        ": server does not recognize this encoded version v9",
    ),
    "no revision": (
        {"v": V1, "start": "a"},
        f": incorrect encoded start resourceVersion (version {V1})",
    ),
    "no start": ({"v": V1, "rv": 5}, f": encoded start key empty (version {V1})"),
    "out of the collection": ({"v": V1, "rv": 5, "start": "../a"}, ": ../a"),
    "a list to start from": (
        {"v": V1, "rv": 5, "start": ["a", "b"]},
        ": json: cannot unmarshal array into Go struct field continueToken.start of type string",
    ),
    "a text for a revision": (
        {"v": V1, "rv": "5", "start": "a"},
        ": json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
    ),
    "a fraction for a revision": (
        {"v": V1, "rv": 1.5, "start": "a"},
        ": json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
    ),
}


@pytest.mark.parametrize(("token", "why"), FORGED.values(), ids=FORGED.keys())
async def test_forged_tokens(server: Asgi, token: Any, why: str) -> None:
    text = base64.urlsafe_b64encode(json.dumps(token).encode()).rstrip(b"=").decode()

    answer = await server.get(SECRETS, **{"continue": text})

    assert answer.code == 400
    assert answer.message == f"invalid continue token: continue key is not valid{why}"


NO_TOKENS = {
    "garbage!": "illegal base64 data at input byte 7",
    "x": "illegal base64 data at input byte 0",
    "e30=": "illegal base64 data at input byte 3",
    "eyI": "unexpected end of JSON input",
}


@pytest.mark.parametrize("token", NO_TOKENS)
async def test_what_is_not_a_token(server: Asgi, token: str) -> None:
    answer = await server.get(SECRETS, **{"continue": token})

    assert answer.code == 400
    why = f"continue key is not valid: {NO_TOKENS[token]}"
    assert answer.message == f"invalid continue token: {why}"


# What a list shows for a version and a match rule; "" means neither is given.
# now: the newest state; then: the state at the version; else the code.
MATCHES: dict[tuple[str, str], str] = {
    ("", ""): "now",
    ("0", ""): "now",
    ("then", ""): "now",
    ("", "NotOlderThan"): "422",
    ("0", "NotOlderThan"): "now",
    ("then", "NotOlderThan"): "now",
    ("future", "NotOlderThan"): "504",
    ("", "Exact"): "422",
    ("0", "Exact"): "422",
    ("then", "Exact"): "then",
    ("future", "Exact"): "504",
    ("then", "Near"): "422",
    ("", "Near"): "422",
}


@pytest.mark.parametrize("selector", ["labelSelector", "fieldSelector"])
async def test_bad_selectors_come_before_bad_options(server: Asgi, selector: str) -> None:
    query = {selector: "-x", "resourceVersionMatch": "Near"}

    answer = await server.get(SECRETS, **query)

    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("limit", ["", "2"])
@pytest.mark.parametrize(
    ("version", "match", "want"),
    [(version, match, want) for (version, match), want in MATCHES.items()],
)
async def test_versions_and_matches(
    server: Asgi, version: str, match: str, want: str, limit: str
) -> None:
    then = (await server.get(SECRETS)).ok()["metadata"]["resourceVersion"]
    (await server.delete(f"{SECRETS}/s0")).ok()
    query = {
        "resourceVersion": {"then": then, "future": str(int(then) + 1000)}.get(version, version),
        "resourceVersionMatch": match,
        "limit": limit,
    }

    answer = await server.get(SECRETS, **{k: v for k, v in query.items() if v})

    if want.isdigit():
        assert answer.code == int(want), answer.body
        return
    # Without a rule, a page of an old version shows that version.
    old = want == "then" or (limit and version == "then" and not match)
    first = ["s0", "s1", "s2", "s3", "s4"] if old else ["s1", "s2", "s3", "s4"]
    # A list of any version has no pages.
    assert names(answer.ok()) == first[: int(limit) if limit and version != "0" else None]
    shown = int(answer.json["metadata"]["resourceVersion"])
    assert shown == int(then) if old else shown > int(then)


async def test_get_at_least_as_new_as(server: Asgi) -> None:
    version = (await server.get(SECRETS)).ok()["metadata"]["resourceVersion"]

    assert (await server.get(f"{SECRETS}/s1", resourceVersion="0")).code == 200
    assert (await server.get(f"{SECRETS}/s1", resourceVersion=version)).code == 200
    late = await server.get(f"{SECRETS}/s1", resourceVersion=str(int(version) + 1))
    assert (late.code, late.header("retry-after")) == (504, "1")
    assert late.json["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


async def pages(server: Asgi, limit: int, between: Any, **query: str) -> list[Obj]:
    """Read a list page by page, letting something happen in between."""
    results = [(await server.get(SECRETS, limit=str(limit), **query)).ok()]
    while token := results[-1]["metadata"].get("continue"):
        await between()
        query_ = {**query, "limit": str(limit), "continue": token}
        results.append((await server.get(SECRETS, **query_)).ok())
    return results


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
async def test_pages_show_how_much_is_left(server: Asgi, limit: int) -> None:
    async def nothing() -> None: ...

    result = await pages(server, limit, nothing)

    left = [page["metadata"].get("remainingItemCount", 0) for page in result]
    assert left == [max(0, 5 - limit * (n + 1)) for n in range(len(result))]
    assert [len(page["items"]) for page in result] == [
        min(limit, 5 - limit * n) for n in range(len(result))
    ]


async def test_with_a_selector_nobody_counts(server: Asgi) -> None:
    first = (await server.get(SECRETS, limit="1", labelSelector="tier=a")).ok()

    assert names(first) == ["s1"]
    assert "remainingItemCount" not in first["metadata"]
    assert first["metadata"]["continue"]


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "delete", "change"]), st.integers(0, 9)), max_size=12
)


async def take(server: Asgi, step: Step) -> None:
    verb, number = step
    name = f"s{number}"
    if verb == "create":
        await server.post(SECRETS, secret(name, labels={"tier": "ab"[number % 2]}))
    elif verb == "delete":
        await server.delete(f"{SECRETS}/{name}")
    else:
        await server.patch(f"{SECRETS}/{name}", {"data": {"k": TWO}})


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(
    before=STEPS,
    during=STEPS,
    limit=st.integers(1, 4),
    selector=st.sampled_from(["", "tier=a", "tier!=a", "!tier"]),
)
async def test_pages_together_are_one_state(
    before: list[Step], during: list[Step], limit: int, selector: str
) -> None:
    async with local() as server:
        for step in before:
            await take(server, step)
        query = {"labelSelector": selector} if selector else {}
        whole = (await server.get(SECRETS, **query)).ok()
        steps = iter(during)

        async def write() -> None:
            for step in (next(steps, None), next(steps, None)):
                if step is not None:
                    await take(server, step)

        result = await pages(server, limit, write, **query)

        assert [item for page in result for item in page["items"]] == whole["items"]
        versions = {page["metadata"]["resourceVersion"] for page in result}
        assert versions == {whole["metadata"]["resourceVersion"]}


async def test_an_expired_token_offers_another(server: Asgi) -> None:
    first = (await server.get(SECRETS, limit="2")).ok()
    for name in ("s0", "s3"):
        (await server.delete(f"{SECRETS}/{name}")).ok()
    (await server.post(SECRETS, secret("s9"))).ok(201)
    await server.store.compact(server.store.revision)

    answer = await server.get(SECRETS, limit="2", **{"continue": first["metadata"]["continue"]})

    assert (answer.code, answer.json["reason"]) == (410, "Expired")
    assert "use the continue token in this response" in answer.message
    token = answer.json["metadata"]["continue"]
    # The rest as it is now, and no longer as it was.
    rest = (await server.get(SECRETS, **{"continue": token})).ok()
    assert names(rest) == ["s2", "s4", "s9"]


async def test_a_version_that_is_gone(server: Asgi) -> None:
    then = (await server.get(SECRETS)).ok()["metadata"]["resourceVersion"]
    (await server.delete(f"{SECRETS}/s0")).ok()
    await server.store.compact(server.store.revision)

    answer = await server.get(SECRETS, resourceVersion=then, resourceVersionMatch="Exact")

    assert (answer.code, answer.message) == (
        410,
        "The resourceVersion for the provided list is too old.",
    )
    (await server.get(SECRETS, resourceVersion=then)).ok()


async def test_what_is_not_there(server: Asgi) -> None:
    assert (await server.get(f"{SECRETS}/nothing")).message == 'secrets "nothing" not found'
    assert (await server.get("/api/v1/namespaces/nowhere/secrets")).ok()["items"] == []
    assert (await server.get("/api/v1/things")).code == 404
    assert (await server.get("/apis/nobody/v1/things")).body == b"404 page not found\n"
