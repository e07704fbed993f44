"""A tenant: somebody with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.parse import quote

import pytest

from attacks.target import Caller, Target
from robust.inputs.clients import receive

pytestmark = pytest.mark.slow


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403


UNFINISHED = {"content-type": "application/json", "content-length": "1000"}
LARGE = 800_000
REFUSED_BODIES = (
    'apiserver_flowcontrol_rejected_requests_total{flow_schema="global-default",'
    'priority_level="global-default",request_kind="requestBody"}'
)
MOST_MEMORY = 200.0
"""MiB that clients may cost who read nothing; without a bound it is several times as much."""


def bind(caller: Caller, namespace: str, account: str) -> None:
    """Make a service account an admin of its namespace."""
    group = "rbac.authorization.k8s.io"
    caller.post(
        f"/apis/{group}/v1/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": account},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    ).ok()


def in_flight(target: Target) -> float:
    return target.metric('apiserver_current_inflight_requests{request_kind="mutating"}')


def unfinished(stack: ExitStack, target: Target, mallory: Caller, namespace: str) -> None:
    """Begin 200 writes, half of them as a service account, and finish none."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    account = {"impersonate-user": f"system:serviceaccount:{namespace}:default"}
    bind(mallory, namespace, "default")
    before = in_flight(target)
    for headers in (UNFINISHED, UNFINISHED | account):
        for _ in range(100):
            stack.enter_context(mallory.begin("POST", path, b"{", headers))
    target.wait_for(lambda: in_flight(target) >= before + 200)


def unread(
    stack: ExitStack, mallory: Caller, path: str, number: int, accept: str = "application/json"
) -> Iterator[bytes]:
    """Ask for something large and read the beginning of each answer only."""
    for _ in range(number):
        connection = mallory.begin("GET", path, headers={"accept": accept}, receive_buffer=4096)
        yield stack.enter_context(connection).recv(64)


def fill(target: Target, mallory: Caller, namespace: str) -> str:
    """Create ten megabytes of objects; return where."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(13):
        data = {"metadata": {"name": f"large-{number}"}, "data": {"k": "x" * LARGE}}
        mallory.post(path, data).ok()
    # Encodings are kept; the first of them is not what is measured.
    mallory.get(path).ok()
    target.forget_peak()
    return path


def node_works(target: Target, name: str) -> None:
    """Let a node report its status."""
    target.admin.post("/api/v1/nodes", {"metadata": {"name": name}})
    condition = {"type": "Ready", "status": "True"}
    status = {"status": {"conditions": [condition]}}
    target.node(name).merge(f"/api/v1/nodes/{name}/status", status).ok()


def test_takes_every_write_slot(target: Target) -> None:
    mallory = target.tenant("slots")
    with ExitStack() as stack:
        unfinished(stack, target, mallory, "slots")

        node_works(target, "node-of-slots")
        alice = target.tenant("alice-of-slots")
        path = "/api/v1/namespaces/alice-of-slots/configmaps"
        alice.post(path, {"metadata": {"name": "hers"}}).ok()
        # Not even mallory is refused: what has not arrived takes no slot.
        mallory.post("/api/v1/namespaces/slots/configmaps", {"metadata": {"name": "a"}}).ok()


def test_sends_bodies_that_never_end(target: Target) -> None:
    mallory = target.tenant("bodies")
    path, size = "/api/v1/namespaces/bodies/configmaps", 2_900_000
    headers = UNFINISHED | {"content-length": str(size)}
    before = target.memory()
    target.forget_peak()
    with ExitStack() as stack:
        for _ in range(120):
            connection = stack.enter_context(mallory.connect())
            # It is refused, and the connection closed, when it has sent too much.
            with suppress(ConnectionError, ssl.SSLError):
                head = mallory.head("POST", path, headers)
                connection.sendall(head + b"\r\n" + b" " * (size - 1))

        node_works(target, "node-of-bodies")
        assert target.peak_memory() - before < MOST_MEMORY
        assert target.metric(REFUSED_BODIES) > 0


def test_reads_nothing_of_what_it_asks_for(target: Target) -> None:
    mallory = target.tenant("unread")
    path = fill(target, mallory, "unread")
    before = target.memory()
    with ExitStack() as stack:
        answers = [*unread(stack, mallory, path, 30)]
        answers += unread(stack, mallory, f"{path}?watch=1", 25)

        assert all(answer.startswith(b"HTTP/1.1 ") for answer in answers)
        node_works(target, "node-of-unread")
        assert len(target.admin.get(path).ok()["items"]) >= 13
        assert target.peak_memory() - before < MOST_MEMORY


def test_asks_for_everything_and_waits(target: Target) -> None:
    """Slots, unread lists and unread watches together."""
    mallory, alice = target.tenant("greedy"), target.tenant("alice")
    path = fill(target, mallory, "greedy")
    before = target.memory()
    with ExitStack() as stack:
        unfinished(stack, target, mallory, "greedy")
        for asked, number in ((path, 30), (f"{path}?watch=1", 25)):
            assert all(unread(stack, mallory, asked, number))
        with target.bystander("/api/v1/nodes") as delays:
            for _ in range(5):
                node_works(target, "node-of-greedy")
                alice.get("/api/v1/namespaces/alice/configmaps").ok()
                target.admin.get("/api/v1/nodes/node-of-greedy").ok()

        assert not delays.failures
        assert target.peak_memory() - before < MOST_MEMORY


FORMS = {
    "plain": "application/json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_large_event_reaches_many_watches_that_nobody_reads(
    target: Target, namespace: str, form: str
) -> None:
    mallory = target.tenant(namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    large = {"metadata": {"name": "large"}, "data": {"k": "x" * LARGE}}
    mallory.post(path, large).ok()
    before = target.memory()
    target.forget_peak()
    with ExitStack() as stack:
        asked = f"{path}?watch=1&includeObject=Object"
        for first in unread(stack, mallory, asked, 300, FORMS[form]):
            assert first.startswith(b"HTTP/1.1 200")
        for number in range(4):
            mallory.put(f"{path}/large", large | {"data": {"k": f"{number}" * LARGE}}).ok()

        assert target.peak_memory() - before < MOST_MEMORY


def token(start: list[str], revision: int) -> str:
    said = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(said.encode()).rstrip(b"=").decode()


def watch(caller: Caller, path: str) -> ssl.SSLSocket:
    """Open a watch and read until it shows an object."""
    connection = caller.begin("GET", f"{path}?watch=1", headers={"connection": "close"})
    told = b""
    while b'"ADDED"' not in told:
        received = connection.recv(1 << 16)
        assert received, told
        told += received
    return connection


def test_goes_on_watching_after_its_rights_were_taken_away(target: Target) -> None:
    mallory = target.tenant("revoked")
    path = "/api/v1/namespaces/revoked/secrets"
    target.admin.post(path, {"metadata": {"name": "known"}}).ok()
    binding = (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/revoked/rolebindings/admin-of-revoked-admin"
    )
    with watch(mallory, path) as connection:
        target.admin.delete(binding).ok()
        rest = receive(connection)
        target.admin.post(path, {"metadata": {"name": "new"}}).ok()

    assert rest.endswith(b"0\r\n\r\n"), "the watch ends, and it ends cleanly"
    assert mallory.get(f"{path}?watch=1").code == 403


def test_goes_on_watching_after_its_account_was_deleted(target: Target, namespace: str) -> None:
    account = target.account(namespace, "robot")
    path = f"/api/v1/namespaces/{namespace}/secrets"
    target.admin.post(path, {"metadata": {"name": "known"}}).ok()
    bind(target.admin, namespace, "robot")
    with watch(account, path) as connection:
        target.admin.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/robot").ok()
        rest = receive(connection)

    assert rest.endswith(b"0\r\n\r\n")
    assert account.get(f"{path}?watch=1").code == 401


def test_makes_up_where_a_list_goes_on(target: Target, namespace: str) -> None:
    """A continue token is not signed; it must not lead anywhere else."""
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("pages")
    path = "/api/v1/namespaces/pages/secrets"
    mallory.post(path, {"metadata": {"name": "own"}}).ok()
    for start in ([namespace, ""], ["", ""], ["zzz", "zzz"], ["\0", "\0"], ["a/b", "c"]):
        for revision in (-1, 0, 1, 1 << 40, 1 << 70):
            page = mallory.get(f"{path}?limit=1&continue={token(start, revision)}")
            assert page.code in (200, 400, 410, 504), page
            if page.code == 200:
                names = [item["metadata"]["name"] for item in page.json["items"]]
                assert "theirs" not in names


SELECTORS = {
    "absent labels": ("labelSelector", ",".join(["!a"] * 20_000)),
    "values": ("labelSelector", f"a in ({','.join(map(str, range(20_000)))})"),
    "requirements": ("labelSelector", ",".join(f"a{n}!=b" for n in range(500))),
    "fields": ("fieldSelector", ",".join(["metadata.name!=a"] * 20_000)),
}


@pytest.mark.parametrize("name", SELECTORS)
def test_selects_by_more_than_anybody_can_compare(
    target: Target, namespace: str, name: str
) -> None:
    option, selector = SELECTORS[name]
    mallory = target.tenant(namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps?{option}="

    assert mallory.get(path + quote(selector)).code == 400
    assert mallory.get(f"{path}{quote(selector)}&watch=1").code == 400
