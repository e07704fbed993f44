"""A tenant: somebody with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from attacks.target import Target
from robust.inputs.clients import parse, receive
from sully.testing.cluster import process

pytestmark = pytest.mark.slow


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403


def test_takes_every_connection(tmp_path: Path) -> None:
    with (
        process("--store", "memory", "--max-connections-per-user", "10") as up,
        ExitStack() as stack,
    ):
        target = Target(up, tmp_path)
        mallory, alice = target.tenant("mallory"), target.tenant("alice")
        robots = [target.account("mallory", f"robot-{number}") for number in range(15)]
        idle = target.descriptors()
        for _ in range(30):
            stack.enter_context(mallory.connect())
        for robot in robots:
            held = stack.enter_context(robot.connect())
            held.sendall(robot.head("GET", "/api") + b"\r\n")
            assert parse(held.recv(1 << 16))[0] == 200

        assert target.until(lambda: target.descriptors() <= idle + 10 + 10 + 2)
        assert mallory.get("/api/v1/namespaces/mallory/pods").code == 200
        assert alice.get("/api/v1/namespaces/alice/pods").code == 200


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
VIEW = {
    "metadata": {"name": "robot-views"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
}
WATCH = "/api/v1/namespaces/default/pods?watch=1"


def test_holds_more_watches_than_connections(tmp_path: Path) -> None:
    with (
        process("--store", "memory", "--max-connections-per-user", "5") as up,
        ExitStack() as stack,
    ):
        target = Target(up, tmp_path)
        robot = target.account("default", "robot")
        watch = robot.head("GET", WATCH) + b"\r\n"
        target.admin.post(BINDINGS, VIEW).ok()
        codes = []
        for _ in range(7):
            held = stack.enter_context(robot.connect())
            held.sendall(watch)
            codes.append(parse(held.recv(1 << 16))[0])

        assert codes == [200] * 5 + [429] * 2
        assert target.admin.get("/api/v1/pods").code == 200


TWICE = {
    "Authorization": ("authorization: Bearer x\r\nauthorization: Bearer y\r\n", 401),
    "Impersonate-User": ("impersonate-user: mallory\r\nImpersonate-User: admin\r\n", 400),
    "Impersonate-Uid": (
        "impersonate-user: mallory\r\nimpersonate-uid: 1\r\nimpersonate-uid: 2\r\n",
        400,
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_says_twice_who_it_is(target: Target, name: str) -> None:
    lines, code = TWICE[name]
    for caller in (target.admin, target.user("mallory")):
        with caller.connect() as connection:
            head = caller.head("GET", "/api", {"connection": "close"})
            connection.sendall(head + lines.encode() + b"\r\n")
            assert parse(receive(connection))[0] == code
