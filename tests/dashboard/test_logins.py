"""Attempts to sign in: how large they may be, and how often they may fail."""

from __future__ import annotations

import json

import pytest

from dashboard.page import Browser, dashboard
from sully.dashboard import logins
from sully.dashboard.http import HttpError
from sully.dashboard.logins import MAX_ADDRESSES, MAX_FAILURES, Failures, Login
from sully.testing.clock import FakeClock

READ_NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}


@pytest.mark.parametrize("field", ["code", "token"])
async def test_after_some_failures_an_address_is_refused(field: str) -> None:
    clock = FakeClock()
    async with dashboard(clock) as page:
        token = await page.token("reader", READ_NODES)
        codes = [
            (await page.browser.login(**{field: "wrong"})).code for _ in range(MAX_FAILURES + 1)
        ]
        right = await page.browser.login(token=token)
        link = await page.browser.login(code=page.app.sessions.new_code())
        elsewhere = await Browser(page.app, address="192.0.2.7").login(token=token)
        clock.advance(60)
        later = await page.browser.login(token=token)

    assert codes == [401] * MAX_FAILURES + [429]
    assert (right.code, right.headers["retry-after"]) == (429, "60")
    # Nobody guesses a link: it works for its owner behind the same proxy.
    assert link.code == 200
    assert (elsewhere.code, later.code) == (200, 200)


async def test_a_login_is_small_and_typed() -> None:
    large = json.dumps({"token": "x" * logins.MAX_BODY}).encode()
    bodies = (large, b'{"token": 5}', b'{"code": ["x"]}', b'{"code": null}', b"[]", b"{}")
    async with dashboard() as page:
        codes = [(await page.browser.post("/api/login", body)).code for body in bodies]

    assert codes == [413, 400, 400, 400, 400, 400]


def test_a_fixed_number_of_addresses_is_known() -> None:
    failures = Failures(FakeClock())
    for _ in range(MAX_FAILURES):
        failures.add("first")
    with pytest.raises(HttpError):
        failures.check("first")
    for number in range(MAX_ADDRESSES):
        failures.add(str(number))

    failures.check("first")
    assert len(failures._times) == MAX_ADDRESSES


def test_a_login_does_not_show_its_secrets() -> None:
    assert "secret" not in repr(Login(code="secret", token="secret"))
