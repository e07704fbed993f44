"""Attacks on the dashboard: each is refused, and with what."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml

from architecture.project import ROOT
from dashboard.page import HOST, Browser, dashboard
from sully.dashboard.app import PAGE_KEY
from sully.dashboard.http import MAX_BODY
from sully.dashboard.live import KINDS
from sully.dashboard.sessions import SessionLimits
from sully.testing.clock import FakeClock
from sully.views.kinds import DEVICE_HEALTH
from sully.views.snapshot.kinds import EVERYTHING, EVICTION_EVENTS

READ_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
API = ("session", "device?id=a/b/c", "rules", "evictions", "charts", "operations", "stream")


async def test_without_a_session_nothing_is_answered() -> None:
    async with dashboard() as page:
        codes = {name: (await page.browser.get(f"/api/{name}")).code for name in API}
        changes = {
            name: (await page.browser.post(f"/api/{name}")).code
            for name in ("plan", "apply", "operation", "pause", "logout")
        }

    assert set(codes.values()) == {401}
    assert set(changes.values()) == {401}


async def test_a_link_opens_one_session() -> None:
    async with dashboard() as page:
        code = page.app.sessions.new_code()

        first = await Browser(page.app).login(code=code)
        second = await Browser(page.app).login(code=code)

    assert (first.code, second.code) == (200, 401)
    assert second.json["error"] == "the link was used already, or has expired"


async def test_the_cookie_cannot_be_read_by_scripts_or_sent_by_other_sites() -> None:
    async with dashboard() as page:
        answer = await page.browser.login(code=page.app.sessions.new_code())
        cookie = answer.headers["set-cookie"]

    assert cookie.startswith("__Secure-sully-dashboard=")
    for attribute in ("HttpOnly", "SameSite=Strict", "Secure", "Path=/dashboard/"):
        assert f"; {attribute}" in cookie


async def test_a_session_never_has_a_secret_that_another_site_has_planted() -> None:
    async with dashboard() as page:
        planted = "__Secure-sully-dashboard=planted"
        browser = Browser(page.app, cookie=planted)
        await browser.login(code=page.app.sessions.new_code())
        own, key = browser.cookie, browser.key
        browser.cookie = planted
        fixed = await browser.get("/api/session")
        browser.cookie, browser.key = own, key
        opened = await browser.get("/api/session")

    assert own != planted
    assert (fixed.code, opened.code) == (401, 200)


async def test_the_cookie_alone_is_not_a_session() -> None:
    """Browsers send it to every port of the host: another user's server there may have seen it."""
    async with dashboard() as page:
        browser, other = await page.signed_in(), await page.signed_in()
        own = await browser.get("/api/session")
        refused = [
            await browser.get("/api/session", **{PAGE_KEY: key})
            for key in ("x", other.key, "\u00e9")
        ]
        browser.key = ""
        refused.append(await browser.get("/api/session"))
        refused.append(await browser.get("/api/stream"))
        refused.append(await browser.post("/api/plan", {"action": "cordon"}))

    assert own.code == 200
    assert [answer.code for answer in refused] == [401] * 6


async def test_without_tls_the_cookie_is_named_for_the_port() -> None:
    async with dashboard() as page:
        browser = Browser(page.app, scheme="http")
        body = {"code": page.app.sessions.new_code()}
        answer = await browser.post("/api/login", body, origin=f"http://{HOST}")

    assert answer.headers["set-cookie"].startswith("sully-dashboard-8443=")
    assert "Secure" not in answer.headers["set-cookie"]


@pytest.mark.parametrize("seconds", [3600, 12 * 3600])
async def test_a_session_expires(seconds: int) -> None:
    clock = FakeClock()
    limits = SessionLimits(idle=timedelta(hours=1), longest=timedelta(hours=12))
    async with dashboard(clock, limits) as page:
        browser = await page.signed_in()
        step = min(seconds, 3000)
        for _ in range(seconds // step - (seconds > step)):
            clock.advance(step)
            assert (await browser.get("/api/session")).code == 200
        clock.advance(seconds)

        assert (await browser.get("/api/session")).code == 401


async def test_a_link_expires() -> None:
    clock = FakeClock()
    async with dashboard(clock) as page:
        code = page.app.sessions.new_code()
        clock.advance(1800)

        assert (await page.browser.login(code=code)).code == 401


async def test_sign_out_ends_the_session() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        secret = browser.cookie
        await browser.post("/api/logout")
        browser.cookie = secret

        assert (await browser.get("/api/session")).code == 401


async def test_a_token_that_the_server_rejects() -> None:
    async with dashboard() as page:
        responses = [
            await page.browser.login(token=token)
            for token in ("wrong", "a\nb", "ü", "x" * 20000, " ")
        ]

    assert [answer.code for answer in responses] == [401, 401, 401, 401, 400]
    assert not any("set-cookie" in answer.headers for answer in responses)


async def test_a_user_sees_and_does_only_what_its_rights_allow() -> None:
    async with dashboard() as page:
        admin, reader = await page.signed_in(), Browser(page.app)
        await reader.login(token=await page.token("reader", READ_NODES))
        mine, theirs = await admin.get("/api/session"), await reader.get("/api/session")
        body = {"action": "delete", "rules": ["x"]}
        refused = await reader.post("/api/plan", body)

    assert mine.json["user"] == "kubernetes-admin"
    assert all(mine.json["rights"].values())
    assert theirs.json["user"] == "system:serviceaccount:default:reader"
    assert not any(theirs.json["rights"].values())
    assert refused.code == 422
    assert "forbidden" in refused.json["error"]


def test_the_role_of_the_guide_reads_what_the_dashboard_reads() -> None:
    role = yaml.safe_load((ROOT / "examples/guides/dashboard-viewer.yaml").read_text())
    granted = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    read = {(x.group, x.plural) for x in (*KINDS, *EVERYTHING, EVICTION_EVENTS, DEVICE_HEALTH)}

    assert granted == read
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


async def test_a_session_ends_with_its_credential() -> None:
    async with dashboard() as page:
        browser = Browser(page.app)
        await browser.login(token=await page.token("leaver", READ_NODES))
        assert (await browser.get("/api/session")).code == 200
        from sully.client.transport import ResourceRef

        ref = ResourceRef("", "v1", "serviceaccounts", "default", "leaver")
        await page.plane.direct().call("delete", ref)
        gone = await browser.get("/api/explain?kind=node&name=n")
        after = await browser.get("/api/session")

        assert (gone.code, after.code) == (401, 401)
        assert after.json == {"error": "no session"}


FORGED: tuple[dict[str, str], ...] = (
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": f"http://{HOST}"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
)


async def test_a_change_from_another_site() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        for headers in FORGED:
            responses = [
                await browser.post(f"/api/{x}", **headers) for x in ("plan", "logout", "login")
            ]
            assert [answer.code for answer in responses] == [403, 403, 403], headers
        assert (await browser.get("/api/session")).code == 200


async def test_data_is_not_answered_to_another_site() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        answer = await browser.get("/api/session", sec_fetch_site="cross-site")

    assert answer.code == 403


async def test_a_form_changes_nothing() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        for media in ("text/plain", "application/x-www-form-urlencoded", ""):
            assert (await browser.post("/api/plan", content_type=media)).code == 415, media


async def test_a_body_that_is_broken_no_object_too_deep_or_too_large() -> None:
    bodies = (b"{", b"[]", b"[" * 100_000, b" " * (MAX_BODY + 1))
    async with dashboard() as page:
        browser = await page.signed_in()
        codes = [(await browser.post("/api/plan", body)).code for body in bodies]

    assert codes == [400, 400, 400, 413]


async def test_another_host_is_refused_where_hosts_are_known() -> None:
    async with dashboard(hosts=[HOST]) as page:
        browser = await page.signed_in()
        rebound = await browser.get("/api/session", host="evil.example:8443")
        own = await browser.get("/api/session")

    assert (rebound.code, own.code) == (421, 200)


async def test_no_page_can_frame_it_or_run_other_scripts() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        responses = [
            await browser.get(x) for x in ("/", "/main.js", "/api/session", "/nothing", "/api/no")
        ]

    for answer in responses:
        policy = answer.headers["content-security-policy"].split("; ")
        assert "frame-ancestors 'none'" in policy
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


async def test_no_cache_keeps_data() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        data, script = await browser.get("/api/session"), await browser.get("/main.js")
        again = await browser.get("/main.js", if_none_match=script.headers["etag"])

    assert data.headers["cache-control"] == "no-store"
    assert script.headers["cache-control"] == "no-cache"
    assert (again.code, again.body) == (304, b"")


PATHS = (
    "/../app.py",
    "/vendor/../../app.py",
    "/..%2fapp.py",
    "//etc/passwd",
    "/static/../__init__.py",
    "/vendor",
    "/main.js/",
    "/\\..\\app.py",
    "/main.js\0.css",
    "/api/../main.js",
)


async def test_a_path_that_leaves_the_folder() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()

        assert {path: (await browser.get(path)).code for path in PATHS} == dict.fromkeys(PATHS, 404)


async def test_methods() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        codes = [
            (await browser.get("/", "HEAD")).code,
            (await browser.get("/", "PUT")).code,
            (await browser.get("/api/session", "DELETE")).code,
            (await browser.get("")).code,
        ]

    assert codes == [200, 405, 405, 308]


async def test_values_of_the_page_are_never_flags() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        flag = await browser.get("/api/explain?kind=--snapshot%3D/etc/passwd&name=x")
        body = {"action": "cordon", "devices": ["a/b/c"], "flags": {"kubeconfig": "/etc/passwd"}}
        unknown = await browser.post("/api/plan", body)

    assert flag.code == 422
    assert "unknown value" in flag.json["error"]
    assert unknown.json["error"] == 'unknown flag "kubeconfig"'


async def test_true_for_a_flag_with_a_value_takes_no_other_argument() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        await browser.get("/api/pending")
        responses = {
            flag: await browser.post(
                "/api/plan",
                {"action": "drain", "devices": ["--snapshot=x/b/c"], "flags": {flag: True}},
            )
            for flag in ("reason", "for", "rate", "max-unavailable", "timeout")
        }

    assert {flag: answer.code for flag, answer in responses.items()} == dict.fromkeys(
        responses, 422
    )
    for flag, answer in responses.items():
        assert answer.json["error"] == f"--{flag} needs a value"


MALFORMED: tuple[tuple[str, dict[str, object]], ...] = (
    ("plan", {"action": ["x"]}),
    ("plan", {"action": {"a": 1}}),
    ("plan", {"action": "cordon", "devices": 5}),
    ("plan", {"action": "cordon", "devices": [["a"]]}),
    ("plan", {"action": "cordon", "devices": ["a/b/c"], "flags": ["for"]}),
    ("plan", {"action": "cordon", "devices": ["a/b/c"], "flags": {"for": {}}}),
    ("plan", {"action": "delete", "rules": 5}),
    ("plan", {"action": "taint-cluster", "clusters": True}),
    ("apply", {"id": ["1"]}),
    ("operation", {"id": {}, "verb": "pause"}),
    ("pause", {"verb": "pause", "rules": 5}),
    ("pause", {"verb": ["pause"], "rules": ["a"]}),
)


async def test_a_body_with_values_of_other_types() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        responses = [(await browser.post(f"/api/{name}", body)) for name, body in MALFORMED]

    assert [answer.code for answer in responses] == [400] * len(MALFORMED)
    assert all(x.json["error"].startswith("the body is not valid: ") for x in responses)
