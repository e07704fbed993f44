"""How responses end, and what is refused because no containers run."""

import pytest

from manifests import pod
from serving import Asgi
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def asgi() -> Asgi:
    made = Asgi(MemoryStore(), FakeClock())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    await made.post("/api/v1/namespaces", namespace)
    await made.post("/api/v1/namespaces/default/serviceaccounts", account)
    await made.post(PODS, pod("a"))
    return made


@pytest.mark.parametrize("path", [f"{PODS}/a", PODS, f"{PODS}/missing", "/api", "/apis"])
async def test_json_ends_with_a_newline(asgi: Asgi, path: str) -> None:
    assert (await asgi.get(path)).body.endswith(b"}\n")


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
async def test_what_needs_containers_is_refused_by_name(asgi: Asgi, subresource: str) -> None:
    answer = await asgi.get(f"{PODS}/a/{subresource}")

    assert answer.code == 404
    assert f"pods/{subresource} is not served: no containers run here" in answer.json["message"]


NODE = "/api/v1/nodes/none/proxy"
MISSING: dict[str, tuple[str, str, int, str]] = {
    "the log of a pod": ("GET", f"{PODS}/none/log", 404, 'pods "none" not found'),
    "a command in a pod": ("POST", f"{PODS}/none/exec", 404, 'pods "none" not found'),
    "a port of a pod": ("GET", f"{PODS}/none:80/proxy", 404, 'pods "none" not found'),
    "a path in a pod": ("DELETE", f"{PODS}/http:none:80/proxy/a/b", 404, 'pods "none" not found'),
    "a node": ("GET", NODE, 404, 'nodes "none" not found'),
    "metrics of a node": ("GET", f"{NODE}/metrics", 404, 'nodes "none" not found'),
    "a log that is written": (
        "POST",
        f"{PODS}/none/log",
        405,
        "the server does not allow this method on the requested resource",
    ),
    "a command that is replaced": (
        "PUT",
        f"{PODS}/none/exec",
        405,
        "the server does not allow this method on the requested resource",
    ),
}


@pytest.mark.parametrize(("method", "path", "code", "message"), MISSING.values(), ids=MISSING)
async def test_what_needs_containers_of_a_missing_object(
    asgi: Asgi, method: str, path: str, code: int, message: str
) -> None:
    answer = await asgi.call(method, path, None)

    assert (answer.code, answer.message) == (code, message)


async def test_a_path_behind_a_subresource_without_a_proxy_is_not_found(asgi: Asgi) -> None:
    answer = await asgi.get(f"{PODS}/a/log/x")

    assert answer.message == "the server could not find the requested resource"
