"""When the store cannot write: 503, and nothing is half there."""

import io
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from manifests import ONE, TWO, budget, lease, pod, secret
from serving import APPLY, MERGE, Asgi, local
from sully.runtime.log import configure
from sully.store.base import Commit, Op
from sully.store.errors import UnavailableError
from sully.store.memory import MemoryStore

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class FailingStore(MemoryStore):
    """A store whose disk is full from some commit on, until there is room again."""

    def __init__(self) -> None:
        super().__init__()
        self.good: int | None = None  # so many commits succeed from now; None: all

    async def commit(self, ops: Sequence[Op]) -> Commit:
        if self.good is not None:
            if self.good == 0:
                raise UnavailableError("the disk is full")
            self.good -= 1
        return await super().commit(ops)


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[Asgi]:
    async with local(FailingStore(), pods=True) as made:
        (await made.post(SECRETS, secret("a"))).ok(201)
        (await made.post(SECRETS, secret("held", finalizers=["x.io/f"]))).ok(201)
        (await made.post(PODS, pod("p", labels={"app": "x"}))).ok(201)
        (await made.post(BUDGETS, budget("pdb", 1, app="x"))).ok(201)
        (await made.delete(f"{SECRETS}/held")).ok()
        yield made


def fail(server: Asgi, *, after: int = 0) -> None:
    store = server.store
    assert isinstance(store, FailingStore)
    store.good = after


def recover(server: Asgi) -> None:
    store = server.store
    assert isinstance(store, FailingStore)
    store.good = None


CONFIG = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "n"}, "data": {"k": ONE}}
BINDING = {"metadata": {"name": "p"}, "target": {"name": "n1"}}
WRITES: dict[str, tuple[str, str, Any, str]] = {
    "create": ("POST", SECRETS, secret("n"), ""),
    "generated name": ("POST", SECRETS, secret(generateName="n-"), ""),
    "update": ("PUT", f"{SECRETS}/a", secret("a", TWO), ""),
    # It changes nothing, but what it would show must be durable.
    "update of nothing": ("PUT", f"{SECRETS}/a", secret("a"), ""),
    "create by update": ("PUT", f"{LEASES}/l", lease("l"), ""),
    "patch": ("PATCH", f"{SECRETS}/a", {"data": {"k": TWO}}, MERGE),
    "apply": ("PATCH", f"{SECRETS}/n?fieldManager=m", CONFIG, APPLY),
    "status": ("PATCH", f"{PODS}/p/status", {"status": {"message": "m"}}, MERGE),
    "binding": ("POST", f"{PODS}/p/binding", BINDING, ""),
    "eviction": ("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, ""),
    "delete": ("DELETE", f"{SECRETS}/a", None, ""),
    "delete many": ("DELETE", SECRETS, None, ""),
    "the last finalizer": ("PATCH", f"{SECRETS}/held", {"metadata": {"finalizers": None}}, MERGE),
    "delete a namespace": ("DELETE", "/api/v1/namespaces/kube-node-lease", None, ""),
}


async def world(server: Asgi) -> dict[str, Any]:
    result: dict[str, Any] = {"revision": server.store.revision}
    for path in (SECRETS, PODS, BUDGETS, LEASES, "/api/v1/namespaces"):
        result[path] = (await server.get(path)).ok()
    return result


@pytest.mark.parametrize(("method", "path", "body", "media"), WRITES.values(), ids=WRITES.keys())
async def test_a_write_that_cannot_be_stored(
    server: Asgi, method: str, path: str, body: Any, media: str
) -> None:
    before = await world(server)
    fail(server)

    answer = await server.call(method, path, body, media or "application/json")

    assert (answer.code, answer.json["reason"]) == (503, "ServiceUnavailable"), answer.body
    assert answer.message == "the write could not be stored: the disk is full"
    assert await world(server) == before
    recover(server)
    again = await server.call(method, path, body, media or "application/json")
    assert again.code in (200, 201), again.body


async def test_rejected_writes_are_logged_once_per_interval(server: Asgi) -> None:
    out = io.StringIO()
    configure("json", stream=out)
    fail(server)

    codes = [(await server.post(SECRETS, secret(f"n{number}"))).code for number in range(20)]

    assert codes == [503] * 20
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert (line["event"], line["level"]) == ("store rejected writes", "error")
    assert (line["count"], line["error"]) == (1, "the disk is full")


async def test_watchers_hear_nothing_of_it(server: Asgi) -> None:
    start = str(server.store.revision)
    fail(server)
    assert (await server.post(SECRETS, secret("lost"))).code == 503
    recover(server)
    (await server.post(SECRETS, secret("kept"))).ok(201)

    async with server.watch(SECRETS, resourceVersion=start) as answer:
        events = await answer.until(lambda a: bool(a.events))

    assert [event["object"]["metadata"]["name"] for event in events] == ["kept"]


async def test_a_dry_run_needs_no_disk(server: Asgi) -> None:
    fail(server)

    assert (await server.post(SECRETS, secret("n"), dryRun="All")).code == 201
    assert (await server.delete(f"{SECRETS}/a", dryRun="All")).code == 200
    assert (await server.get(SECRETS)).code == 200


async def test_an_eviction_that_breaks_off_can_be_repeated(server: Asgi) -> None:
    """It takes several writes; whichever fails, the pod goes in the end and is counted once."""
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    (await server.patch(f"{PODS}/p/status", running)).ok()
    generation = (await server.get(f"{BUDGETS}/pdb")).ok()["metadata"]["generation"]
    counted = dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 1)
    status = counted | {"disruptionsAllowed": 3, "observedGeneration": generation}
    (await server.patch(f"{BUDGETS}/pdb/status", {"status": status})).ok()
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}

    for good in range(5):
        fail(server, after=good)
        answer = await server.post(f"{PODS}/p/eviction", eviction)
        recover(server)
        if answer.code == 201:
            break
        assert answer.code == 503

    assert answer.code == 201
    assert (await server.get(f"{PODS}/p")).code == 404
    left = (await server.get(f"{BUDGETS}/pdb")).ok()["status"]
    # Spending too much of the budget is safe, spending too little is not.
    assert left["disruptionsAllowed"] <= 2
    assert list(left["disruptedPods"]) == ["p"]
