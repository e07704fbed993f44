"""Who is let in: over real TLS, with and without certificates."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from manifests import RULES, secret
from serving import Http, client_tls, connected
from sully.app import RunningControlPlane
from sully.server.net.tls import Authority

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def nobody(shared_plane: RunningControlPlane) -> AsyncIterator[Http]:
    async with connected(shared_plane, user="") as caller:
        yield caller


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def jane(shared_plane: RunningControlPlane) -> AsyncIterator[Http]:
    async with connected(shared_plane, "jane", ("developers",)) as caller:
        yield caller


PRIVATE = [
    ("GET", "/api/v1/namespaces"),
    ("GET", "/api/v1/namespaces/default/secrets?watch=1"),
    ("POST", "/api/v1/namespaces/default/secrets"),
    ("PATCH", f"{RULES}/x"),
    ("DELETE", RULES),
    ("GET", "/metrics"),
    ("GET", "/api/v1/nothing"),
]


@pytest.mark.parametrize(("method", "path"), PRIVATE)
async def test_without_a_certificate(nobody: Http, method: str, path: str) -> None:
    answer = await nobody.call(method, path, {} if method in ("POST", "PATCH") else None)

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


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/readyz?verbose"])
async def test_what_everybody_may_see(nobody: Http, path: str) -> None:
    assert (await nobody.get(path)).code == 200


FORBIDDEN = {
    "a list": (
        "GET",
        "/api/v1/namespaces/default/secrets",
        'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the'
        ' namespace "default"',
        {"kind": "secrets"},
    ),
    "one object of the cluster": (
        "GET",
        f"{RULES}/x",
        'devicetaintrules.resource.k8s.io "x" is forbidden: User "jane" cannot get resource'
        ' "devicetaintrules" in API group "resource.k8s.io" at the cluster scope',
        {"name": "x", "group": "resource.k8s.io", "kind": "devicetaintrules"},
    ),
    "a watch": (
        "GET",
        "/api/v1/pods?watch=true",
        'pods is forbidden: User "jane" cannot watch resource "pods" in API group "" at the cluster'
        " scope",
        {"kind": "pods"},
    ),
    "a part": (
        "PATCH",
        "/api/v1/namespaces/default/pods/x/status",
        'pods "x" is forbidden: User "jane" cannot patch resource "pods/status" in API group "" in'
        ' the namespace "default"',
        {"name": "x", "kind": "pods"},
    ),
    "many deletions": (
        "DELETE",
        "/api/v1/namespaces/default/pods",
        'pods is forbidden: User "jane" cannot deletecollection resource "pods" in API group "" in'
        ' the namespace "default"',
        {"kind": "pods"},
    ),
    "a page": ("GET", "/metrics", 'forbidden: User "jane" cannot get path "/metrics"', {}),
}


@pytest.mark.parametrize(
    ("method", "path", "text", "details"), FORBIDDEN.values(), ids=FORBIDDEN.keys()
)
async def test_without_permission(
    jane: Http, method: str, path: str, text: str, details: dict[str, str]
) -> None:
    answer = await jane.call(method, path, {} if method == "PATCH" else None, "application/json")

    assert (answer.code, answer.message) == (403, text)
    assert answer.json["details"] == details


async def test_nothing_was_done_by_those_who_may_not(
    http: Http, namespace_path: str, jane: Http
) -> None:
    assert (await jane.post(f"{namespace_path}/secrets", secret("a"))).code == 403

    assert (await http.get(f"{namespace_path}/secrets")).ok()["items"] == []


async def test_a_certificate_of_another_user(shared_plane: RunningControlPlane) -> None:
    """A certificate that another authority signed does not even get through the handshake."""
    context = client_tls(shared_plane)
    foreign = shared_plane.config.data_dir / "foreign"
    foreign.mkdir(exist_ok=True)
    forged = Authority.open(foreign, shared_plane.api.clock.now()).client(
        "kubernetes-admin", ["system:masters"], shared_plane.api.clock.now()
    )
    (foreign / "admin.pem").write_bytes(forged.certificate + forged.key)
    context.load_cert_chain(foreign / "admin.pem")
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.get(f"{shared_plane.url}/api/v1/namespaces") as reply:
                await reply.read()


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/namespaces/default"])
async def test_methods_that_nobody_has(http: Http, method: str, path: str) -> None:
    answer = await http.call(method, path)

    assert answer.code == 405
    if method != "HEAD":
        assert answer.json["reason"] == "MethodNotAllowed"
