"""A malicious manifest: a body, patch, selector or query that is made to cost much.

Whoever may send requests at all may send these. Nobody else may have to wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile.bombs import BOMBS
from hostile.brims import BRIMS, LARGE
from hostile.requests import CONFIG_MAPS, PODS, Bomb
from hostile.target import Answer, Caller, Target
from sully.testing.cluster import process

pytestmark = pytest.mark.slow
LONGEST = 0.1
"""Seconds of its own processor time that the server may work before it answers a bystander."""
RATIO = 5
"""The same in units of a large but usual pod: for machines that are slower, or busy."""
USUAL = LARGE["a pod of 100 containers"]
ALL = BOMBS | BRIMS | LARGE


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Run a server with the objects that patches aim at."""
    with process("--log-level", "error") as up:
        made = Target(up, tmp_path_factory.mktemp("attackers"))
        name = {"metadata": {"name": "target"}}
        made.admin.post(CONFIG_MAPS, name).ok()
        made.admin.post(PODS, name | {"spec": {"containers": [{"name": "c", "image": "i"}]}}).ok()
        yield made


@pytest.fixture(scope="module")
def mallory(target: Target) -> Caller:
    """Return an admin of the namespace, who may not do everything: rights are looked at."""
    return target.tenant("default", "mallory")


@pytest.mark.parametrize("bomb", ALL.values(), ids=ALL.keys())
def test_keeps_others_waiting(bomb: Bomb, target: Target, mallory: Caller) -> None:
    caller = mallory if bomb.path.endswith("/roles") else target.admin
    body = bomb.body()

    # A request that blocks the loop does so each time; what other programs of a busy machine
    # do to the measurement, it does once.
    for _ in range(3):
        with target.bystander() as delays:
            delays.await_answers(2)
            answer = send(caller, bomb, body)
            delays.await_answers(2)
        assert not delays.failures
        # What is usual is measured only if it matters: it takes longer than most of these requests.
        most = delays.most_work
        if soon := most < LONGEST or most < RATIO * cost(target, USUAL):
            break

    assert soon, most
    assert 200 <= answer.code < 500, answer.body[:500]
    if answer.code >= 400 and answer.body[:1] == b"{":
        status = answer.json
        assert status.get("kind", "Status") == "Status"
        assert status.get("message") or status["error"]


@pytest.mark.parametrize("bomb", LARGE.values(), ids=LARGE.keys())
def test_large_objects_are_stored(bomb: Bomb, target: Target) -> None:
    send(target.admin, bomb, bomb.body()).ok()


TOO_LARGE = {
    "a body": ("empty objects", "limit is 50000 fields and list items in one body"),
    "a body in YAML": ("empty objects in YAML", "limit is 25000 fields and list items in one body"),
    "a body in protobuf": ("empty messages in protobuf", "limit is 50000 fields and list items"),
    "an object": ("20 000 keys", "limit is 10000 fields and list items in one ConfigMap"),
    "a role": ("full: a rule for very much", "limit is 10000 combinations"),
    "copies": ("a patch that copies many small values", "have more than 50000 values"),
}


@pytest.mark.parametrize(("name", "text"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_refusals_name_the_limit(name: str, text: str, target: Target, mallory: Caller) -> None:
    bomb = ALL[name]

    answer = send(mallory, bomb, bomb.body())

    assert answer.code == 413
    assert answer.json["reason"] == "RequestEntityTooLarge"
    assert text in answer.json["message"]


def test_grows_an_object_step_by_step(target: Target, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    target.admin.post(maps, {"metadata": {"name": "grows"}}).ok()

    codes = [
        target.admin.merge(
            f"{maps}/grows", {"data": {f"k{step}-{n}": "v" for n in range(3_000)}}
        ).code
        for step in range(4)
    ]

    assert codes == [200, 200, 200, 413]


FORMS = {
    "YAML": "application/yaml",
    "a table in YAML": "application/yaml;as=Table;v=v1;g=meta.k8s.io",
}


@pytest.fixture(scope="module")
def long_list(target: Target) -> str:
    """Return the path of config maps with 110 000 values."""
    mallory = target.tenant("long-list")
    path = "/api/v1/namespaces/long-list/configmaps"
    data = {f"key-{at}": "value" for at in range(9_900)}
    for number in range(11):
        mallory.post(path, {"metadata": {"name": f"c-{number}"}, "data": data}).ok()
    return path


@pytest.mark.parametrize("accept", FORMS.values(), ids=FORMS.keys())
def test_lists_keep_others_waiting(target: Target, long_list: str, accept: str) -> None:
    mallory = target.tenant("long-list")
    for _ in range(3):
        with target.bystander() as delays:
            delays.await_answers(2)
            assert mallory.call("GET", long_list, headers={"accept": accept}).code == 200
            delays.await_answers(2)
        assert not delays.failures
        most = delays.most_work
        if soon := most < LONGEST or most < RATIO * cost(target, USUAL):
            break

    assert soon, most


def send(caller: Caller, bomb: Bomb, body: bytes) -> Answer:
    return caller.call(bomb.method, bomb.path, body or None, bomb.media, bomb.headers)


def cost(target: Target, bomb: Bomb) -> float:
    """Return the processor time that the server takes for one request."""
    body = bomb.body()
    before = target.processor_time()
    send(target.admin, bomb, body).ok()
    return target.processor_time() - before
