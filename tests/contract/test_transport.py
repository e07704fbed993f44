"""The contract of `Transport`: the same calls, answers and errors in-process and over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

import manifests
from manifests import pod_spec
from sully.api.resource.types import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from sully.app import RunningControlPlane
from sully.client.direct import DirectTransport
from sully.client.events import EVENTS, EventRecorder, reference
from sully.client.http.transport import HttpTransport
from sully.client.informers.informer import Informer, own_key
from sully.client.kubeconfig.kubeconfig import find_access
from sully.client.objects import version_of
from sully.client.options import (
    DeleteOptions,
    ListOptions,
    PatchType,
    WatchOptions,
    WriteOptions,
)
from sully.client.transport import Key, Kind, Transport
from sully.machinery.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
)
from sully.machinery.meta import ObjectMeta, Wire
from sully.runtime.clock import SystemClock
from sully.runtime.workqueue import WorkQueue
from sully.testing.cluster import in_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

Obj = dict[str, Any]

# Secrets, because the control plane makes none of its own.
SECRETS: Kind[Obj] = Kind("", "v1", "secrets", "Secret", dict)
PODS: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
SERVICE_ACCOUNTS: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
# Classes, because no controller writes to them.
CLASSES = Kind(
    "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", DeviceClass, namespaced=False
)
KEY = Key("default", "m")
ONE, TWO = "MQ==", "Mg=="  # as secrets hold them


class SecretNames(Wire, frozen=True, kw_only=True):
    """A Secret of which only the metadata counts."""

    metadata: ObjectMeta


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[RunningControlPlane]:
    """Run a control plane for all tests: each removes what it made."""
    async with in_process() as made, DirectTransport(made.direct()) as admin:
        await admin.create(NAMESPACES, {"metadata": {"name": "team"}})
        account = {"metadata": {"name": "tester", "namespace": "default"}}
        await admin.create(SERVICE_ACCOUNTS, account)
        yield made


@pytest_asyncio.fixture(loop_scope="module", params=["direct", "http"])
async def transport(
    request: pytest.FixtureRequest, plane: RunningControlPlane
) -> AsyncIterator[Transport]:
    made: DirectTransport | HttpTransport = (
        DirectTransport(plane.direct())
        if request.param == "direct"
        else HttpTransport(find_access(str(plane.kubeconfig)))
    )
    async with made:
        yield made
        for kind in (SECRETS, PODS, EVENTS):
            for namespace in ("default", "team"):
                await made.delete_collection(
                    kind, namespace, options=DeleteOptions(grace_period_seconds=0)
                )
        await made.delete_collection(CLASSES, "")


def secret(name: str = "m", *, namespace: str = "default", **more: Any) -> Obj:
    metadata = {"namespace": namespace} | more.pop("metadata", {})
    return manifests.secret(name, **metadata) | {"data": {"a": ONE}} | more


POD = Key("default", "p")


async def create_pod(transport: Transport) -> None:
    """Create a pod that is on a node, so that deleting it takes time."""
    spec = pod_spec(nodeName="n", serviceAccountName="tester")
    await transport.create(PODS, manifests.pod(POD.name, spec, namespace=POD.namespace))


class TestObjects:
    """Reading and writing single objects."""

    async def test_life(self, transport: Transport) -> None:
        made = await transport.create(SECRETS, secret())
        assert (made["kind"], made["apiVersion"]) == ("Secret", "v1")
        assert made["metadata"]["uid"]
        assert await transport.get(SECRETS, KEY) == made

        made["data"]["b"] = TWO
        changed = await transport.update(SECRETS, made)
        assert changed["data"] == {"a": ONE, "b": TWO}
        assert version_of(changed) != version_of(made)
        assert await transport.get(SECRETS, KEY) == changed

        await transport.delete(SECRETS, KEY)
        with pytest.raises(NotFound):
            await transport.get(SECRETS, KEY)

    async def test_typed(self, transport: Transport) -> None:
        chosen = DeviceSelector(
            cel=CELDeviceSelector(expression="device.driver == 'd.example.com'")
        )
        expected = DeviceClass(
            metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(selectors=(chosen,))
        )
        made = await transport.create(CLASSES, expected)

        assert isinstance(made, DeviceClass)
        assert made.spec == expected.spec
        assert made.metadata.uid
        assert await transport.get(CLASSES, Key("", "gpu")) == made
        assert await transport.update(CLASSES, made) == made
        assert list((await transport.list(CLASSES)).items) == [made]

    async def test_projection(self, transport: Transport) -> None:
        await transport.create(SECRETS, secret(metadata={"labels": {"x": "y"}}))
        kind = SECRETS.read_as(SecretNames)

        result = await transport.get(kind, KEY)
        assert result.metadata.labels == {"x": "y"}
        assert list((await transport.list(kind)).items) == [result]

    async def test_generated_name(self, transport: Transport) -> None:
        body = {"metadata": {"generateName": "m-", "namespace": "default"}}
        made = await transport.create(SECRETS, body)

        assert made["metadata"]["name"].startswith("m-")
        assert body == {"metadata": {"generateName": "m-", "namespace": "default"}}

    async def test_what_comes_back_is_the_callers(self, transport: Transport) -> None:
        made = await transport.create(SECRETS, secret())
        made["data"]["a"] = "scribble"
        (await transport.get(SECRETS, KEY))["data"]["a"] = "scribble"
        (await transport.list(SECRETS)).items[0]["data"]["a"] = "scribble"

        assert (await transport.get(SECRETS, KEY))["data"] == {"a": ONE}

    @pytest.mark.parametrize("verb", ["create", "patch"])
    async def test_unknown_fields(self, transport: Transport, verb: str) -> None:
        await transport.create(SECRETS, secret())
        strict = WriteOptions(field_validation="Strict")

        more: Obj = {"colour": 1, "more": 2}
        write = (
            transport.create(SECRETS, secret("n", **more), "", strict)
            if verb == "create"
            else transport.patch(SECRETS, KEY, more, options=strict)
        )

        with pytest.raises(ApiError) as caught:
            await write

        fields = ", ".join(caught.value.strict_errors)
        assert fields == 'unknown field "colour", unknown field "more"'

    async def test_refused_for_another_reason(self, transport: Transport) -> None:
        with pytest.raises(Invalid) as caught:
            await transport.create(SECRETS, secret("N"))

        assert not caught.value.strict_errors

    async def test_dry_run(self, transport: Transport) -> None:
        dry = WriteOptions(dry_run=True)
        assert (await transport.create(SECRETS, secret(), options=dry))["data"] == {"a": ONE}
        with pytest.raises(NotFound):
            await transport.get(SECRETS, KEY)

        await transport.create(SECRETS, secret())
        await transport.delete(SECRETS, KEY, DeleteOptions(dry_run=True))
        await transport.delete_collection(SECRETS, "default", options=DeleteOptions(dry_run=True))
        assert (await transport.get(SECRETS, KEY))["data"] == {"a": ONE}

    async def test_finalizers_delay_deletion(self, transport: Transport) -> None:
        await transport.create(SECRETS, secret(metadata={"finalizers": ["sully.dev/test"]}))
        await transport.delete(SECRETS, KEY, DeleteOptions(propagation_policy="Background"))
        assert (await transport.get(SECRETS, KEY))["metadata"]["deletionTimestamp"]

        await transport.patch(SECRETS, KEY, {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            await transport.get(SECRETS, KEY)

    async def test_grace_period(self, transport: Transport) -> None:
        await create_pod(transport)
        await transport.delete(PODS, POD)
        assert (await transport.get(PODS, POD))["metadata"]["deletionGracePeriodSeconds"] == 30

        await transport.delete(PODS, POD, DeleteOptions(grace_period_seconds=0))
        with pytest.raises(NotFound):
            await transport.get(PODS, POD)

    async def test_preconditions(self, transport: Transport) -> None:
        made = await transport.create(SECRETS, secret())
        with pytest.raises(Conflict, match=r"the UID in the precondition \(other\) does not match"):
            await transport.delete(SECRETS, KEY, DeleteOptions(uid="other"))
        with pytest.raises(Conflict):
            await transport.delete(SECRETS, KEY, DeleteOptions(resource_version="1"))

        await transport.delete(SECRETS, KEY, DeleteOptions(uid=made["metadata"]["uid"]))


class TestPatches:
    """All forms of a patch."""

    PATCHES = (
        (PatchType.MERGE, {"data": {"a": None, "b": TWO}}),
        (PatchType.STRATEGIC, {"data": {"a": None, "b": TWO}}),
        (
            PatchType.JSON,
            [
                {"op": "remove", "path": "/data/a"},
                {"op": "add", "path": "/data/b", "value": TWO},
            ],
        ),
    )

    @pytest.mark.parametrize(("form", "patch"), PATCHES, ids=lambda item: getattr(item, "name", ""))
    async def test_patch(self, form: PatchType, patch: Any, transport: Transport) -> None:
        await transport.create(SECRETS, secret())
        changed = await transport.patch(SECRETS, KEY, patch, form)

        assert changed["data"] == {"b": TWO}
        assert await transport.get(SECRETS, KEY) == changed

    async def test_apply(self, transport: Transport) -> None:
        mine, yours = WriteOptions(field_manager="mine"), WriteOptions(field_manager="yours")
        made = await transport.apply(SECRETS, secret(), mine)
        assert made["metadata"]["managedFields"][0]["manager"] == "mine"

        with pytest.raises(Conflict) as caught:
            await transport.apply(SECRETS, secret(data={"a": TWO}), yours)
        assert caught.value.details is not None
        assert caught.value.details["causes"][0]["field"] == ".data.a"

        forced = WriteOptions(field_manager="yours", force=True)
        assert (await transport.apply(SECRETS, secret(data={"a": TWO}), forced))["data"] == {
            "a": TWO
        }

    async def test_status(self, transport: Transport) -> None:
        await create_pod(transport)
        patch = {"status": {"phase": "Running"}, "metadata": {"labels": {"x": "y"}}}
        changed = await transport.patch(PODS, POD, patch, PatchType.MERGE, "status")
        assert changed["status"]["phase"] == "Running"

        changed["status"]["phase"] = "Failed"
        await transport.update(PODS, changed, "status")
        assert (await transport.get(PODS, POD, "status"))["status"]["phase"] == "Failed"

    async def test_eviction(self, transport: Transport) -> None:
        await create_pod(transport)
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": POD._asdict(),
        }
        answer = await transport.create(PODS, eviction, "eviction")

        assert (answer["kind"], answer["status"]) == ("Status", "Success")
        assert (await transport.get(PODS, POD))["metadata"]["deletionTimestamp"]


@dataclass(frozen=True)
class Refused:
    call: Any
    error: type[ApiError]
    message: str
    details: Obj | None = None


LOST: Kind[Obj] = Kind("example.dev", "v1", "lost", "Lost", dict)
REFUSED = {
    "get of nothing": Refused(
        lambda t: t.get(SECRETS, Key("default", "none")),
        NotFound,
        'secrets "none" not found',
        {"name": "none", "kind": "secrets"},
    ),
    "delete of nothing": Refused(
        lambda t: t.delete(SECRETS, Key("default", "none")),
        NotFound,
        'secrets "none" not found',
        {"name": "none", "kind": "secrets"},
    ),
    "name is taken": Refused(
        lambda t: t.create(SECRETS, secret("taken")),
        AlreadyExists,
        'secrets "taken" already exists',
        {"name": "taken", "kind": "secrets"},
    ),
    "stale version": Refused(
        lambda t: t.update(SECRETS, secret("taken", metadata={"resourceVersion": "1"})),
        Conflict,
        'Operation cannot be fulfilled on secrets "taken": the object has been modified;'
        " please apply your changes to the latest version and try again",
        {"name": "taken", "kind": "secrets"},
    ),
    "wrong value": Refused(
        lambda t: t.create(SECRETS, secret("Taken")),
        Invalid,
        'Secret "Taken" is invalid: metadata.name: Invalid value: "Taken"',
    ),
    "wrong selector": Refused(
        lambda t: t.list(SECRETS, options=ListOptions(label_selector="a=b=c")),
        BadRequest,
        "found '=', expected: ',' or 'end of string'",
    ),
    "no such kind": Refused(
        lambda t: t.list(LOST), NotFound, "the server could not find the requested resource"
    ),
    "no such part": Refused(
        lambda t: t.get(SECRETS, KEY, "status"),
        NotFound,
        "the server could not find the requested resource",
    ),
    "namespace missing": Refused(
        lambda t: t.create(SECRETS, secret(namespace="")),
        BadRequest,
        "secrets: a namespace must be given",
    ),
    "name missing": Refused(
        lambda t: t.delete(SECRETS, Key("default", "")), BadRequest, "secrets: a name must be given"
    ),
    "apply without manager": Refused(
        lambda t: t.apply(SECRETS, secret(), WriteOptions()),
        Invalid,
        "fieldManager: Required value",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_refusal(case: Refused, transport: Transport) -> None:
    await transport.create(SECRETS, secret("taken"))
    with pytest.raises(ApiError) as caught:
        await case.call(transport)

    error = caught.value
    assert type(error) is case.error
    assert case.message in error.message
    if case.details is not None:
        assert error.details == case.details


class TestCollections:
    """Listing and deleting many."""

    @pytest_asyncio.fixture(autouse=True, loop_scope="module")
    async def _secrets(self, transport: Transport) -> None:
        for name, label in zip("abcde", "xyxyx", strict=True):
            await transport.create(SECRETS, secret(name, metadata={"labels": {"l": label}}))
        await transport.create(SECRETS, secret("f", namespace="team"))

    async def _names(self, transport: Transport, namespace: str = "", **options: Any) -> list[str]:
        page = await transport.list(SECRETS, namespace, ListOptions(**options))
        return [item["metadata"]["name"] for item in page.items]

    async def test_namespaces(self, transport: Transport) -> None:
        assert await self._names(transport) == ["a", "b", "c", "d", "e", "f"]
        assert await self._names(transport, "team") == ["f"]
        assert await self._names(transport, "nowhere") == []

    async def test_selectors(self, transport: Transport) -> None:
        assert await self._names(transport, label_selector="l=x") == ["a", "c", "e"]
        assert await self._names(transport, field_selector="metadata.name=b") == ["b"]

    async def test_items_report_what_they_are(self, transport: Transport) -> None:
        page = await transport.list(SECRETS, "team")

        assert page.items[0] == await transport.get(SECRETS, Key("team", "f"))

    async def test_pages(self, transport: Transport) -> None:
        first = await transport.list(SECRETS, "default", ListOptions(limit=2))
        await transport.create(SECRETS, secret("bb"))
        second = await transport.list(
            SECRETS, "default", ListOptions(limit=2, continue_token=first.continue_token)
        )
        last = await transport.list(
            SECRETS, "default", ListOptions(limit=2, continue_token=second.continue_token)
        )

        names = [item["metadata"]["name"] for item in (*first.items, *second.items, *last.items)]
        # All pages show the moment of the first.
        assert names == ["a", "b", "c", "d", "e"]
        assert (first.remaining, second.remaining, last.remaining) == (3, 1, None)
        assert last.continue_token == ""
        assert first.resource_version == second.resource_version == last.resource_version

    async def test_delete_collection(self, transport: Transport) -> None:
        await transport.delete_collection(SECRETS, "default", ListOptions(label_selector="l=x"))

        assert await self._names(transport) == ["b", "d", "f"]


class TestWatch:
    """Following changes."""

    async def test_changes_from_a_version(self, transport: Transport) -> None:
        start = (await transport.list(SECRETS)).resource_version
        made = await transport.create(SECRETS, secret())
        changed = await transport.patch(SECRETS, KEY, {"data": {"a": TWO}})
        await transport.delete(SECRETS, KEY)

        options = WatchOptions(resource_version=start)
        async with aclosing(transport.watch(SECRETS, "default", options)) as events:
            seen = [await anext(events) for _ in range(3)]

        assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
        assert [event.object for event in seen[:2]] == [made, changed]
        assert seen[2].object is not None
        assert seen[2].object["data"] == {"a": TWO}
        assert [event.resource_version for event in seen] == [
            version_of(event.object) for event in seen
        ]
        # A deletion has a version of its own, from which a watch can continue.
        assert int(seen[2].resource_version) > int(version_of(changed))

    async def test_all_that_exists_comes_first(self, transport: Transport) -> None:
        made = await transport.create(SECRETS, secret())
        async with aclosing(transport.watch(SECRETS)) as events:
            event = await anext(events)

        assert (event.type, event.object) == ("ADDED", made)

    async def test_selector(self, transport: Transport) -> None:
        start = (await transport.list(SECRETS)).resource_version
        await transport.create(SECRETS, secret("other"))
        await transport.create(SECRETS, secret(metadata={"labels": {"l": "x"}}))
        await transport.patch(SECRETS, KEY, {"metadata": {"labels": {"l": "y"}}})

        options = WatchOptions(resource_version=start, label_selector="l=x")
        async with aclosing(transport.watch(SECRETS, options=options)) as events:
            seen = [await anext(events) for _ in range(2)]

        assert [event.type for event in seen] == ["ADDED", "DELETED"]

    async def test_typed(self, transport: Transport) -> None:
        await transport.create(SECRETS, secret())
        async with aclosing(transport.watch(SECRETS.read_as(SecretNames))) as events:
            event = await anext(events)

        assert event.object == await transport.get(SECRETS.read_as(SecretNames), KEY)

    async def test_refusal(self, transport: Transport) -> None:
        options = WatchOptions(label_selector="a=b=c")
        with pytest.raises(BadRequest):
            async with aclosing(transport.watch(SECRETS, options=options)) as events:
                await anext(events)

    async def test_live(self, transport: Transport) -> None:
        start = (await transport.list(SECRETS)).resource_version
        options = WatchOptions(resource_version=start)
        events = transport.watch(SECRETS, options=options)
        async with aclosing(events), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(anext(events))
            made = await transport.create(SECRETS, secret())

        assert waiting.result().object == made


@asynccontextmanager
async def informed(transport: Transport, **more: Any) -> AsyncIterator[Informer[SecretNames]]:
    informer = Informer(transport, SECRETS.read_as(SecretNames), clock=SystemClock(), **more)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(informer.run())
        yield informer
        task.cancel()


async def test_controller_takes_keys(transport: Transport) -> None:
    """An informer and a work queue make a controller: every change ends in its key."""
    await transport.create(SECRETS, secret("before"))
    queue: WorkQueue[Key] = WorkQueue(SystemClock())
    by_label = {"l": lambda obj: obj.metadata.labels.values()}
    async with informed(transport, indexes=by_label) as informer:
        informer.enqueue(queue.add, own_key)
        await informer.wait_synced()
        assert await queue.get() == Key("default", "before")

        await transport.create(SECRETS, secret("after", metadata={"labels": {"l": "x"}}))
        assert await queue.get() == Key("default", "after")
        assert [obj.metadata.name for obj in informer.by_index("l", "x")] == ["after"]
        queue.done(Key("default", "after"))

        await transport.delete(SECRETS, Key("default", "after"))
        assert await queue.get() == Key("default", "after")
        assert informer.get(Key("default", "after")) is None
        assert informer.freshness.problem is None


async def test_events_are_counted(transport: Transport) -> None:
    made = await transport.create(SECRETS, secret())
    recorder = EventRecorder(transport, "tester", clock=SystemClock())
    about = reference(SECRETS, made)
    for _ in range(3):
        recorder.event(about, "Warning", "Broken", "it failed")
    recorder.event(about, "Normal", "Mended", "it works")
    await recorder.flush()

    items = (await transport.list(EVENTS, "default")).items
    brief = {(event["type"], event["reason"], event["count"]) for event in items}
    assert brief == {("Warning", "Broken", 3), ("Normal", "Mended", 1)}
    assert {event["involvedObject"]["uid"] for event in items} == {made["metadata"]["uid"]}
    assert {event["source"]["component"] for event in items} == {"tester"}
