"""LimitRanges of a namespace hold for the next write, and only there."""

from typing import Any

import pytest

from manifests import pod
from serving import Asgi
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
HERE, ELSEWHERE = "/api/v1/namespaces/default", "/api/v1/namespaces/other"
RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
}


@pytest.fixture
async def asgi() -> Asgi:
    made = Asgi(MemoryStore(), FakeClock())
    await made.api.limit_ranges.start()
    for name in ("default", "other"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await made.post("/api/v1/namespaces", namespace)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await made.post(f"/api/v1/namespaces/{name}/serviceaccounts", account)
    return made


def with_limit(cpu: str) -> Obj:
    body = pod("big")
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": cpu}}
    return body


async def test_a_pod_gets_defaults_and_is_limited(asgi: Asgi) -> None:
    await asgi.post(f"{HERE}/limitranges", RANGE)

    made = await asgi.post(f"{HERE}/pods", pod("a"))
    refused = await asgi.post(f"{HERE}/pods", with_limit("2"))
    other = await asgi.post(f"{ELSEWHERE}/pods", with_limit("2"))

    assert made.json["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "1"},
    }
    assert refused.code == 403
    assert refused.json["message"] == (
        'pods "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
    )
    assert other.code == 201


async def test_a_deleted_range_limits_nothing(asgi: Asgi) -> None:
    await asgi.post(f"{HERE}/limitranges", RANGE)
    await asgi.delete(f"{HERE}/limitranges/small")

    assert (await asgi.post(f"{HERE}/pods", with_limit("2"))).code == 201


async def test_a_change_of_a_pod_is_not_limited(asgi: Asgi) -> None:
    made = (await asgi.post(f"{HERE}/pods", with_limit("2"))).json
    await asgi.post(f"{HERE}/limitranges", RANGE)

    made["metadata"]["labels"] = {"a": "b"}

    assert (await asgi.put(f"{HERE}/pods/big", made)).code == 200
