"""The audit log: a line for every write, with who, what and the verdict, and never a secret.

On demand also for every read.
"""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from serving import Http, connected
from sully.app import Config, RunningControlPlane, running
from sully.machinery.errors import Forbidden
from sully.server.audit.events import AuditEvent
from sully.server.audit.log import UNAUTHENTICATED_BURST, UNAUTHENTICATED_RATE, AuditLog
from sully.server.authentication.groups import ANONYMOUS
from sully.server.requests import ResourceRef, User
from sully.testing.clock import FakeClock

Obj = dict[str, Any]
NAMESPACE_PATH = "/api/v1/namespaces/default"
SECRET = "c3dvcmRmaXNo"
NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


@asynccontextmanager
async def audited(
    folder: Path, *, reads: bool = False
) -> AsyncIterator[tuple[RunningControlPlane, Http]]:
    config = Config(data_dir=folder, port=0, store="memory", audit_reads=reads)
    async with running(config) as plane, connected(plane) as http:
        yield plane, http


UNKNOWN = "audit-unauthenticated.log"


def lines(folder: Path, user: str = "", name: str = "audit.log") -> list[Obj]:
    """Return the events of a user, or of all."""
    results = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return [event for event in results if not user or event["user"].get("username") == user]


async def test_a_write_is_a_line(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    async with audited(tmp_path) as (_, http):
        body = {"metadata": {"name": "one"}, "data": {"password": SECRET}}
        (await http.post(f"{NAMESPACE_PATH}/configmaps", body)).ok(201)

    (event,) = lines(tmp_path, "tester")
    received, ended = (
        datetime.fromisoformat(event.pop(name))
        for name in ("requestReceivedTimestamp", "stageTimestamp")
    )
    assert before - timedelta(seconds=1) <= received <= ended <= datetime.now(UTC)
    (credential,) = event["user"].pop("extra").values()
    assert credential[0].startswith("X509SHA256=")
    assert len(event.pop("auditID")) == 36
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"{NAMESPACE_PATH}/configmaps",
        "verb": "create",
        "user": {"username": "tester", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "tests/1.0",
        "objectRef": {
            "resource": "configmaps",
            "namespace": "default",
            "name": "one",
            "apiVersion": "v1",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": "",
        },
    }


PATCH = "application/merge-patch+json"
ONE = {"metadata": {"name": "one"}}
# name → (method, path, body, media) → (verb, name, subresource, code, reason)
Call = tuple[str, str, Any, str]
CALLS: dict[str, tuple[Call, tuple[str, str, str, int, str]]] = {
    "create": (("POST", "configmaps", ONE, ""), ("create", "one", "", 201, "")),
    "generated name": (
        ("POST", "configmaps", {"metadata": {"generateName": "x-"}}, ""),
        ("create", "x-", "", 201, ""),
    ),
    "create again": (
        ("POST", "serviceaccounts", {"metadata": {"name": "default"}}, ""),
        ("create", "default", "", 409, "AlreadyExists"),
    ),
    "update": (
        ("PUT", "serviceaccounts/default", {"metadata": {"name": "default"}}, ""),
        ("update", "default", "", 200, ""),
    ),
    "patch": (
        ("PATCH", "serviceaccounts/default", {"metadata": {"labels": {"a": "b"}}}, PATCH),
        ("patch", "default", "", 200, ""),
    ),
    "delete what is not there": (
        ("DELETE", "configmaps/none", None, ""),
        ("delete", "none", "", 404, "NotFound"),
    ),
    "delete a collection": (
        ("DELETE", "configmaps", None, ""),
        ("deletecollection", "", "", 200, ""),
    ),
    "ask for a token": (
        ("POST", "serviceaccounts/default/token", {}, ""),
        ("create", "default", "token", 201, ""),
    ),
    "an invalid name": (
        ("POST", "configmaps", {"metadata": {"name": "No_Name"}}, ""),
        ("create", "No_Name", "", 422, "Invalid"),
    ),
    "no object at all": (
        ("POST", "configmaps", "{", ""),
        ("create", "", "", 400, "BadRequest"),
    ),
}


async def test_what_lines_report(tmp_path: Path) -> None:
    async with audited(tmp_path) as (_, http):
        for (method, path, body, media), _recorded in CALLS.values():
            await http.call(method, f"{NAMESPACE_PATH}/{path}", body, media or "application/json")

    result = lines(tmp_path, "tester")
    assert len(result) == len(CALLS)
    for event, (name, (_, (verb, object_name, part, code, reason))) in zip(
        result, CALLS.items(), strict=True
    ):
        ref, status = event["objectRef"], event["responseStatus"]
        assert (event["verb"], ref.get("subresource", "")) == (verb, part), name
        assert ref.get("name", "").startswith(object_name), name
        assert (status["code"], status.get("reason", "")) == (code, reason), name


async def test_refused_reads(tmp_path: Path) -> None:
    secrets = ResourceRef("", "v1", "secrets", "default", "")
    async with (
        audited(tmp_path) as (plane, _),
        connected(plane, user="mallory", groups=()) as mallory,
        connected(plane, user="") as stranger,
    ):
        reads = (
            f"{NAMESPACE_PATH}/secrets",
            f"{NAMESPACE_PATH}/secrets/x",
            f"{NAMESPACE_PATH}/secrets?watch=1",
            "/metrics",
        )
        for path in (*reads, "/apis/no.such.group/v1/things", "/debug/placements/a/b"):
            assert (await mallory.get(path)).code == 403, path
        review = {"spec": {"token": "x"}}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        assert (await mallory.post(path, review)).code == 403
        assert (await stranger.get(f"{NAMESPACE_PATH}/secrets")).code == 401
        inside = plane.direct(User("inside", ("system:authenticated",)))
        for verb in ("get", "list"):
            with pytest.raises(Forbidden):
                await inside.call(verb, secrets)
        with pytest.raises(Forbidden):
            await anext(inside.watch(secrets))

    reported = [
        (event["verb"], event["responseStatus"]["code"]) for event in lines(tmp_path, "mallory")
    ]
    verbs = ("list", "get", "watch", "get", "get", "get", "create")
    assert reported == [(verb, 403) for verb in verbs]
    events = lines(tmp_path, "inside")
    assert [event["verb"] for event in events] == ["get", "list", "watch"]
    assert {event["responseStatus"]["reason"] for event in events} == {"Forbidden"}
    (unknown,) = lines(tmp_path, name=UNKNOWN)
    assert unknown["verb"] == "list"


async def test_reads_as_another_user(tmp_path: Path) -> None:
    async with audited(tmp_path) as (_, http):
        for path in (f"{NAMESPACE_PATH}/secrets", "/metrics"):
            headers = {"impersonate-user": "alice", "impersonate-group": "system:masters"}
            assert (await http.call("GET", path, headers=headers)).code == 200

    events = lines(tmp_path, "tester")
    assert [event["impersonatedUser"]["username"] for event in events] == ["alice", "alice"]
    assert [event["requestURI"] for event in events] == [f"{NAMESPACE_PATH}/secrets", "/metrics"]


async def test_a_watch_as_another_user_is_noted_when_it_begins(tmp_path: Path) -> None:
    headers = {"impersonate-user": "alice", "impersonate-group": "system:masters"}
    path = f"{NAMESPACE_PATH}/secrets?watch=true&timeoutSeconds=1"
    async with audited(tmp_path) as (_, http):
        assert (await http.call("GET", path, headers=headers)).code == 200

    first, last = lines(tmp_path, "tester")
    assert (first["stage"], last["stage"]) == ("ResponseStarted", "ResponseComplete")
    assert {event["impersonatedUser"]["username"] for event in (first, last)} == {"alice"}
    assert {event["responseStatus"]["code"] for event in (first, last)} == {200}


async def test_reads_and_questions_are_not_lines(tmp_path: Path) -> None:
    async with audited(tmp_path) as (_, http):
        await http.get(f"{NAMESPACE_PATH}/configmaps")
        await http.get("/api/v1/namespaces/default")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        (await http.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)).ok(201)

    assert lines(tmp_path, "tester") == []


async def test_reads_on_demand(tmp_path: Path) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with (
        audited(tmp_path, reads=True) as (plane, http),
        connected(plane, user="mallory", groups=()) as mallory,
    ):
        (await http.get(f"{NAMESPACE_PATH}/configmaps")).ok()
        (await http.get("/api/v1/namespaces/default")).ok()
        async with http.watch(f"{NAMESPACE_PATH}/serviceaccounts") as watch:
            await watch.take(1)
        reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        (await http.post(reviews, review)).ok(201)
        (await http.post(f"{NAMESPACE_PATH}/configmaps", ONE)).ok(201)
        # What is not an object is nobody's.
        assert (await http.get("/readyz")).code == 200
        (await http.get("/openapi/v3")).ok()
        assert (await mallory.get("/api/v1/secrets")).code == 403

    results = [(e["verb"], e["objectRef"]["resource"]) for e in lines(tmp_path, "tester")]
    (forbidden,) = lines(tmp_path, "mallory")
    assert sorted(results) == [
        ("create", "configmaps"),
        ("create", "selfsubjectreviews"),
        ("get", "namespaces"),
        ("list", "configmaps"),
        ("watch", "serviceaccounts"),
    ]
    assert (forbidden["verb"], forbidden["responseStatus"]["code"]) == ("list", 403)
    assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid"


async def test_those_who_were_refused(tmp_path: Path) -> None:
    async with (
        audited(tmp_path) as (plane, http),
        connected(plane, user="mallory", groups=()) as mallory,
        connected(plane, user="") as stranger,
    ):
        path = f"{NAMESPACE_PATH}/configmaps"
        assert (await mallory.post(path, ONE)).code == 403
        assert (await stranger.post(path, ONE)).code == 401
        bad = {"authorization": "Bearer swordfish"}
        assert (await stranger.call("POST", path, ONE, headers=bad)).code == 401
        as_mallory = {"impersonate-user": "mallory"}
        assert (await http.call("POST", path, ONE, headers=as_mallory)).code == 403
        as_alice = {"impersonate-user": "alice"}
        assert (await mallory.call("POST", path, ONE, headers=as_alice)).code == 403

    first, last = lines(tmp_path, "mallory")
    (impersonated,) = lines(tmp_path, "tester")
    anonymous, bad_token = lines(tmp_path, name=UNKNOWN)
    decision = "authorization.k8s.io/decision"
    assert first["annotations"][decision] == "forbid"
    assert first["responseStatus"]["reason"] == "Forbidden"
    assert last["annotations"][decision] == "forbid"
    assert "impersonatedUser" not in last
    assert impersonated["impersonatedUser"]["username"] == "mallory"
    assert impersonated["annotations"][decision] == "forbid"
    assert anonymous["responseStatus"]["code"] == 401
    assert bad_token["user"] == {}
    for name in ("audit.log", UNKNOWN):
        assert "swordfish" not in (tmp_path / name).read_text()


async def test_no_secret_is_ever_written_down(tmp_path: Path) -> None:
    async with audited(tmp_path) as (_, http):
        path = f"{NAMESPACE_PATH}/secrets"
        good = {"metadata": {"name": "s"}, "data": {"k": SECRET}}
        (await http.post(path, good)).ok(201)
        (await http.put(f"{path}/s", good)).ok()
        (await http.patch(f"{path}/s", {"data": {"k": SECRET}})).ok()
        # What is refused is often quoted in the refusal.
        for bad in ({"data": {SECRET + "/": SECRET}}, {"data": SECRET}, {"type": [SECRET]}):
            assert (await http.post(path, {"metadata": {"name": "t"}, **bad})).code >= 400
        assert (await http.post(path, f'{{"data": {SECRET}')).code == 400
        token = (await http.post(f"{NAMESPACE_PATH}/serviceaccounts/default/token", {})).ok(201)

    text = (tmp_path / "audit.log").read_text()
    assert len(lines(tmp_path, "tester")) == 8
    assert SECRET not in text
    assert SECRET.encode().hex() not in text
    assert token["status"]["token"].split(".")[2] not in text


async def test_callers_in_this_process(tmp_path: Path) -> None:
    async with audited(tmp_path) as (plane, _):
        ref = ResourceRef("", "v1", "configmaps", "default", "")
        await plane.direct().call("create", ref, body=ONE)
        await plane.direct().call("list", ref)
        nobody = plane.direct(User("nobody", ("system:authenticated",)))
        with pytest.raises(Forbidden):
            await nobody.call("create", ref, body=ONE)

    (allowed,) = (e for e in lines(tmp_path, "kubernetes-admin") if e["verb"] == "create")
    (forbidden,) = lines(tmp_path, "nobody")
    assert allowed["objectRef"]["name"] == "one"
    assert allowed["responseStatus"]["code"] == 201
    assert allowed["annotations"] == {"authorization.k8s.io/decision": "allow"}
    assert forbidden["responseStatus"]["code"] == 403
    assert forbidden["annotations"] == {"authorization.k8s.io/decision": "forbid"}
    # Controllers sign with their own names.
    account = "system:serviceaccount:kube-system:root-ca-cert-publisher"
    assert lines(tmp_path, account)


async def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    async with audited(tmp_path):
        pass

    assert stat.S_IMODE((tmp_path / "audit.log").stat().st_mode) == 0o600


async def test_switched_off(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path, port=0, store="memory", audit_log="")
    async with running(config) as plane, connected(plane) as http:
        (await http.post(f"{NAMESPACE_PATH}/configmaps", ONE)).ok(201)

    assert not (tmp_path / "audit.log").exists()


ALICE = User("alice")


def entry(number: int, user: User | None = ALICE) -> AuditEvent:
    return AuditEvent(f"id-{number:04}", "create", f"/x/{number}", NOW, NOW, 201, user=user)


def test_files_turn_over_by_size(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    size = 300  # of about one line

    for number in range(40):
        log = AuditLog(path, max_bytes=size * 5, max_backups=3)
        log.write(entry(number))
        log.close()

    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["audit.log", "audit.log.1", "audit.log.2", "audit.log.3"]
    assert all((tmp_path / name).stat().st_size <= size * 5 for name in names)
    retained = [
        json.loads(line)["auditID"]
        for name in reversed(names[1:] + names[:1])
        for line in (tmp_path / name).read_text().splitlines()
    ]
    newest = sorted(retained)
    assert newest[-1] == "id-0039"
    assert newest == [f"id-{number:04}" for number in range(40 - len(retained), 40)]


def test_everything_that_waits_is_written_at_the_end(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    for number in range(5000):
        log.write(entry(number))
    log.close()

    assert [event["auditID"] for event in lines(tmp_path)] == [
        f"id-{number:04}" for number in range(5000)
    ]


def test_what_cannot_be_kept_up_with_is_counted(tmp_path: Path) -> None:
    with capture_logs() as lines_logged:
        log = AuditLog(tmp_path / "audit.log", max_queued=3)
        for number in range(10):
            log.write(entry(number))
        log.close()

    assert [event["auditID"] for event in lines(tmp_path)] == ["id-0000", "id-0001", "id-0002"]
    assert [(line["log_level"], line["count"]) for line in lines_logged] == [("error", 7)]


@pytest.mark.parametrize("user", [None, ANONYMOUS], ids=["bad credentials", "no credentials"])
def test_those_without_credentials_have_a_rate(tmp_path: Path, user: User | None) -> None:
    clock = FakeClock()
    with capture_logs() as lines_logged:
        log = AuditLog(tmp_path / "audit.log", clock=clock)
        for number in range(UNAUTHENTICATED_BURST + 7):
            log.write(entry(number, user))
        log.write(entry(9000))
        clock.advance(3 / UNAUTHENTICATED_RATE)
        for number in range(5000, 5005):
            log.write(entry(number, user))
        log.close()

    assert [event["auditID"] for event in lines(tmp_path)] == ["id-9000"]
    unknown = [event["auditID"] for event in lines(tmp_path, name=UNKNOWN)]
    assert unknown[UNAUTHENTICATED_BURST:] == ["id-5000", "id-5001", "id-5002"]
    assert {line["log_level"] for line in lines_logged} == {"warning"}
    assert sum(line["count"] for line in lines_logged) == 7 + 2


def test_a_disk_that_fails_stops_nobody(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")

    class Full:
        def tell(self) -> int:
            return 0

        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    file: Any = log._file
    real, file._file = file._file, Full()
    log.write(entry(1))
    log.close()
    real.close()

    assert lines(tmp_path) == []
