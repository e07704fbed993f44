"""The receiver of signals: over HTTP, with a server behind it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

import manifests
from monitor.world import World
from sully.api.sully.types import DeviceHealth
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.transport import Key
from sully.domain.health.reports import health_of
from sully.domain.health.samples import Gpu
from sully.domain.health.slices import slice_spec
from sully.machinery.errors import NotFound
from sully.machinery.formats.timestamps import format_micro_time
from sully.monitor.receiver import Receiver, receiving
from sully.monitor.signals import SignalRecorder
from sully.runtime.clock import SystemClock
from sully.views.kinds import DEVICE_HEALTH, SLICES

Obj = dict[str, Any]
TOKEN = "secret"


async def check(authorization: str, path: str) -> int:
    if authorization != f"Bearer {TOKEN}":
        return 401
    return 200 if path in ("/signals", "/alertmanager") else 403


class Senders:
    """Senders of signals, and what is in the reports."""

    def __init__(self, world: World, session: aiohttp.ClientSession, url: str) -> None:
        self.world, self.session, self.url = world, session, url

    async def post(self, path: str, body: Any, token: str = TOKEN) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(self.url + path, data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def signal(self, *signals: Obj) -> tuple[int, list[str]]:
        code, answer = await self.post("/signals", {"signals": signals})
        return code, [result["result"] for result in answer["results"]]

    async def report(self, name: str) -> DeviceHealth:
        return await self.world.admin.get(DEVICE_HEALTH, Key("", name))

    def now(self) -> str:
        return format_micro_time(self.world.clock.now())


@pytest.fixture
async def senders() -> AsyncIterator[Senders]:
    world = World()
    for node in ("n1", "n2"):
        gpus = [Gpu(uuid=f"GPU-{node}-{x}", index=x, pci_address=f"3{x}:00.0") for x in range(2)]
        spec = slice_spec(gpus, driver="gpu.nvidia.com", node=node, driver_version="580.1.2")
        spec["pool"]["generation"] = 1
        await world.admin.create(SLICES, manifests.body("ResourceSlice", node, spec))
    recorder = SignalRecorder(world.admin, clock=world.clock)
    receiver = Receiver(recorder, check, clock=world.clock)
    async with (
        receiving(receiver, "127.0.0.1", 0, None) as port,
        aiohttp.ClientSession() as session,
    ):
        yield Senders(world, session, f"http://127.0.0.1:{port}")


def hot(time: str, status: str = "firing", **device: Any) -> Obj:
    return {
        "device": device or {"uuid": "GPU-n1-0"},
        "key": "hot",
        "severity": "Critical",
        "time": time,
        "status": status,
    }


async def test_a_signal_is_recorded_once_and_cleared(senders: Senders) -> None:
    first = hot(senders.now())
    assert await senders.signal(first) == (200, ["Recorded"])
    assert await senders.signal(first, first) == (200, ["Duplicate", "Duplicate"])
    report = await senders.report("n1.signals")
    (device,) = report.spec.devices
    assert (device.uuid, device.status) == ("gpu-n1-0", "Unhealthy")
    assert report.spec.lease_duration_seconds is None

    assert await senders.signal(hot(senders.now(), "resolved")) == (200, ["Cleared"])
    # A recorded request does not set it again.
    assert await senders.signal(first) == (200, ["Late"])
    report = await senders.report("n1.signals")
    assert health_of(report, report.spec.devices[0], now=senders.world.clock.now()) is None


async def test_each_way_to_name_a_device(senders: Senders) -> None:
    time = senders.now()
    got = await senders.signal(
        hot(time, pciAddress="0000:31:00.0", node="n1"),
        hot(time, index=1, node="n2"),
        hot(time, name="gpu.nvidia.com/n2/gpu-0"),
    )

    assert got == (200, ["Recorded"] * 3)
    assert [x.uuid for x in (await senders.report("n1.signals")).spec.devices] == ["gpu-n1-1"]
    names = {x.uuid for x in (await senders.report("n2.signals")).spec.devices}
    assert names == {"gpu-n2-0", "gpu-n2-1"}


async def test_what_is_wrong_is_answered_by_itself(senders: Senders) -> None:
    time = senders.now()
    code, answer = await senders.post(
        "/signals",
        {"signals": [hot(time, uuid="GPU-9"), {"key": "x"}, hot(time), hot(time, index=0)]},
    )

    assert code == 422
    assert [x["result"] for x in answer["results"]] == [
        "UnknownDevice",
        "Invalid",
        "Recorded",
        "UnknownDevice",
    ]
    assert answer["results"][0]["message"] == "unknown device (UUID GPU-9)"
    assert "name the node" in answer["results"][3]["message"]


async def test_an_alert_fires_repeats_and_ends(senders: Senders) -> None:
    alert = {
        "status": "firing",
        "labels": {"alertname": "GpuHot", "severity": "critical", "UUID": "GPU-n2-0"},
        "annotations": {"summary": "hot"},
        "startsAt": senders.now(),
        "endsAt": "0001-01-01T00:00:00Z",
    }
    unknown = {**alert, "labels": {"alertname": "NodeDown", "instance": "n7"}}

    async def send(*alerts: Obj) -> tuple[int, list[str]]:
        code, answer = await senders.post("/alertmanager", {"version": "4", "alerts": alerts})
        return code, [result["result"] for result in answer["results"]]

    assert await send(alert, unknown) == (200, ["Recorded", "UnknownDevice"])
    assert await send(alert) == (200, ["Duplicate"])
    ended = {**alert, "status": "resolved", "endsAt": senders.now()}
    assert await send(ended) == (200, ["Cleared"])
    assert await send(alert, ended) == (200, ["Late", "Duplicate"])


REFUSED = {
    "no token": ("/signals", "", b"{}", 401),
    "another token": ("/alertmanager", "guess", b"{}", 401),
    "no body": ("/signals", TOKEN, b"", 400),
    "a body that is nested too deeply": ("/signals", TOKEN, b'{"x": ' + b"[" * 100_000, 400),
    "another body": ("/alertmanager", TOKEN, b'{"signals": []}', 400),
}


@pytest.mark.parametrize(("path", "token", "body", "want"), REFUSED.values(), ids=REFUSED.keys())
async def test_refused(senders: Senders, path: str, token: str, body: bytes, want: int) -> None:
    code, _ = await senders.post(path, body, token)

    assert code == want
    with pytest.raises(NotFound):
        await senders.report("n1.signals")


async def test_without_a_token_no_body_is_read(senders: Senders) -> None:
    """The answer comes before the body, which never does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(senders.url.rpartition(":")[2]))
    writer.write(b"POST /signals HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")

    assert (await reader.readline()).startswith(b"HTTP/1.1 401")
    writer.close()


async def test_many_senders_together(senders: Senders) -> None:
    """Requests change one report at the same time; none of their signals is lost."""
    time = senders.now()
    signals = [{**hot(time), "key": f"key-{number}"} for number in range(8)]
    responses = await asyncio.gather(*(senders.signal(signal) for signal in signals))

    assert responses == [(200, ["Recorded"])] * 8
    (device,) = (await senders.report("n1.signals")).spec.devices
    assert len(device.reasons) == 8


async def test_a_device_that_is_new_is_found(senders: Senders) -> None:
    gpu = Gpu(uuid="GPU-n3-0", index=0, pci_address="30:00.0")
    assert (await senders.signal(hot(senders.now(), uuid="GPU-n3-0")))[1] == ["UnknownDevice"]
    spec = slice_spec([gpu], driver="gpu.nvidia.com", node="n3", driver_version="1.2.3")
    spec["pool"]["generation"] = 1
    await senders.world.admin.create(SLICES, {"metadata": {"name": "n3"}, "spec": spec})
    # Whoever reports unknown devices all the time does not make it look for them all the time.
    while (await senders.signal(hot(senders.now(), uuid="GPU-n3-0")))[1] != ["Recorded"]:
        pass


async def test_without_a_server_senders_have_to_try_again(unused_tcp_port: int) -> None:
    clock = SystemClock()
    async with HttpTransport(Access(server=f"http://127.0.0.1:{unused_tcp_port}")) as nobody:
        receiver = Receiver(SignalRecorder(nobody, clock=clock), check, clock=clock)
        body = json.dumps({"signals": [hot(format_micro_time(clock.now()))]}).encode()

        async def read() -> bytes:
            return body

        code, answer = await receiver.answer("/signals", f"Bearer {TOKEN}", read)

    assert code == 503
    assert answer["message"].startswith("not recorded: ")
