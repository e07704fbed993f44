"""The front end of the dashboard in a real browser, in front of answers that each test gives.

No server runs: files come from the package, and what the page asks is answered here. So failures
and orders of events are exact that a running server has only by chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from dashboard.conftest import WAIT

pytestmark = pytest.mark.browser
ORIGIN = "http://dashboard.test"
TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
SESSION = {
    "user": "ann",
    "groups": [],
    "server": "https://cluster.test",
    "version": "0",
    "rights": {},
    "ends": "2100-01-01T00:00:00Z",
}
POD = {"namespace": "lab", "name": "big-model", "classes": ["gpu"]}


def stream(*events: tuple[str, Any]) -> dict[str, Any]:
    """Return the answer that has these events and then ends."""
    body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return {"status": 200, "content_type": "text/event-stream", "body": body}


EVERYTHING = stream(
    ("beat", {}),
    ("pending", [POD]),
    ("stale", {"since": ""}),
    ("hidden", []),
    ("fleet", {"devices": [{"d": "gpu.test/node-1/gpu-0", "n": "node-1", "s": "free", "f": 1}]}),
)


def refused(code: int, text: str) -> dict[str, Any]:
    return {"status": code, "json": {"error": text}}


@dataclass
class Front:
    """A page, and what is answered to it."""

    page: Page
    answers: dict[str, list[dict[str, Any] | None]] = field(default_factory=dict)
    """By path, in order; the last one is repeated. None: no answer at all."""
    asked: list[str] = field(default_factory=list)
    held: list[Route] = field(default_factory=list)
    """Requests without an answer."""

    def handle(self, route: Route) -> None:
        path = route.request.url.removeprefix(f"{ORIGIN}/").partition("?")[0]
        if not path.startswith("api/"):
            name = path or "index.html"
            data = (files("sully.dashboard") / "static" / name).read_bytes()
            route.fulfill(body=data, content_type=TYPES[name.rpartition(".")[2]])
            return
        name = path.removeprefix("api/")
        self.asked.append(name)
        left = self.answers[name]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer is None:
            self.held.append(route)
        else:
            route.fulfill(**answer)

    def open(self, where: str, **answers: list[dict[str, Any] | None]) -> None:
        self.answers = {"session": [{"json": SESSION}], "stream": [EVERYTHING], **answers}
        self.page.goto(f"{ORIGIN}/#/{where}")

    def until_asked(self, name: str, times: int) -> None:
        """Wait until something was asked so many times."""
        while self.asked.count(name) < times:
            self.page.wait_for_timeout(10)


@pytest.fixture
def front(browser: Browser) -> Iterator[Front]:
    context = browser.new_context()
    context.set_default_timeout(WAIT)
    front = Front(context.new_page())
    front.page.route("**/*", front.handle)
    yield front
    context.close()


def _stale(front: Front) -> Any:
    return front.page.locator(".stale")


def test_a_change_before_a_component_has_subscribed_is_shown(front: Front) -> None:
    front.open("pending", stream=[None])
    front.page.evaluate("""async () => {
      const { html, render } = await import("./dom.js");
      const { store, useStore } = await import("./store.js");
      store.revision = 1;
      const Reader = () => html`<p id="reader">${useStore((s) => s.revision)}</p>`;
      const Writer = () => { store.revision = 2; };
      render(html`<${Reader} /><${Writer} />`, document.getElementById("app"));
    }""")

    expect(front.page.locator("#reader")).to_have_text("2")


def test_a_component_follows_what_it_selects_now(front: Front) -> None:
    front.open("pending", stream=[None])
    front.page.evaluate("""async () => {
      const { html, render } = await import("./dom.js");
      const { notify, store, useStore } = await import("./store.js");
      const root = document.getElementById("app");
      const Reader = ({ id }) => html`<p id="reader">${useStore((s) => s.devices.get(id))}</p>`;
      store.devices = new Map([["a", "old a"], ["b", "old b"]]);
      render(html`<${Reader} id="a" />`, root);
      render(html`<${Reader} id="b" />`, root);
      store.devices = new Map([["a", "old a"], ["b", "new b"]]);
      notify();
    }""")

    expect(front.page.locator("#reader")).to_have_text("new b")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            refused(429, "too many pages are open; close some"),
            "too many pages are open; close some",
        ),
        ({"status": 503, "body": "starting"}, "the dashboard answered 503"),
        (stream(("beat", {})), "the dashboard closed the connection"),
    ],
    ids=["refused", "unavailable", "closed"],
)
def test_a_stream_that_fails_is_opened_again(
    front: Front, answer: dict[str, Any], text: str
) -> None:
    front.open("pending", stream=[answer, EVERYTHING])

    expect(_stale(front)).to_contain_text(f"Reconnecting: {text}.")
    expect(front.page.get_by_role("button", name="Explain lab/big-model")).to_be_visible()


def test_a_page_shows_that_it_has_read_nothing_yet(front: Front) -> None:
    front.open("pending", stream=[stream(("loading", {"error": "no route to host"}))])

    expect(front.page.locator("main .loading")).to_have_text("Reading the cluster")
    expect(front.page.locator("main .problem")).to_have_text("no route to host")


def test_a_connection_without_a_sign_of_life_is_opened_again(front: Front) -> None:
    front.page.clock.install()
    front.open("pending", stream=[None, EVERYTHING])
    front.until_asked("stream", 1)
    front.page.clock.run_for(70_000)

    expect(front.page.get_by_role("button", name="Explain lab/big-model")).to_be_visible()


def test_a_hidden_page_keeps_no_connection(front: Front) -> None:
    page = front.page
    page.clock.install()
    front.open("pending", stream=[None])
    front.until_asked("stream", 1)
    _set_hidden(page, hidden=True)
    gone: list[Request] = []
    page.on("requestfailed", lambda request: gone.append(request))
    # Less than the time without data after which a connection is given up.
    page.clock.run_for(30_000)
    assert gone == []
    page.clock.run_for(31_000)
    while not gone:
        page.wait_for_timeout(10)
    page.clock.run_for(120_000)
    assert front.asked.count("stream") == 1
    _set_hidden(page, hidden=False)

    front.until_asked("stream", 2)


def _set_hidden(page: Page, *, hidden: bool) -> None:
    page.evaluate(
        """(hidden) => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_a_session_that_ended_is_reported(front: Front) -> None:
    front.open("pending", stream=[refused(401, "no session")])

    expect(front.page.get_by_role("alert")).to_have_text("The session has ended. Sign in again.")


def test_a_dashboard_that_is_busy_at_first_is_asked_again(front: Front) -> None:
    front.open("pending", session=[refused(503, "not ready"), {"json": SESSION}])

    expect(front.page.get_by_role("alert")).to_have_text("not ready")
    expect(front.page.get_by_role("button", name="Explain lab/big-model")).to_be_visible()


def test_a_question_that_may_be_answered_later_is_asked_again(front: Front) -> None:
    answer: dict[str, Any] = {"json": {"operations": []}}
    front.open("operations", operations=[refused(429, "too many requests"), answer])

    expect(front.page.locator("main .problem")).to_have_text("too many requests")
    expect(front.page.locator("main .empty")).to_have_text("None.")


def test_a_question_that_is_wrong_is_asked_once(front: Front) -> None:
    front.page.clock.install()
    front.open("operations", operations=[refused(422, "no such thing")])
    expect(front.page.locator("main .problem")).to_have_text("no such thing")
    front.page.clock.run_for(120_000)

    # A page asks again after a reconnect, but not because of the answer.
    connections = " ".join(front.asked).split("stream")
    assert max(connection.count("operations") for connection in connections) == 1


def test_an_answer_that_takes_longer_than_changes_is_shown(front: Front) -> None:
    front.open("operations", operations=[None, {"json": {"operations": []}}])
    front.until_asked("operations", 1)
    # It was asked for one state; meanwhile there are others.
    for _ in range(3):
        front.page.evaluate("""() => import("./store.js").then(({ changes, notify }) => {
          changes.changed(["devicetaintrules"]);
          notify();
          return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        })""")
    assert front.asked.count("operations") == 1
    front.held[0].fulfill(json={"operations": []})

    expect(front.page.locator("main .empty")).to_have_text("None.")
    front.until_asked("operations", 2)


def test_events_in_any_pieces(front: Front) -> None:
    front.open("pending")
    text = EVERYTHING["body"]
    parsed = front.page.evaluate(
        """async ([text, sizes]) => {
          const { parser } = await import("./connection.js");
          return sizes.map((size) => {
            const parse = parser(), events = [];
            for (let at = 0; at < text.length; at += size) {
              events.push(...parse(text.slice(at, at + size)));
            }
            return JSON.stringify(events);
          });
        }""",
        [text, [1, 2, 7, 64, len(text)]],
    )

    assert len(set(parsed)) == 1
    assert [name for name, _ in json.loads(parsed[0])] == [
        "beat",
        "pending",
        "stale",
        "hidden",
        "fleet",
    ]


FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
STATES = ("free", "used", "none", "noschedule", "noexecute", "evicting", "blocked", "unknown")


def _rows(first: int) -> list[dict[str, Any]]:
    """Return a row per state; the first device has the state with this number."""
    rows: list[dict[str, Any]] = []
    for at, _ in enumerate(STATES):
        state = STATES[(first + at) % len(STATES)]
        rows.append({"d": f"gpu.test/node-{at // 4}/gpu-{at}", "n": f"node-{at // 4}", "s": state})
        if at % 2:
            rows[-1] |= {"u": 1, "t": ["example.com/x:NoSchedule"]}
    return rows


def _picture(page: Page) -> str:
    text = f"{FRAMES}.then(() => document.querySelector('.fleet canvas').toDataURL())"
    return str(page.evaluate(text))


def test_cells_that_are_drawn_again_look_as_all_drawn_together(front: Front) -> None:
    page = front.page
    front.open("fleet", attributes=[{"json": {"names": []}}], stream=[
        stream(("pending", []), ("fleet", {"devices": _rows(0)})), None
    ])  # fmt: skip
    expect(page.get_by_role("button", name="Evicting 1")).to_be_visible()
    front.until_asked("stream", 2)
    before = _picture(page)
    groups = "import('./store.js').then((m) => m.store.arrangement)"
    arrangement = page.evaluate(groups)
    for first in range(1, len(STATES)):
        if first == 5:
            page.get_by_role("button", name="Select all shown").click()
        event = {"changed": _rows(first), "removed": []}
        page.evaluate(
            """(event) => import("./store.js").then(({ changes, notify }) => {
              changes.devices(event);
              notify();
            })""",
            event,
        )
        changed = _picture(page)
        # Scrolling draws everything.
        page.locator(".fleet").dispatch_event("scroll")
        assert changed == _picture(page)
        assert changed != before
        before = changed

    assert page.evaluate(groups) == arrangement
    expect(page.get_by_role("button", name="Evicting 1")).to_be_visible()


def test_a_device_that_changes_its_node_moves(front: Front) -> None:
    page = front.page
    front.open("fleet?group=node", attributes=[{"json": {"names": []}}], stream=[
        stream(
            ("pending", []),
            ("fleet", {"devices": _rows(0)}),
            ("devices", {"changed": [{**_rows(0)[0], "n": "node-9", "c": ["big"]}], "removed": []}),
            ("devices", {"changed": [], "removed": ["gpu.test/node-0/gpu-1"]}),
        ),
        None,
    ])  # fmt: skip
    status = page.locator(".selection [role=status]")
    expect(status).to_have_text("7 of 7 devices shown")
    page.get_by_role("searchbox", name="Text").fill("node-9")
    expect(status).to_have_text("1 of 7 devices shown")

    expect(page.get_by_role("combobox", name="Class").locator("option")).to_have_text(
        ["any", "big"]
    )
    expect(page.get_by_role("row", name="big 1")).to_be_visible()


EMPTY = stream(("beat", {}), ("pending", []), ("hidden", []), ("fleet", {"devices": []}))


@pytest.mark.parametrize("name", ["constructor", "toString", "__proto__", "unknown"])
def test_an_unknown_page_is_the_fleet(front: Front, name: str) -> None:
    front.open(name, attributes=[{"json": {"names": []}}])

    expect(front.page.get_by_role("heading", level=1)).to_have_text("Fleet")
    expect(front.page.get_by_role("link", name="Fleet")).to_have_attribute("aria-current", "page")


def test_a_cluster_without_devices_reports_what_to_do(front: Front) -> None:
    front.open("fleet", stream=[EMPTY], attributes=[{"json": {"names": []}}])

    expect(front.page.get_by_text("This cluster has no devices")).to_be_visible()
    expect(front.page.get_by_text("Install a DRA driver")).to_be_visible()


def test_filters_that_match_nothing_are_reported(front: Front) -> None:
    front.open("fleet?text=nothing", attributes=[{"json": {"names": []}}])

    expect(front.page.get_by_text("No devices match the filters.")).to_be_visible()


def test_a_state_that_is_chosen_leaves_the_numbers_of_others(front: Front) -> None:
    front.open("fleet?state=used&group=state", attributes=[{"json": {"names": []}}])

    expect(front.page.get_by_role("button", name="Free 1")).to_be_visible()
    expect(front.page.get_by_role("button", name="In use 0")).to_have_attribute(
        "aria-pressed", "true"
    )


def test_a_page_has_its_title_and_the_focus(front: Front) -> None:
    front.open(
        "fleet",
        attributes=[{"json": {"names": []}}],
        explain=[refused(422, "not found")],
        history=[{"json": {"history": []}}],
    )
    expect(front.page).to_have_title("Fleet - Sully")
    front.page.get_by_role("link", name="Pending pods").click()
    expect(front.page).to_have_title("Pending pods - Sully")
    expect(front.page.locator("#main")).to_be_focused()
    front.page.get_by_role("link", name="lab/big-model").click()

    expect(front.page).to_have_title("pod lab/big-model - Sully")


PLAN: dict[str, Any] = {
    "id": "1",
    "action": "cordon",
    "command": "sully cordon",
    "owners": [],
    "caused": 0,
    "type": None,
    "large": "",
    "notes": [],
    "plan": {
        "subject": "devices",
        "devices": ["a"],
        "totalDevices": 1,
        "notRescheduled": 0,
        "latentEffects": {"owners": []},
        **{
            name: []
            for name in (
                "evictionLoops",
                "evictions",
                "blockedEvictions",
                "brokenBudgets",
                "placements",
                "classes",
                "noEffects",
                "notes",
            )
        },
    },
}
OPERATION = {
    "id": "2",
    "action": "taint",
    "command": "sully taint",
    "began": "2026-01-01T00:00:00Z",
    "rules": ["hot"],
    "pods": 1,
    "pausable": False,
    "state": "running",
    "lines": [],
    "evictions": [{"rule": "hot", "state": "evicting", "evicted": 1, "pending": 2}],
}
RIGHTS: dict[str, Any] = {
    "session": [{"json": {**SESSION, "rights": {"taint": True, "change": True}}}]
}


def test_a_confirmation_that_fails_is_planned_again(front: Front) -> None:
    second = {**PLAN, "id": "7"}
    front.open(
        "fleet?select=gpu.test/node-1/gpu-0",
        attributes=[{"json": {"names": []}}],
        plan=[{"json": PLAN}, {"json": second}],
        apply=[refused(422, "the rule exists already"), {"json": {**OPERATION, "state": "done"}}],
        **RIGHTS,
    )
    page = front.page
    page.get_by_role("button", name="Cordon", exact=True).click()
    page.get_by_role("button", name="Cordon 1 device").click()
    expect(page.get_by_role("alert")).to_have_text("the rule exists already")
    with page.expect_request("**/api/apply") as asked:
        page.get_by_role("button", name="Cordon 1 device").click()

    assert json.loads(asked.value.post_data or "")["id"] == "7"
    expect(page.locator(".progress [role=status]")).to_have_text("done")
    expect(page.locator("dialog > div:has(.progress)")).to_be_focused()


def test_operations_are_followed_with_one_request_until_they_end(front: Front) -> None:
    others = [{**OPERATION, "id": str(number)} for number in range(2, 12)]
    ended = [{**operation, "state": "done"} for operation in others]
    front.open(
        "operations",
        stream=[None],
        operations=[{"json": {"operations": others}}, {"json": {"operations": ended}}],
    )
    states = front.page.locator(".progress [role=status]")

    expect(states).to_have_text(["done"] * len(others))
    assert front.asked.count("operations") == 2


@pytest.mark.parametrize("pausable", [True, False])
def test_evictions_that_cannot_be_paused_have_no_button(front: Front, *, pausable: bool) -> None:
    taint = {"key": "a.example/b", "effect": "NoExecute"}
    cause = {**taint, "kind": "DeviceTaintRule", "name": "hot", "device": "a"}
    pod = {"namespace": "lab", "name": "x", "node": "node-1"}
    entry = {
        "time": "2026-01-01T00:00:00Z",
        "event": "evicted",
        "pod": pod,
        "causes": [cause, {**cause, "device": "b"}],
        "devices": ["a", "b"],
    }
    rule = {
        "rule": "hot",
        "taint": taint,
        "state": "evicting",
        "pending": 2,
        "evicted": 0,
        "evictedAtLeast": True,
        "pods": [],
    }
    front.open(
        "evictions",
        evictions=[{"json": {"evictions": [rule], "pausable": pausable}}],
        history=[{"json": {"history": [entry]}}],
        **RIGHTS,
    )
    past = front.page.get_by_role("row", name="lab/x")

    expect(past).to_contain_text("a.example/b:NoExecute of rule hot; a, b; from node node-1")
    running = front.page.get_by_role("row", name="hot a.example/b")
    expect(running).to_contain_text("evicting2unknown")
    expect(front.page.get_by_role("button", name="Pause hot")).to_have_count(int(pausable))


def test_classes_without_a_curve_are_counted(front: Front) -> None:
    tainted = {f"class-{number}": 10 - number for number in range(7)}
    sample = {"time": "2026-01-01T00:00:00Z", "tainted": tainted, "pending": 0}
    data = {"samples": [sample], "recorded": True, "evictions": [], "repairs": []}
    front.open("charts", charts=[{"json": data}])

    expect(front.page.get_by_text("class-4: 6")).to_be_visible()
    expect(front.page.get_by_text("2 more classes have fewer tainted devices.")).to_be_visible()
