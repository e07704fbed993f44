"""Stories of the dashboard in a real browser, on a running `sully up --demo`.

Each clicks as a viewer does and checks what the API then has. One browser and one server serve all.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, expect

from dashboard.conftest import WAIT
from e2e.raw import Raw
from e2e.watching import left, until
from kube.process import foreign
from serving import MERGE
from sully.testing.cluster import Process, process
from sully.testing.forkserver import run, start
from sully.testing.patience import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.browser]
AXE = (Path(__file__).parent / "vendor/axe.min.js").read_text()
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
MAINTENANCE = "worker-0003-maintenance"
DRIVER = "gpu.sully.dev"
SCRIPT = "<img src=x onerror=pwned=1><script>pwned=1</script>"


@dataclass(slots=True)
class Viewer:
    """A user in front of the dashboard."""

    up: Process
    admin: Raw
    page: Page
    requests: list[str]
    problems: list[str]

    @property
    def address(self) -> str:
        return f"{self.up.url}/dashboard/"

    def open(self, where: str) -> Page:
        """Go to a page."""
        self.page.goto(f"{self.address}#/{where}")
        return self.page

    def rules(self) -> dict[str, Any]:
        items = self.admin.request("GET", RULES).json()["items"]
        return {rule["metadata"]["name"]: rule for rule in items}

    def select_shown(self, text: str) -> None:
        """Filter the fleet by a text and select what it shows."""
        page = self.open("fleet")
        page.get_by_role("searchbox", name="Text").fill(text)
        page.get_by_role("button", name="Select all shown").click()
        expect(page.locator(".selection [role=status]")).to_contain_text("selected")


@pytest.fixture(scope="module")
def up() -> Iterator[Process]:
    quick = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0")
    with process("--demo", "--store", "memory", "--simulated-clusters", "2", *quick) as running:
        yield running


@pytest.fixture(scope="module")
def admin(up: Process, tmp_path_factory: pytest.TempPathFactory) -> Raw:
    admin = Raw.admin(up.kubeconfig, tmp_path_factory.mktemp("admin"))
    # The last object of the demo.
    until(admin, RULES, lambda result: MAINTENANCE in result)
    # Some pods tolerate its taint for five minutes, which may be over before all tests have run.
    chat = "/api/v1/namespaces/team-chat/pods"
    until(admin, chat, left("worker-0003"), labelSelector="app=chat")
    later = {"spec": {"taint": {"timeAdded": "2100-01-01T00:00:00Z"}}}
    assert admin.request("PATCH", f"{RULES}/{MAINTENANCE}", later, MERGE).code == 200
    return admin


@pytest.fixture(scope="module")
def context(browser: Browser, up: Process, admin: Raw) -> Iterator[BrowserContext]:
    """Open a session with the link that the server has printed."""
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(up.dashboard)
    page.wait_for_selector(".fleet")
    page.close()
    yield context
    context.close()


@pytest.fixture
def viewer(context: BrowserContext, up: Process, admin: Raw) -> Iterator[Viewer]:
    page = context.new_page()
    viewer = Viewer(up, admin, page, [], [])
    page.on("request", lambda request: viewer.requests.append(request.url))
    page.on("pageerror", lambda error: viewer.problems.append(str(error)))
    page.on("console", lambda message: _note(viewer, message))
    yield viewer
    page.close()


def _note(viewer: Viewer, message: ConsoleMessage) -> None:
    if message.type == "error":
        viewer.problems.append(message.text)


def test_the_fleet_is_shown_without_any_request_to_others(viewer: Viewer) -> None:
    page = viewer.open("fleet")

    expect(page.get_by_role("button", name="Evicting 2")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^All devices 96"))).to_be_visible()
    assert "code=" not in page.url
    assert [x for x in viewer.requests if not x.startswith(viewer.address)] == []
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert viewer.problems == []


def test_filters_and_selection_are_in_the_address(viewer: Viewer, context: BrowserContext) -> None:
    page = viewer.open("fleet")
    page.get_by_role("searchbox", name="CEL").fill(f'device.attributes["{DRIVER}"].model == "l4"')
    page.get_by_role("searchbox", name="CEL").press("Enter")
    page.get_by_role("searchbox", name="Text").fill("worker-0002")
    expect(page.locator(".selection [role=status]")).to_have_text("8 of 96 devices shown")
    page.get_by_role("button", name="Select all shown").click()

    other = context.new_page()
    other.goto(page.url)
    expect(other.locator(".selection [role=status]")).to_have_text("8 devices selected")
    expect(other.get_by_role("searchbox", name="CEL")).to_have_value(
        f'device.attributes["{DRIVER}"].model == "l4"'
    )
    other.get_by_role("searchbox", name="CEL").fill("device.")
    other.get_by_role("searchbox", name="CEL").press("Enter")
    expect(other.get_by_role("alert")).to_contain_text("--cel device.")
    other.close()


def test_cordon_a_node_and_undo_it(viewer: Viewer) -> None:
    viewer.select_shown("worker-0009")
    page = viewer.page
    page.get_by_role("button", name="Cordon", exact=True).click()
    page.get_by_label("Reason").fill("new fans")
    expect(page.locator(".headline")).to_contain_text("8 devices of 96 affected. No pod")
    page.get_by_role("button", name="Cordon 8 devices").click()
    expect(page.locator(".progress [role=status]")).to_have_text("done")

    (rule,) = [x for name, x in viewer.rules().items() if name.startswith("cordon-")]
    assert rule["spec"]["deviceSelector"] == {"driver": DRIVER, "pool": "worker-0009"}
    assert rule["spec"]["taint"]["effect"] == "NoSchedule"
    assert rule["spec"]["taint"]["description"] == "new fans"
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".progress [role=status]")).to_have_text("undone")
    until(viewer.admin, RULES, lambda result: rule["metadata"]["name"] not in result)
    assert viewer.problems == []


def test_drain_a_node_with_its_plan(viewer: Viewer) -> None:
    viewer.select_shown("worker-0011")
    page = viewer.page
    page.get_by_role("button", name="Drain", exact=True).click()
    expect(page.locator(".headline")).to_contain_text("pods would be evicted")
    expect(page.get_by_role("region", name="Evicted pods by owner")).to_be_visible()
    page.get_by_role("button", name="Drain 8 devices").click()
    expect(page.locator(".progress [role=status]")).to_have_text("done")

    until(viewer.admin, RULES, lambda result: any(x.startswith("cordon-") for x in result))
    listed = run("devices", "--node", "worker-0011", "-o", "json", env=_env(viewer))
    assert '"users":[{' not in listed.stdout.replace(" ", "").replace("\n", "")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".progress [role=status]")).to_have_text("undone")


def _env(viewer: Viewer) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(viewer.up.kubeconfig)}


def test_a_plan_shows_budgets_that_block_it(viewer: Viewer) -> None:
    budgets = "/apis/policy/v1/namespaces/team-chat/poddisruptionbudgets"
    spec = {"maxUnavailable": 0, "selector": {}}
    made = viewer.admin.request("POST", budgets, {"metadata": {"name": "none"}, "spec": spec})
    assert made.code == 201, made.body
    viewer.select_shown("worker-0000")
    page = viewer.page
    page.get_by_role("button", name="Drain", exact=True).click()

    expect(page.get_by_role("heading", name="Evictions that are blocked")).to_be_visible()
    expect(page.locator("dialog .plan li").first).to_contain_text("team-chat/")
    expect(page.locator("dialog .plan li").first).to_contain_text("PodDisruptionBudget")
    viewer.admin.request("DELETE", f"{budgets}/none")


def test_a_large_change_is_confirmed_by_its_number(viewer: Viewer) -> None:
    page = viewer.open("fleet?class=gpu-l4")
    expect(page.locator(".selection [role=status]")).to_have_text("32 of 96 devices shown")
    page.get_by_role("button", name="Select all shown").click()
    page.get_by_role("button", name="Taint", exact=True).click()
    page.locator("dialog [name=key]").fill("example.com/recall")
    confirm = page.get_by_label(re.compile("Type the number of devices that change"))
    button = page.get_by_role("button", name="Taint 32 devices")
    confirm.fill("31")
    expect(button).to_be_disabled()
    assert not [x for x in viewer.rules().values() if x["spec"]["taint"]["key"].endswith("recall")]
    confirm.fill("32")
    button.click()
    expect(page.locator(".progress [role=status]")).to_have_text("done")

    recalls = [x for x in viewer.rules().values() if x["spec"]["taint"]["key"].endswith("recall")]
    assert {x["spec"]["taint"]["effect"] for x in recalls} == {"NoSchedule"}
    assert {x["spec"]["deviceSelector"]["driver"] for x in recalls} == {DRIVER}
    assert len(recalls) == 4
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".progress [role=status]")).to_have_text("undone")


def test_evictions_are_paused_and_resumed(viewer: Viewer) -> None:
    page = viewer.open("evictions")
    page.get_by_role("button", name=f"Pause {MAINTENANCE}").click()
    page.get_by_role("button", name=f"Resume {MAINTENANCE}").wait_for()
    assert "sully.dev/paused" in str(viewer.rules()[MAINTENANCE]["metadata"]["annotations"])

    page.get_by_role("button", name=f"Resume {MAINTENANCE}").click()
    page.get_by_role("button", name=f"Pause {MAINTENANCE}").wait_for()
    assert "sully.dev/paused" not in str(viewer.rules()[MAINTENANCE]["metadata"]["annotations"])


def test_everything_can_be_done_with_the_keyboard(viewer: Viewer) -> None:
    page = viewer.open("fleet")
    page.locator(".fleet").focus()
    status = page.locator(".selection [role=status]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(status).to_have_text("1 device selected")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(status).to_have_text("2 devices selected")
    page.keyboard.press("Escape")
    expect(status).to_have_text("96 of 96 devices shown")
    expect(page.locator("p[aria-live=polite]")).to_contain_text("node worker-")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text(f"{DRIVER}/worker-")
    expect(page.get_by_role("heading", name="Attributes and capacity")).to_be_visible()


def test_cells_are_selected_by_clicking_and_dragging(viewer: Viewer) -> None:
    page = viewer.open("fleet")
    # What is above the cells moves them until the first data is there.
    expect(page.get_by_text(re.compile(r"^\d+ of \d+ devices shown"))).to_be_visible()
    fleet, status = page.locator(".fleet"), page.locator(".selection [role=status]")
    fleet.click(position={"x": 15, "y": 26})
    expect(status).to_have_text("1 device selected")
    box = fleet.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 6, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 210, box["y"] + 40, steps=3)
    page.mouse.up()
    expect(status).to_have_text("8 devices selected")


def test_a_pending_pod_is_explained(viewer: Viewer) -> None:
    page = viewer.open("pending")
    # By keyboard: other pods of the list come and go, which moves the button under a mouse.
    page.locator("button[aria-label^='Explain team-lab/big-model']").press("Enter")

    expect(page.get_by_role("heading", name="What would help")).to_be_visible()
    # The device is of the requested class, so its page shows whether the pod could get it.
    page = viewer.open(f"device?id={DRIVER}/worker-0003/gpu-0")
    candidates = page.get_by_role("table", name="Pending pods that request such a device")
    row = candidates.get_by_role("row", name=re.compile("big-model"))
    expect(row.get_by_role("cell").last).to_have_text(re.compile("^(yes|no: )"))


def test_a_cluster_is_tainted_after_a_preview(viewer: Viewer) -> None:
    page = viewer.open("clusters")
    page.get_by_role("button", name=re.compile("^Taint cluster-|^Taint ")).first.click()
    page.locator("dialog [name=key]").fill("maintenance")
    expect(page.locator(".headline")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Taint cluster ")).click()
    expect(page.locator(".progress [role=status]")).to_have_text("done")

    path = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
    clusters = viewer.admin.request("GET", path).json()["items"]
    taints = [taint for x in clusters for taint in x["spec"].get("taints", ())]
    assert ("maintenance", "NoSelect") in [(x["key"], x["effect"]) for x in taints]
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name=re.compile("^Remove maintenance:NoSelect from ")).click()
    expect(page.locator(".headline")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Remove the taint from cluster ")).click()
    expect(page.locator(".progress [role=status]")).to_have_text("done")
    clusters = viewer.admin.request("GET", path).json()["items"]
    assert [x["spec"]["taints"] for x in clusters if x["spec"].get("taints")] == []


def test_a_taint_that_evicts_is_followed_to_its_end(viewer: Viewer) -> None:
    viewer.select_shown("worker-0005")
    page = viewer.page
    page.get_by_role("button", name="Taint", exact=True).click()
    page.locator("dialog [name=key]").fill("example.com/end")
    page.locator("dialog [name=effect]").select_option("NoExecute")
    expect(page.locator(".headline")).to_contain_text("would be evicted")
    page.get_by_role("button", name="Taint 8 devices").click()
    expect(page.locator(".progress [role=status]")).to_have_text("done")
    expect(page.locator(".progress progress")).to_have_count(1)
    (rule,) = [x for x in viewer.rules().values() if x["spec"]["taint"]["key"].endswith("/end")]
    name = rule["metadata"]["name"]

    past = viewer.open("evictions").get_by_role("table", name="Past taints and evictions")
    cause = f"example.com/end:NoExecute of rule {name}"
    expect(past.get_by_role("row", name=cause).first).to_be_visible()
    viewer.open("operations").get_by_role("button", name="Undo").first.click()
    until(viewer.admin, RULES, lambda result: name not in result)


def test_a_change_of_another_user_appears(viewer: Viewer) -> None:
    page = viewer.open(f"device?id={DRIVER}/worker-0002/gpu-7")
    expect(page.get_by_text("No taints.")).to_be_visible()
    spec = {
        "deviceSelector": {"driver": DRIVER, "pool": "worker-0002", "device": "gpu-7"},
        "taint": {"key": "example.com/live", "effect": "NoSchedule"},
    }
    viewer.admin.request("POST", RULES, {"metadata": {"name": "live"}, "spec": spec})

    expect(page.get_by_text("example.com/live").first).to_be_visible()
    viewer.admin.request("DELETE", f"{RULES}/live")
    expect(page.get_by_text("No taints.")).to_be_visible()


def test_a_lost_connection_is_reported_and_restored(viewer: Viewer) -> None:
    page = viewer.open("fleet")
    page.wait_for_selector(".fleet")
    page.route("**/api/stream", lambda route: route.abort())
    page.evaluate("import('./connection.js').then((m) => m.connect())")
    expect(page.locator(".stale")).to_contain_text("Reconnecting: the dashboard does not answer.")
    expect(page.locator(".stale")).to_contain_text("What is shown is stale")
    page.unroute("**/api/stream")

    expect(page.locator(".stale")).to_have_count(0)


def test_a_script_in_every_field_is_shown_as_text(viewer: Viewer) -> None:
    admin = viewer.admin
    device = {
        "name": "evil-0",
        "attributes": {"model": {"string": SCRIPT}, "uuid": {"string": f"{SCRIPT[:40]}u"}},
        "taints": [{"key": "example.com/evil", "value": "", "effect": "NoSchedule"}],
    }
    pool = {"name": "evil-pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "evil.example.com", "pool": pool, "allNodes": True, "devices": [device]}
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    made = admin.request("POST", slices, {"metadata": {"name": "evil"}, "spec": spec})
    assert made.code == 201, made.body
    taint = {"key": "example.com/x", "effect": "None", "description": SCRIPT}
    selector = {"driver": "evil.example.com"}
    rule = {
        "metadata": {"name": "evil", "annotations": {"sully.dev/created-by": SCRIPT}},
        "spec": {"deviceSelector": selector, "taint": taint},
    }
    assert admin.request("POST", RULES, rule).code == 201
    group = "attribute:evil.example.com/model"
    pages = (
        f"fleet?group={group}&text=evil",
        "fleet?view=table&text=<img src=x onerror=pwned=1>",
        "device?id=evil.example.com/evil-pool/evil-0",
        "rules",
        "evictions",
        "explain?kind=rule&name=evil",
        "explain?kind=<b>x</b>&name=<img src=x onerror=pwned=1>",
    )
    for where in pages:
        page = viewer.open(where)
        page.reload()
        page.wait_for_selector("h1")
        expect(page.locator(".loading")).to_have_count(0)
        assert page.evaluate("typeof pwned") == "undefined"
        assert page.locator("main img, main script, main b").count() == 0

    page = viewer.open(pages[2])
    expect(page.get_by_text(SCRIPT).first).to_be_visible()
    admin.request("DELETE", f"{RULES}/evil")
    admin.request("DELETE", f"{slices}/evil")


def test_pages_are_accessible(browser: Browser, context: BrowserContext, viewer: Viewer) -> None:
    """Run axe-core, which needs its own script in the page, on each page and on a dialog."""
    state = context.storage_state()
    own = browser.new_context(ignore_https_errors=True, bypass_csp=True, storage_state=state)
    page = own.new_page()
    result: dict[str, list[str]] = {}
    device = f"device?id={DRIVER}/worker-0003/gpu-0"
    wide, phone = ViewportSize(width=1280, height=900), ViewportSize(width=360, height=780)
    pages = ("fleet", "fleet?view=table", device, "evictions", "rules", "pending", "clusters")
    for where in (*pages, "charts", "operations", "explain?kind=rule&name=a100-firmware"):
        page.set_viewport_size(wide)
        page.goto(f"{viewer.address}#/{where}")
        page.wait_for_selector("h1")
        expect(page.locator(".loading")).to_have_count(0)
        page.set_viewport_size(phone)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
        result[where] = _serious(page)
    page.goto(f"{viewer.address}#/{device}")
    page.get_by_role("button", name="Drain", exact=True).click()
    page.wait_for_selector("dialog .headline, dialog .problem")
    result["dialog"] = _serious(page)
    own.close()

    assert {where: problems for where, problems in result.items() if problems} == {}


def _serious(page: Page) -> list[str]:
    page.evaluate(AXE)
    result = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']})")
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("axe.run({runOnly: {type: 'rule', values: ['color-contrast']}})")
    page.emulate_media(color_scheme="light")
    return [
        f"{x['id']}: {x['nodes'][0]['html'][:200]} {x['nodes'][0]['failureSummary'][:300]}"
        for x in (*result["violations"], *dark["violations"])
        if x["impact"] in ("serious", "critical")
    ]


READ = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}


def _token(viewer: Viewer, name: str, *rules: dict[str, Any]) -> str:
    """Return a token of a new service account that may do this."""
    admin = viewer.admin
    account = {"metadata": {"name": name}}
    admin.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    group = "rbac.authorization.k8s.io"
    role = {"metadata": {"name": name}, "rules": rules}
    admin.request("POST", f"/apis/{group}/v1/clusterroles", role)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    admin.request("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    return str(admin.request("POST", path, {"spec": {}}).json()["status"]["token"])


def test_a_drain_needs_the_right_to_change_rules(browser: Browser, viewer: Viewer) -> None:
    rules = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["devicetaintrules"],
        "verbs": ["create"],
    }
    evictions = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}
    token = _token(viewer, "creator", READ, rules, evictions)
    own = browser.new_context(ignore_https_errors=True)
    page = own.new_page()
    page.goto(viewer.address)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Select all shown").click()

    expect(page.get_by_role("button", name="Cordon")).to_be_visible()
    assert page.get_by_role("button", name="Drain").count() == 0
    own.close()


def test_a_viewer_without_rights_sees_no_buttons(browser: Browser, viewer: Viewer) -> None:
    token = _token(viewer, "reader", READ)
    own = browser.new_context(ignore_https_errors=True)
    page = own.new_page()
    page.goto(viewer.address)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("the server does not accept the token")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Select all shown").click()

    expect(page.locator(".who")).to_have_text("system:serviceaccount:default:reader")
    expect(page.get_by_role("button", name="Clear selection")).to_be_visible()
    assert page.get_by_role("button", name=re.compile("Cordon|Drain|Taint ")).count() == 0
    assert page.get_by_role("button", name="Taint", exact=True).count() == 0
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    own.close()


def test_the_dashboard_in_front_of_plain_kubernetes(browser: Browser) -> None:
    device = {"name": "gpu-0", "attributes": {"model": {"string": "a100"}}}
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "allNodes": True, "devices": [device]}
    with foreign() as there:
        admin = there.admin()
        made = admin.request(
            "POST",
            "/apis/resource.k8s.io/v1/resourceslices",
            {"metadata": {"name": "node-1"}, "spec": spec},
        )
        assert made.code == 201, made.body
        arguments = ("dashboard", "--no-browser", "--kubeconfig", str(there.kubeconfig))
        with start(*arguments, stdout=subprocess.PIPE, text=True) as served:
            (link,) = (line.split()[1] for line in _lines(served) if "#code" in line)
            page = browser.new_page()
            page.goto(link)
            page.get_by_role("button", name="Select all shown").click()
            page.get_by_role("button", name="Cordon", exact=True).click()
            page.get_by_label(re.compile("Type the number")).fill("1")
            page.get_by_role("button", name="Cordon 1 device").click()
            expect(page.locator(".progress [role=status]")).to_have_text("done")
            (rule,) = admin.request("GET", RULES).json()["items"]
            assert rule["spec"]["taint"]["effect"] == "NoSchedule"
            assert rule["spec"]["deviceSelector"]["pool"] == "node-1"
            expect(page.locator(".bottom")).to_contain_text(there.url)
            page.close()
            served.send_signal(signal.SIGINT)
            assert served.wait(timeout=PATIENCE) == 0


def test_the_dashboard_opens_a_browser_and_does_not_wait_for_it(tmp_path: Path) -> None:
    """A program that stays until the browser is closed must not delay the end."""
    program, opened, closed = (tmp_path / name for name in ("browser", "opened", "closed"))
    os.mkfifo(opened)
    os.mkfifo(closed)
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}\nexec cat {closed}\n')
    program.chmod(0o755)
    with foreign() as there:
        arguments = ("dashboard", "--kubeconfig", str(there.kubeconfig))
        env = {**os.environ, "BROWSER": str(program)}
        with start(*arguments, env=env, stdout=subprocess.PIPE, text=True) as served:
            (link,) = (line.split()[1] for line in _lines(served) if "#code" in line)
            assert opened.read_text().strip() == link
            try:
                served.send_signal(signal.SIGTERM)
                assert served.wait(timeout=PATIENCE) == 0
            finally:
                closed.write_text("")


def _lines(served: subprocess.Popen[str]) -> Iterator[str]:
    """Yield lines up to the link."""
    for line in served.stdout or ():
        yield line
        if "#code" in line:
            return
