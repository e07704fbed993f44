"""Tokens over the wire: requesting, using and reviewing them, and the user of each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from server.authentication.tables import decode
from serving import Answer, Http, connected, fresh
from sully.app import MAX_TOKEN_SECONDS, RunningControlPlane
from sully.machinery.compat import Compat
from sully.server.authentication.tokens import ISSUER
from sully.testing.clock import FakeClock
from sully.testing.cluster import in_process

pytestmark = pytest.mark.asyncio(loop_scope="session")
Obj = dict[str, Any]
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
POD: Obj = {"spec": {"containers": [{"name": "c", "image": "example.com/none:1"}]}}


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(shared_plane: RunningControlPlane) -> AsyncIterator[Http]:
    """Call without a certificate."""
    async with connected(shared_plane, user="") as caller:
        yield caller


async def account(http: Http, namespace_path: str) -> str:
    """Make a service account; return its path."""
    name = fresh("robot")
    (await http.post(f"{namespace_path}/serviceaccounts", {"metadata": {"name": name}})).ok(201)
    return f"{namespace_path}/serviceaccounts/{name}"


async def token_of(http: Http, path: str, **spec: Any) -> str:
    answer = (await http.post(f"{path}/token", {"spec": spec})).ok(201)
    return str(answer["status"]["token"])


async def using(stranger: Http, token: str, path: str = "/api/v1/namespaces") -> Answer:
    return await stranger.call("GET", path, headers={"authorization": f"Bearer {token}"})


def claims_of(token: str) -> Obj:
    document: Obj = json.loads(decode(token.split(".")[1]))
    return document


async def test_a_request_with_fields_that_do_not_exist(http: Http, namespace_path: str) -> None:
    path, body = f"{await account(http, namespace_path)}/token", {"spec": {"odd": 1}}

    strict = await http.post(path, body, fieldValidation="Strict")
    warned = await http.post(path, body)

    assert (strict.code, warned.code) == (400, 201)
    assert 'strict decoding error: unknown field "spec.odd"' in strict.message
    assert warned.warnings == ['299 - "unknown field \\"spec.odd\\""']


async def review(http: Http, token: str, **spec: Any) -> Obj:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token, **spec},
    }
    result: Obj = (await http.post(REVIEWS, body)).ok(201)
    return result


async def test_the_answer_is_the_request_with_a_token(http: Http, namespace_path: str) -> None:
    path = await account(http, namespace_path)
    uid = (await http.get(path)).ok()["metadata"]["uid"]

    answer = (await http.post(f"{path}/token", {})).ok(201)

    namespace, name = path.split("/")[4], path.split("/")[-1]
    claims = claims_of(answer["status"].pop("token"))
    made = datetime.fromisoformat(answer["metadata"]["creationTimestamp"])
    ends = datetime.fromisoformat(answer["status"].pop("expirationTimestamp"))
    assert ends - made == timedelta(hours=1)
    assert answer["kind"] == "TokenRequest"
    assert answer["apiVersion"] == "authentication.k8s.io/v1"
    assert (answer["metadata"]["name"], answer["metadata"]["namespace"]) == (name, namespace)
    assert answer["metadata"]["uid"] == uid
    assert answer["spec"] == {
        "audiences": [ISSUER],
        "boundObjectRef": None,
        "expirationSeconds": 3600,
    }
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["sub"] == f"system:serviceaccount:{namespace}:{name}"
    assert claims["kubernetes.io"] == {
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": uid},
    }
    (entry,) = answer["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:expirationSeconds": {}}}
    assert entry["subresource"] == "token"


async def test_no_token_of_a_recreated_account(http: Http, namespace_path: str) -> None:
    path = await account(http, namespace_path)
    uid = (await http.get(path)).ok()["metadata"]["uid"]

    same = await http.post(f"{path}/token", {"metadata": {"uid": uid}})
    other = await http.post(f"{path}/token", {"metadata": {"uid": "other"}})

    assert (same.code, other.code) == (201, 409)
    text = f"request (other) does not match the UID of the service account ({uid})"
    assert text in other.message


async def test_two_tokens_differ(http: Http, namespace_path: str) -> None:
    path = await account(http, namespace_path)

    assert await token_of(http, path) != await token_of(http, path)


async def test_a_token_opens_and_its_account_closes(
    http: Http, namespace_path: str, stranger: Http
) -> None:
    path = await account(http, namespace_path)
    token = await token_of(http, path)

    # Known, though it may do nothing yet.
    assert (await using(stranger, token)).code == 403
    (await http.delete(path)).ok()
    assert (await using(stranger, token)).code == 401
    (await http.post(path.rpartition("/")[0], {"metadata": {"name": path.split("/")[-1]}})).ok(201)
    answer = await using(stranger, token)

    assert answer.code == 401
    assert answer.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


# header → code for a list of namespaces
HEADERS = {
    "": 401,
    "Bearer": 401,
    "Bearer ": 401,
    "Bearer nonsense": 401,
    "Bearer a.b.c": 401,
    "Basic YTpi": 401,
    "Token nonsense": 401,
    "bearer nonsense": 401,
}


@pytest.mark.parametrize("header", HEADERS)
async def test_bad_credentials(header: str, stranger: Http) -> None:
    answer = await stranger.call("GET", "/api/v1/namespaces", headers={"authorization": header})

    assert answer.code == HEADERS[header]
    assert answer.message == "Unauthorized"


@pytest.mark.parametrize(
    ("header", "code"), [("", 200), ("Basic YTpi", 200), ("Bearer nonsense", 401)]
)
async def test_public_pages_refuse_only_the_bad(header: str, code: int, stranger: Http) -> None:
    answer = await stranger.call("GET", "/readyz", headers={"authorization": header})

    assert answer.code == code


async def test_the_word_bearer_in_any_case(http: Http, namespace_path: str, stranger: Http) -> None:
    token = await token_of(http, await account(http, namespace_path))

    answer = await stranger.call(
        "GET", "/api/v1/namespaces", headers={"authorization": f"bEARER {token}"}
    )
    assert answer.code == 403


LESS, MORE = "less than 10 minutes", "larger than 2^32 seconds"
# name → (body, code, text)
BAD_REQUESTS: dict[str, tuple[Obj, int, str]] = {
    "too short": (
        {"spec": {"expirationSeconds": 599}},
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds:'
        f" Invalid value: 599: may not specify a duration {LESS}",
    ),
    "too long": (
        {"spec": {"expirationSeconds": 2**32 + 1}},
        422,
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds:'
        f" Invalid value: 4294967297: may not specify a duration {MORE}",
    ),
    "another name": (
        {"metadata": {"name": "other"}},
        422,
        'TokenRequest.authentication.k8s.io "NAME" is invalid: metadata.name: Invalid value:'
        ' "other": must match the service account name if specified',
    ),
    "another namespace": (
        {"metadata": {"namespace": "other"}},
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "a missing pod": (
        {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}},
        404,
        'pods "none" not found',
    ),
    "a missing secret": (
        {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "none"}}},
        404,
        'secrets "none" not found',
    ),
    "a kind that cannot be bound": (
        {"spec": {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}},
        400,
        "cannot bind token to object of type apps/v1, Kind=Deployment",
    ),
    "another kind": (
        {"apiVersion": "v1", "kind": "Pod"},
        400,
        'Pod in version "v1" cannot be handled as a TokenRequest: converting (v1.Pod) to'
        " (authentication.TokenRequest): unknown conversion",
    ),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
async def test_requests_that_are_refused(name: str, http: Http, namespace_path: str) -> None:
    body, code, text = BAD_REQUESTS[name]
    path = await account(http, namespace_path)

    answer = await http.post(f"{path}/token", body)

    assert answer.code == code
    assert answer.message == text.replace("NAME", path.split("/")[-1])


async def test_no_token_without_an_account(http: Http, namespace_path: str) -> None:
    answer = await http.post(f"{namespace_path}/serviceaccounts/nobody/token", {})

    assert (answer.code, answer.message) == (404, 'serviceaccounts "nobody" not found')


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_tokens_can_only_be_asked_for(method: str, http: Http, namespace_path: str) -> None:
    path = await account(http, namespace_path)

    assert (await http.call(method, f"{path}/token", {})).code == 405


async def test_a_very_long_life_is_shortened(http: Http, namespace_path: str) -> None:
    path = await account(http, namespace_path)

    answer = await http.post(f"{path}/token", {"spec": {"expirationSeconds": 2**32}})

    assert answer.ok(201)["spec"]["expirationSeconds"] == MAX_TOKEN_SECONDS
    claims = claims_of(answer.json["status"]["token"])
    assert claims["exp"] - claims["iat"] == MAX_TOKEN_SECONDS
    assert answer.warnings == [
        '299 - "requested expiration of 4294967296 seconds shortened to 31536000 seconds"'
    ]


async def test_bound_to_a_pod(http: Http, namespace_path: str, stranger: Http) -> None:
    path = await account(http, namespace_path)
    name = path.split("/")[-1]
    pod = {**POD, "metadata": {"name": "web"}}
    pod["spec"] = {**POD["spec"], "serviceAccountName": name}
    made = (await http.post(f"{namespace_path}/pods", pod)).ok(201)
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "web"}

    token = await token_of(http, path, boundObjectRef=ref)
    again = await http.post(f"{path}/token", {"spec": {"boundObjectRef": {**ref, "uid": "other"}}})

    uid = made["metadata"]["uid"]
    assert claims_of(token)["kubernetes.io"]["pod"] == {"name": "web", "uid": uid}
    assert (again.code, again.message) == (
        409,
        'Operation cannot be fulfilled on Pod "web": the UID in the bound object reference'
        " (other) does not match the UID in record. The object might have been deleted and then"
        " recreated",
    )
    assert (await using(stranger, token)).code == 403
    (await http.delete(f"{namespace_path}/pods/web", gracePeriodSeconds="0")).ok()
    assert (await using(stranger, token)).code == 401


async def test_not_bound_to_a_pod_of_another_account(http: Http, namespace_path: str) -> None:
    mine, other = await account(http, namespace_path), await account(http, namespace_path)
    pod = {**POD, "metadata": {"name": "web"}}
    pod["spec"] = {**POD["spec"], "serviceAccountName": other.split("/")[-1]}
    (await http.post(f"{namespace_path}/pods", pod)).ok(201)
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "web"}

    answer = await http.post(f"{mine}/token", {"spec": {"boundObjectRef": ref}})

    assert (answer.code, answer.message) == (
        400,
        f'cannot bind token for serviceaccount "{mine.split("/")[-1]}" to pod running with'
        " different serviceaccount name.",
    )


async def test_a_token_for_others_does_not_open_ours(
    http: Http, namespace_path: str, stranger: Http
) -> None:
    token = await token_of(http, await account(http, namespace_path), audiences=["vault"])

    assert (await using(stranger, token)).code == 401
    result = await review(http, token, audiences=["vault", "consul"])
    assert result["status"]["authenticated"] is True
    assert result["status"]["audiences"] == ["vault"]


async def test_reviewing_a_good_token(http: Http, namespace_path: str) -> None:
    path = await account(http, namespace_path)
    token = await token_of(http, path)
    namespace, name = path.split("/")[4], path.split("/")[-1]
    uid = (await http.get(path)).ok()["metadata"]["uid"]

    result = await review(http, token)

    (entry,) = result["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:token": {}}}
    assert result["spec"] == {"token": token}
    assert result["status"] == {
        "authenticated": True,
        "user": {
            "username": f"system:serviceaccount:{namespace}:{name}",
            "uid": uid,
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{namespace}",
                "system:authenticated",
            ],
            "extra": {
                "authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)['jti']}"]
            },
        },
        "audiences": [ISSUER],
    }


async def test_reviewing_a_bad_token(http: Http) -> None:
    result = await review(http, "nonsense")

    assert result["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_reviewing_nothing(http: Http) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}

    answer = await http.post(REVIEWS, body)

    assert (answer.code, answer.message) == (
        400,
        "token is required for TokenReview in authentication",
    )


@pytest.mark.parametrize("path", [REVIEWS, WHOAMI])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_reviews_are_not_kept(method: str, path: str, http: Http) -> None:
    assert (await http.call(method, path)).code == 405


async def who(http: Http, **headers: str) -> Obj:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = (await http.call("POST", WHOAMI, body, headers=sent)).ok(201)
    assert list(answer["metadata"]) == ["creationTimestamp"]
    user_info: Obj = answer["status"]["userInfo"]
    return user_info


async def test_the_user_of_a_certificate(http: Http) -> None:
    result = await who(http)

    (credential,) = result["extra"]["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")
    assert (result["username"], result["groups"]) == (
        "tester",
        ["system:masters", "system:authenticated"],
    )


async def test_a_bad_token_beside_a_certificate_is_not_looked_at(http: Http) -> None:
    assert (await who(http, authorization="Bearer nonsense"))["username"] == "tester"


async def test_the_keys_are_public_knowledge(http: Http) -> None:
    keys = (await http.get("/openid/v1/jwks", "application/jwk-set+json")).ok()["keys"]
    configuration = (await http.get("/.well-known/openid-configuration")).ok()

    assert [key["alg"] for key in keys] == ["ES256"]
    assert configuration["issuer"] == ISSUER
    assert configuration["jwks_uri"] == f"{http.url}/openid/v1/jwks"


@pytest.mark.parametrize("accept", ["application/json", "application/*", "text/html"])
async def test_the_keys_have_one_form(http: Http, accept: str) -> None:
    answer = await http.get("/openid/v1/jwks", accept)

    assert answer.code == 406
    assert answer.message.endswith("Available representations: application/jwk-set+json")


async def test_kubernetes_lets_its_rules_decide_about_strangers() -> None:
    async with (
        in_process(compat=Compat.KUBERNETES) as plane,
        connected(plane, user="") as stranger,
    ):
        answer = await stranger.get("/api/v1/namespaces")
        bad = await using(stranger, "nonsense")

    assert (answer.code, answer.message) == (
        403,
        'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces"'
        ' in API group "" at the cluster scope',
    )
    assert bad.code == 401


async def test_time_ends_tokens_and_certificates() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with (
        in_process(clock=clock) as plane,
        connected(plane) as admin,
        connected(plane, user="") as stranger,
    ):
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        token = await token_of(admin, path, expirationSeconds=600)
        clock.advance(599)
        assert (await using(stranger, token)).code == 403
        clock.advance(1)
        assert (await using(stranger, token)).code == 401
        # The connection was made long ago; the certificate it showed ends all the same.
        clock.advance(timedelta(days=365).total_seconds())
        assert (await admin.get("/api/v1/namespaces")).code == 401
