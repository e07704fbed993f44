"""Users that sign in again and again, or with many tokens, take nothing away from others."""

from __future__ import annotations

from dashboard.page import Browser, dashboard, until
from sully.cli.dashboard.operations import PROPOSAL_LIFE
from sully.dashboard.sessions import SessionLimits
from sully.dashboard.viewers import MAX_VIEWERS_OF_USER
from sully.testing.clock import FakeClock

READ = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}


async def test_a_user_who_signs_in_often_ends_only_its_own_sessions() -> None:
    async with dashboard(limits=SessionLimits(per_user=2, most=4)) as page:
        admin, first = await page.signed_in(), Browser(page.app)
        token = await page.token("reader", READ)
        await first.login(token=token)
        codes = [(await Browser(page.app).login(token=token)).code for _ in range(6)]

        assert set(codes) == {200}
        assert (await admin.get("/api/session")).code == 200
        assert (await first.get("/api/session")).code == 401


async def test_at_the_limit_of_all_sessions_others_are_refused() -> None:
    async with dashboard(limits=SessionLimits(most=1)) as page:
        admin = await page.signed_in()
        refused = await Browser(page.app).login(token=await page.token("reader", READ))

        assert (refused.code, refused.headers["retry-after"]) == (429, "60")
        assert (await admin.get("/api/session")).code == 200


async def test_tokens_of_one_user_are_limited() -> None:
    async with dashboard() as page:
        tokens = [await page.token("reader", READ)]
        tokens += [await page.another_token("reader") for _ in range(MAX_VIEWERS_OF_USER)]
        browsers = [Browser(page.app) for _ in tokens]
        codes = [
            (await browser.login(token=token)).code
            for browser, token in zip(browsers, tokens, strict=True)
        ]
        other = await page.signed_in()
        await browsers[0].post("/api/logout")
        after = await browsers[-1].login(token=tokens[-1])
        viewers = page.app.viewers.of_user("system:serviceaccount:default:reader")

        assert codes == [200] * MAX_VIEWERS_OF_USER + [429]
        assert after.code == 200
        assert len(viewers) == MAX_VIEWERS_OF_USER
        assert (await other.get("/api/session")).code == 200


async def test_rights_are_read_again_at_the_next_sign_in() -> None:
    async with dashboard() as page:
        token = await page.token("changer", READ)
        await Browser(page.app).login(token=token)
        rule = {"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["*"]}
        await page.set_rules("changer", rule)
        browser = Browser(page.app)
        await browser.login(token=token)

        assert (await browser.get("/api/session")).json["rights"]["taint"]


async def test_plans_are_forgotten_when_they_are_too_old() -> None:
    clock = FakeClock()
    async with dashboard(clock) as page:
        browser = await page.signed_in()
        cluster = {"clusters": ["eu-1"], "key": "maintenance", "effect": "NoSelect"}
        await page.create_cluster("eu-1")
        plan = await browser.post("/api/plan", {"action": "taint-cluster", **cluster})
        (viewer,) = page.app.sessions.viewers()
        proposals = len(viewer.state["proposals"])
        task = viewer.state["forgetting"]
        await clock.sleepers()
        clock.advance(PROPOSAL_LIFE.total_seconds())
        await task

        assert (plan.code, proposals, viewer.state["proposals"]) == (200, 1, {})
        assert "forgetting" not in viewer.state


async def test_what_a_user_may_not_see_any_more_is_not_shown() -> None:
    async with dashboard() as page:
        browser = Browser(page.app)
        await browser.login(token=await page.token("reader", READ))
        await page.create_cluster("eu-1")
        await until(lambda: browser.get("/api/clusters"), lambda x: x.json["clusters"])
        (viewer,) = page.app.sessions.viewers()
        subscription = viewer.live.subscribe()
        node = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
        await page.set_rules("reader", node)
        while True:
            event = await subscription.next(1.0) or b""
            if event.startswith(b"event: hidden") and b"managedclusters" in event:
                break
        while not (changed := await subscription.next(1.0) or b"").startswith(b"event: changed"):
            pass
        after = await browser.get("/api/clusters")

    assert b"managedclusters" in changed
    assert after.json["clusters"] == []


async def test_a_kind_that_may_be_listed_and_not_watched_is_hidden() -> None:
    clusters = {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["*"]}
    async with dashboard() as page:
        browser = Browser(page.app)
        await browser.login(token=await page.token("lister", {**clusters, "verbs": ["list"]}))
        (viewer,) = page.app.sessions.viewers()

        def hidden() -> set[str]:
            return {gap.kind.plural for gap in viewer.live.caches.gaps}

        async def answer() -> set[str]:
            await browser.get("/api/clusters")
            return hidden()

        await until(answer, lambda result: {"managedclusters", "placements"} <= result)
