"""Health pages with named checks, in the format of Kubernetes."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from sully.server.http.health import HealthPages
from sully.server.http.http_request import HttpRequest

FULL = "disk full"


async def get(pages: HealthPages, url: str) -> tuple[int, str]:
    path, _, query = url.partition("?")
    scope = {"method": "GET", "path": path, "headers": [], "query_string": query.encode()}
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    http_request = HttpRequest({"type": "http", **scope}, receive, send)
    await (pages.slis if path == "/metrics/slis" else pages.serve)(http_request)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent).decode()


def health(problem: str = "") -> HealthPages:
    pages = HealthPages()
    pages.checks["store"] = lambda: problem
    return pages


CASES = {
    "short": ("/readyz", "", 200, "ok"),
    "by the name that Kubernetes has": ("/readyz/etcd", "", 200, "ok"),
    "only of readyz": ("/livez/informer-sync", "", 404, "404 page not found\n"),
    "verbose": ("/livez?verbose", "", 200, "[+]ping ok\n[+]store ok\nlivez check passed\n"),
    "a check fails": (
        "/healthz",
        FULL,
        500,
        "[+]ping ok\n[-]store failed: disk full\nhealthz check failed\n",
    ),
    "the failing check is excluded": ("/readyz?exclude=store", FULL, 200, "ok"),
    "excluded, verbose": (
        "/readyz?verbose&exclude=store&exclude=ping",
        FULL,
        200,
        "[+]ping excluded: ok\n[+]store excluded: ok\nreadyz check passed\n",
    ),
    "unknown checks are excluded": (
        "/readyz?exclude=x&verbose=true&exclude=nope",
        "",
        200,
        "[+]ping ok\n[+]store ok\n"
        'warn: some health checks cannot be excluded: no matches for "nope","x"\n'
        "readyz check passed\n",
    ),
    "one check": ("/readyz/store", "", 200, "ok"),
    "one check, verbose": ("/readyz/ping?verbose", "", 200, "ok"),
    "one check fails": ("/livez/store", FULL, 500, "internal server error: disk full\n"),
    "one check, excluded": ("/livez/store?exclude=store", "", 200, "ok"),
    "one check, unknown": ("/livez/nope", "", 404, "404 page not found\n"),
}


@pytest.mark.parametrize(("url", "problem", "code", "text"), CASES.values(), ids=CASES)
async def test_health(url: str, problem: str, code: int, text: str) -> None:
    assert await get(health(problem), url) == (code, text)


async def test_results_are_metrics() -> None:
    pages = health(FULL)
    for url in ("/readyz", "/readyz?exclude=store", "/livez/ping"):
        await get(pages, url)
    _, text = await get(pages, "/metrics/slis")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")

    assert values == {
        'kubernetes_healthcheck{name="ping",type="healthz"}': "1",
        'kubernetes_healthcheck{name="ping",type="livez"}': "1",
        'kubernetes_healthcheck{name="ping",type="readyz"}': "1",
        'kubernetes_healthcheck{name="store",type="healthz"}': "0",
        'kubernetes_healthcheck{name="store",type="livez"}': "0",
        'kubernetes_healthcheck{name="store",type="readyz"}': "0",
        'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"}': "2",
        'kubernetes_healthchecks_total{name="store",status="error",type="readyz"}': "1",
    }
