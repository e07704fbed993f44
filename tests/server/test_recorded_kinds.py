"""Kinds compared with recorded answers of Kubernetes 1.37: workloads, and those of the scheduler.

Not compared: what the server makes up, and the finalizers that protect volumes and claims in use,
which are left out of the recording: no controller here would ever remove them. A quoted pod
template has the names of Go's fields in Kubernetes; only the rest of the text is compared.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serving import Asgi, Http, fresh
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MADE_UP = frozenset(
    ("uid", "resourceVersion", "creationTimestamp", "managedFields", "lastPhaseTransitionTime")
)
UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def steps(method: str, name: str = "*") -> list[Obj]:
    """Return the recorded requests with a method."""
    files = sorted(RECORDED.glob(f"{name}-kinds.jsonl"))
    lines = (json.loads(line) for file in files for line in file.read_text().splitlines())
    return [step for step in lines if step["method"] == method]


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in MADE_UP}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return UID.sub("<uid>", value) if isinstance(value, str) else value


def created(path: str) -> Iterator[Obj]:
    """Yield what was created in a collection, as it was sent."""
    for step in CREATES:
        if step["path"] == path and step["code"] == 201:
            yield step["body"]


def named(step: Obj) -> str:
    return f"{step['body']['kind']} {step['body']['metadata']['name']}"


CREATES = steps("POST")
CHANGES = steps("PATCH")
TABLES = steps("TABLE")


@pytest.fixture
async def asgi() -> Asgi:
    made = Asgi(MemoryStore(), FakeClock())
    default = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    await made.post("/api/v1/namespaces", default)
    return made


def test_there_is_a_recording_of_each_kind_of_the_scheduler() -> None:
    paths = {step["path"] for step in steps("POST", "scheduler")}

    assert len(paths) == 10
    assert paths == {step["path"] for step in steps("TABLE", "scheduler")}


@pytest.mark.parametrize("step", CREATES, ids=named)
async def test_a_create_is_answered_as_recorded(asgi: Asgi, step: Obj) -> None:
    answer = await asgi.post(step["path"], step["body"])

    assert comparable(answer.json) == step["answer"]
    assert answer.code == step["code"]
    assert answer.warnings == step["warnings"]


@pytest.mark.parametrize("step", CHANGES, ids=lambda step: f"{step['path']} {step['body']}")
async def test_a_change_is_answered_as_recorded(asgi: Asgi, step: Obj) -> None:
    collection, _, name = step["path"].rpartition("/")
    before = next(body for body in created(collection) if body["metadata"]["name"] == name)
    (await asgi.post(collection, before)).ok()

    answer = await asgi.patch(step["path"], step["body"])

    assert answer.code == step["code"], answer.body
    if answer.code != 200:
        assert comparable(answer.json) == step["answer"]
    else:
        ours, theirs = comparable(answer.json), step["answer"]
        assert ours.get("spec") == theirs.get("spec")
        assert ours["metadata"].get("generation") == theirs["metadata"].get("generation")


@pytest.mark.parametrize("step", TABLES, ids=lambda step: str(step["path"]))
async def test_a_table_has_the_recorded_columns(asgi: Asgi, step: Obj) -> None:
    for body in created(step["path"]):
        (await asgi.post(step["path"], body)).ok()

    table = (await asgi.get(step["path"], TABLE)).ok()

    names = ("name", "type", "format", "priority")
    columns = [[column[name] for name in names] for column in table["columnDefinitions"]]
    assert columns == step["columns"]
    assert table["rows"]
    assert {len(row["cells"]) for row in table["rows"]} == {len(columns)}


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("step", steps("TABLE", "scheduler"), ids=lambda step: str(step["path"]))
async def test_a_watch_sees_a_new_object(http: Http, step: Obj) -> None:
    path = step["path"]
    body = next(created(path))
    name = fresh("watched")
    listed = (await http.get(path)).ok()["metadata"]["resourceVersion"]

    async with http.watch(path, resourceVersion=listed) as lines:
        (await http.post(path, body | {"metadata": {"name": name}})).ok()
        events = await lines.until(lambda event: event["object"]["metadata"]["name"] == name)

    assert events[-1]["type"] == "ADDED"
    assert events[-1]["object"]["kind"] == body["kind"]


async def test_a_claim_is_bound_once_as_the_scheduler_does_it(asgi: Asgi) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "data"}}
    (await asgi.post(claims, claim | {"spec": spec})).ok()
    selected = {"volume.kubernetes.io/selected-node": "n1"}

    noted = await asgi.patch(f"{claims}/data", {"metadata": {"annotations": selected}})
    bound = await asgi.patch(f"{claims}/data", {"spec": {"volumeName": "v1"}})
    again = await asgi.patch(f"{claims}/data", {"spec": {"volumeName": "v2"}})

    assert noted.ok()["metadata"]["annotations"] == selected
    assert bound.ok()["spec"]["volumeName"] == "v1"
    assert again.code == 422
    assert "spec is immutable after creation" in again.message


async def test_the_size_of_a_bound_claim_can_grow_and_not_fall_below_its_capacity(
    asgi: Asgi,
) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "data"}}
    (await asgi.post(claims, claim | {"spec": spec})).ok()
    status = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    (await asgi.patch(f"{claims}/data/status", {"status": status})).ok()

    def sized(size: str) -> Obj:
        return {"spec": {"resources": {"requests": {"storage": size}}}}

    assert (await asgi.patch(f"{claims}/data", sized("3Gi"))).code == 200
    smaller = await asgi.patch(f"{claims}/data", sized("1Gi"))
    assert smaller.code == 422
    assert "field can not be less than status.capacity" in smaller.message


async def test_the_phase_of_a_volume_has_the_time_of_its_change(asgi: Asgi) -> None:
    volumes = "/api/v1/persistentvolumes"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    }
    volume = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "v"}}
    made = (await asgi.post(volumes, volume | {"spec": spec})).ok()["status"]

    same = await asgi.patch(f"{volumes}/v/status", {"status": {"message": "waits"}})
    changed = await asgi.patch(f"{volumes}/v/status", {"status": {"phase": "Available"}})

    assert same.ok()["status"]["lastPhaseTransitionTime"] == made["lastPhaseTransitionTime"]
    assert changed.ok()["status"]["phase"] == "Available"
    assert changed.ok()["status"]["lastPhaseTransitionTime"]


async def test_a_service_that_becomes_an_alias_has_no_address(asgi: Asgi) -> None:
    services = "/api/v1/namespaces/default/services"
    spec = {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}
    service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": spec}
    (await asgi.post(services, service)).ok()

    moved = await asgi.patch(
        f"{services}/web", {"spec": {"type": "ExternalName", "externalName": "a.example"}}
    )

    assert moved.code == 200, moved.body
    assert {"clusterIP", "clusterIPs", "ipFamilies"}.isdisjoint(moved.json["spec"])
