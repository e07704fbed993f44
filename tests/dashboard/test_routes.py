"""What the pages ask and change, in front of a control plane in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
import yaml

import manifests
from architecture.project import ROOT
from cuts import wire_to
from dashboard.page import Browser, Page, dashboard, until
from sully.client.transport import ResourceRef
from sully.dashboard.app import PAGE_KEY
from sully.machinery.gates import parse_gates
from sully.testing.clock import FakeClock

DEVICE = "gpu.example.com/node-7/gpu-3"
ALL = [f"gpu.example.com/node-7/gpu-{number}" for number in range(4)]
ANYTHING = {"apiGroups": ["*"], "resources": ["*"]}
PLURALS = {
    "Node": ("", "v1", "nodes"),
    "DeviceClass": ("resource.k8s.io", "v1", "deviceclasses"),
    "ResourceSlice": ("resource.k8s.io", "v1", "resourceslices"),
    "DeviceTaintRule": ("resource.k8s.io", "v1", "devicetaintrules"),
    "Pod": ("", "v1", "pods"),
    "ResourceClaim": ("resource.k8s.io", "v1", "resourceclaims"),
    "ManagedCluster": ("cluster.open-cluster-management.io", "v1", "managedclusters"),
}
POD = manifests.pod("waits", manifests.pod_spec("many"), namespace="default")
CLAIM = manifests.body(
    "ResourceClaim", "many", manifests.claim_spec("gpu", "gpu", count=9), namespace="default"
)


async def create(page: Page, obj: dict[str, Any]) -> None:
    namespace = obj["metadata"].get("namespace", "")
    ref = ResourceRef(*PLURALS[obj["kind"]], namespace)
    await page.plane.direct().call("create", ref, body=obj)


async def rules(page: Page) -> dict[str, Any]:
    reply = await page.plane.direct().call("list", ResourceRef(*PLURALS["DeviceTaintRule"]))
    return {item.obj["metadata"]["name"]: item.obj for item in reply.items}


@asynccontextmanager
async def fleet() -> AsyncIterator[tuple[Page, Browser]]:
    """Run a dashboard in front of a node with four GPUs; its viewer has listed everything."""
    async with dashboard() as page:
        for obj in yaml.safe_load_all((ROOT / "examples/gpus.yaml").read_text()):
            await create(page, obj)
        browser = await page.signed_in()
        assert (await browser.get("/api/pending")).code == 200
        yield page, browser


async def ask(browser: Browser, path: str) -> Any:
    answer = await browser.get(f"/api/{path}")
    assert answer.code == 200, answer.body
    return answer.json


async def send(browser: Browser, path: str, **body: Any) -> Any:
    answer = await browser.post(f"/api/{path}", body)
    assert answer.code == 200, answer.body
    return answer.json


async def test_devices_are_selected_as_on_the_command_line() -> None:
    async with fleet() as (_, browser):
        cel = quote('device.attributes["gpu.example.com"].model == "a100"')
        by_class = await ask(browser, "select?class=gpu")
        by_model = await ask(browser, f"select?cel={cel}")
        by_label = await ask(browser, "select?label=zone!=b")
        other_label = await ask(browser, "select?class=gpu&label=zone=b")
        by_uuid = await ask(browser, "select?uuid=GPU-none")
        wrong = await ask(browser, "select?cel=device.")
        nothing = await browser.get("/api/select")

    assert by_class["devices"] == ALL
    assert by_model["devices"] == ALL[:2]
    assert by_label["devices"] == ALL
    assert (other_label["devices"], by_uuid["devices"]) == ([], [])
    assert (wrong["devices"], wrong["message"][:14]) == ([], "--cel device.:")
    assert nothing.json == {"error": "no filter is set"}


async def test_attributes_for_groups() -> None:
    async with fleet() as (_, browser):
        names = await ask(browser, "attributes")
        models = await ask(browser, "attributes?name=model")

    assert names == {"names": ["model"]}
    assert models["values"][ALL[0]] == "a100"


async def test_the_page_of_a_device() -> None:
    async with fleet() as (page, browser):
        await create(page, CLAIM)
        await create(page, POD)
        spec = {
            "deviceSelector": {"device": "gpu-3"},
            "taint": {"key": "example.com/hot", "effect": "NoSchedule", "description": "fan"},
        }
        rule = {"kind": "DeviceTaintRule", "metadata": {"name": "hot"}, "spec": spec}
        await create(page, rule)
        device = await until(
            lambda: ask(browser, f"device?id={DEVICE}"),
            lambda result: result["taints"] and result["candidates"],
        )
        missing = await browser.get("/api/device?id=a/b/c")
        past = await until(
            lambda: ask(browser, f"history?kind=device&name={DEVICE}"), lambda x: x["history"]
        )
        explained = await ask(browser, f"explain?kind=device&name={DEVICE}")
        unknown = await browser.get("/api/explain?kind=rule&name=none")

    (taint,) = device["taints"]
    assert (taint["origin"]["name"], taint["description"]) == ("hot", "fan")
    assert device["origins"]["hot"]["createdBy"] == "kubernetes-admin"
    assert device["classes"] == ["gpu"]
    (candidate,) = device["candidates"]
    assert candidate["name"] == "waits"
    assert candidate["reason"] == "it does not tolerate example.com/hot:NoSchedule"
    assert not candidate["fits"]
    assert missing.json == {"error": 'device "a/b/c" not found'}
    assert past["history"][0]["rule"] == "hot"
    assert explained["kind"] == "Device"
    assert unknown.code == 422


async def test_rules_evictions_clusters_and_charts() -> None:
    async with fleet() as (page, browser):
        taint = {"key": "example.com/hot", "effect": "NoExecute"}
        spec = {"deviceSelector": {"device": "gpu-3"}, "taint": taint}
        await create(page, {"kind": "DeviceTaintRule", "metadata": {"name": "hot"}, "spec": spec})
        sources = await until(lambda: ask(browser, "rules"), lambda x: x["sources"])
        evictions = await until(lambda: ask(browser, "evictions"), lambda x: x["evictions"])
        paused = await send(browser, "pause", verb="pause", rules=["hot"])
        annotations = (await rules(page))["hot"]["metadata"]["annotations"]
        wrong = await browser.post("/api/pause", {"verb": "stop", "rules": ["hot"]})
        clusters = await ask(browser, "clusters")
        charts = await until(lambda: ask(browser, "charts"), lambda x: x["samples"])

    assert sources["sources"][0]["name"] == "hot"
    assert (sources["policies"], sources["maintenances"]) == ([], [])
    assert evictions["evictions"][0]["rule"] == "hot"
    assert "hot paused" in paused["lines"][0]
    assert "sully.dev/paused" in annotations or any("pause" in name for name in annotations)
    assert wrong.code == 422
    assert clusters == {"served": True, "clusters": [], "placements": []}
    assert charts["recorded"]


async def test_a_cordon_is_planned_confirmed_and_undone() -> None:
    async with fleet() as (page, browser):
        flags = {"reason": "fans", "for": "2h"}
        plan = await send(browser, "plan", action="cordon", devices=ALL, flags=flags)
        early = await browser.post("/api/apply", {"id": plan["id"], "confirm": "3"})
        done = await send(browser, "apply", id=plan["id"], confirm="4")
        twice = await browser.post("/api/apply", {"id": plan["id"], "confirm": "4"})
        (rule,) = (await rules(page)).values()
        listed = await ask(browser, "operations")
        undone = await send(browser, "operation", id=done["id"], verb="undo")
        left = await rules(page)

    assert plan["type"] == {"count": 4, "thing": "devices that change"}
    assert plan["command"] == (
        "sully cordon device 'gpu.example.com/node-7/*' --reason=fans --for=2h"
    )
    assert early.json == {"error": "type the number of devices that change (4) to continue"}
    assert twice.json == {"error": "the plan is too old; make a new one"}
    assert rule["spec"]["deviceSelector"] == {"driver": "gpu.example.com", "pool": "node-7"}
    assert rule["spec"]["taint"]["description"] == "fans"
    assert [x["id"] for x in listed["operations"]] == [done["id"]]
    assert undone["state"] == "undone"
    assert left == {}


async def test_a_taint_is_paused_resumed_and_deleted() -> None:
    async with fleet() as (page, browser):
        body = {"devices": [DEVICE], "key": "example.com/hot", "effect": "NoExecute"}
        plan = await send(browser, "plan", action="taint", **body)
        confirm = str(plan["type"]["count"]) if plan["type"] else ""
        done = await send(browser, "apply", id=plan["id"], confirm=confirm)
        (name,) = await rules(page)
        paused = await send(browser, "operation", id=done["id"], verb="pause")
        resumed = await send(browser, "operation", id=done["id"], verb="resume")
        unknown = await browser.post("/api/operation", {"id": done["id"], "verb": "stop"})
        other = await browser.post("/api/operation", {"id": "99", "verb": "undo"})
        plan = await send(browser, "plan", action="delete", rules=[name])
        await send(browser, "apply", id=plan["id"], confirm=_typed(plan))
        left = await rules(page)

    assert done["state"] == "running"
    assert (paused["state"], resumed["state"]) == ("paused", "running")
    assert (unknown.code, other.code) == (422, 422)
    assert left == {}


async def test_a_taint_is_done_when_no_pod_is_left_and_undone_with_its_rule() -> None:
    async def state() -> str:
        (operation,) = (await ask(browser, "operations"))["operations"]
        return str(operation["state"])

    async with fleet() as (page, browser):
        body = {"devices": [DEVICE], "key": "example.com/hot", "effect": "NoExecute"}
        plan = await send(browser, "plan", action="taint", **body)
        await send(browser, "apply", id=plan["id"], confirm=_typed(plan))
        await until(state, lambda x: x == "done")
        (operation,) = (await ask(browser, "operations"))["operations"]
        again = await send(browser, "operation", id=operation["id"], verb="resume")
        ref = ResourceRef(*PLURALS["DeviceTaintRule"], "", operation["rules"][0])
        await page.plane.direct().call("delete", ref)
        await until(state, lambda x: x == "undone")

    assert [x["rule"] for x in operation["evictions"]] == operation["rules"]
    assert again["state"] == "running"


async def test_an_undo_that_is_refused_leaves_the_operation_as_it_is() -> None:
    read = {**ANYTHING, "verbs": ["get", "list", "watch"]}
    write = {**ANYTHING, "resources": ["devicetaintrules"], "verbs": ["create"]}
    async with fleet() as (page, _):
        browser = Browser(page.app)
        await browser.login(token=await page.token("creator", read, write))
        plan = await send(browser, "plan", action="cordon", devices=[DEVICE])
        done = await send(browser, "apply", id=plan["id"], confirm=_typed(plan))
        refused = await browser.post("/api/operation", {"id": done["id"], "verb": "undo"})
        (operation,) = (await ask(browser, "operations"))["operations"]
        left = await rules(page)

    assert refused.code == 403
    assert operation["state"] == "done"
    assert list(left) == operation["rules"]


@pytest.mark.parametrize("gate", [True, False])
async def test_only_effects_that_the_server_stores_are_offered(*, gate: bool) -> None:
    gates = parse_gates(f"SullyPreferNoSchedule={str(gate).lower()}")
    async with dashboard(gates=gates) as page:
        offered = await ask(await page.signed_in(), "effects")

    kubernetes = ["NoSchedule", "NoExecute", "None"]
    assert offered["effects"] == [*kubernetes, *(["PreferNoSchedule"] if gate else [])]


async def test_a_plan_waits_until_everything_is_listed() -> None:
    async with fleet() as (page, _):
        # Nothing of this viewer has been listed yet.
        browser = Browser(page.app)
        await browser.login(token=await page.token("writer", {**ANYTHING, "verbs": ["*"]}))
        plan = await browser.post("/api/plan", {"action": "cordon", "devices": [DEVICE]})

    assert plan.code == 200, plan.body


async def test_what_was_written_before_a_failure_is_reported() -> None:
    taken = {"deviceSelector": {"device": "none"}, "taint": {"key": "a/b", "effect": "NoSchedule"}}
    async with fleet() as (page, browser):
        body = {"devices": [ALL[0], DEVICE], "key": "example.com/hot", "effect": "NoSchedule"}
        plan = await send(browser, "plan", action="taint", **body)
        names = [x.split()[0].removeprefix("DeviceTaintRule/") for x in plan["plan"]["changes"]]
        metadata = {"name": names[-1]}
        await create(page, {"kind": "DeviceTaintRule", "metadata": metadata, "spec": taken})
        failed = await browser.post("/api/apply", {"id": plan["id"], "confirm": _typed(plan)})
        written = await rules(page)

    assert failed.code == 422
    assert set(names) == set(written)
    assert len(names) == 2
    assert names[0] in failed.json["error"]


def _typed(plan: Any) -> str:
    return str(plan["type"]["count"]) if plan["type"] else ""


async def test_a_drain_of_unused_devices_ends() -> None:
    async with fleet() as (_, browser):
        flags = {"one-at-a-time": True}
        plan = await send(browser, "plan", action="drain", devices=[DEVICE], flags=flags)
        done = await send(browser, "apply", id=plan["id"], confirm=_typed(plan))
        operations = await until(
            lambda: ask(browser, "operations"),
            lambda x: x["operations"][0]["state"] == "done",
        )
        resumed = await send(browser, "operation", id=done["id"], verb="resume")
        paused = await send(browser, "operation", id=done["id"], verb="pause")

    assert "1 device to drain; 0 pods use it." in plan["notes"][0]
    assert "cordon-" in operations["operations"][0]["rules"][0]
    assert resumed["state"] == "running"
    assert paused["state"] in ("paused", "done")


async def test_a_cluster_is_tainted() -> None:
    async with fleet() as (page, browser):
        cluster = {
            "kind": "ManagedCluster",
            "metadata": {"name": "eu-1"},
            "spec": {"hubAcceptsClient": True},
        }
        await create(page, cluster)
        body = {"clusters": ["eu-1"], "key": "maintenance", "effect": "NoSelect"}
        plan = await send(browser, "plan", action="taint-cluster", **body)
        await send(browser, "apply", id=plan["id"], confirm=_typed(plan))
        listed = await until(
            lambda: ask(browser, "clusters"),
            lambda x: (
                x["clusters"] and any(t["key"] == "maintenance" for t in x["clusters"][0]["taints"])
            ),
        )

    assert listed["clusters"][0]["name"] == "eu-1"
    assert listed["clusters"][0]["available"] == "Unknown"


async def test_what_cannot_be_planned_is_refused_with_a_reason() -> None:
    cases = {
        "unknown action": {"action": "explode"},
        "no device is selected": {"action": "cordon"},
        "no rule is selected": {"action": "delete"},
        "not found": {"action": "delete", "rules": ["none"]},
        "invalid duration": {"action": "cordon", "devices": [DEVICE], "flags": {"for": "x"}},
        "contradict": {
            "action": "drain",
            "devices": [DEVICE],
            "flags": {"one-at-a-time": True, "max-unavailable": "3"},
        },
    }
    async with fleet() as (_, browser):
        responses = {text: await browser.post("/api/plan", body) for text, body in cases.items()}

    assert {text: x.code for text, x in responses.items()} == dict.fromkeys(cases, 422)
    assert [text for text, x in responses.items() if text not in x.json["error"]] == []


async def test_a_duration_of_any_length_is_no_internal_error() -> None:
    lengths = ("99999999999999h", f"{'9' * 400}s")
    plans = [
        {"action": action, "devices": [DEVICE], "key": "a.example/b", "effect": "None", **flags}
        for length in lengths
        for action, flags in (
            ("cordon", {"flags": {"for": length}}),
            ("drain", {"flags": {"timeout": length}}),
            ("taint", {"flags": {"for": length}}),
        )
    ]
    async with fleet() as (_, browser):
        planned = [await browser.post("/api/plan", body) for body in plans]
        past = [await browser.get(f"/api/history?since={length}") for length in lengths]

    assert [answer.code for answer in (*planned, *past)] == [200] * (len(plans) + len(past))


async def test_the_stream_has_all_devices_and_then_changes() -> None:
    async with fleet() as (page, browser):
        events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        closed = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_follow(page, browser, events, closed))
            first = await _next(events, "fleet")
            taint = {"key": "example.com/hot", "effect": "NoSchedule"}
            spec = {"deviceSelector": {"device": "gpu-3"}, "taint": taint}
            rule = {"kind": "DeviceTaintRule", "metadata": {"name": "hot"}, "spec": spec}
            await create(page, rule)
            tainted = await _next(events, "devices")
            kinds = await _next(events, "changed")
            await create(page, CLAIM)
            await create(page, POD)
            pending = await _next(events, "pending", lambda x: x)
            slices = ResourceRef(*PLURALS["ResourceSlice"], "", "node-7-gpus")
            await page.plane.direct().call("delete", slices)
            gone = await _next(events, "devices", lambda x: x["removed"])
            page.app.sessions.close_all(next(iter(page.app.sessions.viewers())))
            await _next(events, "ended")
            closed.set()

    assert [row["d"] for row in first["devices"]] == ALL
    assert [(row["d"], row["s"], row["t"]) for row in tainted["changed"]] == [
        (DEVICE, "noschedule", ["example.com/hot:NoSchedule"])
    ]
    assert "devicetaintrules" in kinds
    assert pending == [{"namespace": "default", "name": "waits", "classes": ["gpu"]}]
    assert gone["removed"] == ALL


async def _next(events: asyncio.Queue[Any], name: str, right: Any = lambda _: True) -> Any:
    while True:
        event, value = await events.get()
        if event == name and right(value):
            return value


async def _follow(
    page: Page, browser: Browser, events: asyncio.Queue[Any], closed: asyncio.Event
) -> None:
    """Read the stream as a browser does."""
    headers = {"host": "x", "cookie": browser.cookie, PAGE_KEY: browser.key}
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "https",
        "path": "/dashboard/api/stream",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def receive() -> dict[str, Any]:
        await closed.wait()
        return {"type": "http.disconnect"}

    async def send_(message: Any) -> None:
        for block in message.get("body", b"").decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in lines:
                events.put_nowait((lines["event"], json.loads(lines["data"])))

    await page.app(scope, receive, send_)


async def test_a_server_that_stops_makes_the_page_stale() -> None:
    async with fleet() as (page, browser):
        viewer = next(iter(page.app.sessions.viewers()))
        subscription = viewer.live.subscribe()
        page.plane._listener.stop()
        while True:
            event = await subscription.next(1.0)
            if event is not None and event.startswith(b"event: stale") and b"20" in event:
                break
        answer = await browser.get("/api/explain?kind=node&name=node-7")

    assert answer.code == 503


async def test_a_server_that_is_unreachable_makes_the_page_stale_until_it_answers() -> None:
    clock = FakeClock()

    async def stale(*, is_stale: bool) -> None:
        while True:
            clock.advance(1.0)
            event = await subscription.next(0.01)
            if event and event.startswith(b"event: stale") and (b'""' not in event) == is_stale:
                return

    async with dashboard(clock, wire=wire_to) as page:
        browser = await page.signed_in()
        assert (await browser.get("/api/pending")).code == 200
        subscription = next(iter(page.app.sessions.viewers())).live.subscribe()
        page.wire.stalled = True
        await stale(is_stale=True)
        page.wire.mend()
        await stale(is_stale=False)


async def test_a_viewer_is_shown_what_it_may_not_list() -> None:
    slices = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceslices", "deviceclasses", "devicetaintrules"],
        "verbs": ["get", "list", "watch"],
    }
    async with fleet() as (page, _):
        browser = Browser(page.app)
        await browser.login(token=await page.token("reader", slices))
        await ask(browser, "pending")
        viewer = next(x for x in page.app.sessions.viewers() if x.user.endswith(":reader"))
        subscription = viewer.live.subscribe()
        events = [await subscription.next(1.0) for _ in range(4)]

    fleet_event, hidden = (
        json.loads((x or b"").split(b"data: ")[1]) for x in (events[3], events[2])
    )
    assert {row["s"] for row in fleet_event["devices"]} == {"unknown"}
    assert {"pods", "resourceclaims", "nodes"} <= set(hidden)


async def test_the_role_of_the_guide_shows_devices_and_changes_nothing() -> None:
    role = yaml.safe_load((ROOT / "examples/guides/dashboard-viewer.yaml").read_text())
    async with fleet() as (page, _):
        browser = Browser(page.app)
        await browser.login(token=await page.token("viewer", *role["rules"]))
        await ask(browser, "pending")
        session = await ask(browser, "session")
        viewer = next(x for x in page.app.sessions.viewers() if x.user.endswith(":viewer"))
        subscription = viewer.live.subscribe()
        events = [await subscription.next(1.0) for _ in range(4)]

    fleet_event, hidden = (
        json.loads((x or b"").split(b"data: ")[1]) for x in (events[3], events[2])
    )
    assert {row["s"] for row in fleet_event["devices"]} == {"free"}
    assert hidden == []
    assert not any(session["rights"].values())
