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
