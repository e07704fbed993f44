"""Every bomb is answered soon, with less than a 500, and without much memory."""

import json
from collections.abc import Iterator

import pytest

from e2e.raw import Raw
from hostile.bombs import BOMBS
from hostile.requests import CONFIG_MAPS, PODS, Bomb
from robust.inputs.clients import Client
from robust.inputs.memory import Memory, Processor
from sully.testing.cluster import Process, process

pytestmark = pytest.mark.slow
SECONDS = 8.0
"""Of a processor, which a busy machine makes slower; on an idle one none takes more than two."""
MEMORY = 250.0
"""MiB that a server may need for one of them: the largest body is 3 MiB."""


@pytest.fixture(scope="module")
def up() -> Iterator[Process]:
    """Run one server for all of them: what one leaves behind would show with the next."""
    with process("--store", "memory", "--log-level", "error") as server:
        yield server


@pytest.fixture(scope="module")
def client(up: Process, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """Return a client, and make the objects that patches aim at."""
    scratch = tmp_path_factory.mktemp("client")
    raw = Raw.admin(up.kubeconfig, scratch)
    target = {"metadata": {"name": "target"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert raw.request("POST", CONFIG_MAPS, target).code == 201
    assert raw.request("POST", PODS, target | {"spec": spec}).code == 201
    return Client(up.kubeconfig, scratch)


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_bomb(bomb: Bomb, client: Client, up: Process) -> None:
    body = bomb.body()
    memory = Memory(up.child.pid)
    processor = Processor(up.child.pid)

    code, answer = client.send(bomb.method, bomb.path, body, bomb.media, bomb.headers)

    assert processor.seconds() < SECONDS
    assert 200 <= code < 500, answer[:500]
    if code >= 400 and answer[:1] == b"{":
        # The pages about placements answer as their reference does, with an error alone.
        refusal = json.loads(answer)
        assert refusal.get("error") or refusal["kind"] == "Status"
    assert client.send("GET", "/readyz")[0] == 200
    assert memory.needed() < MEMORY
