"""Answers and streams are compressed for browsers that accept it, and whole at the end."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest

from dashboard.page import dashboard
from sully.dashboard.compression import WORTH_COMPRESSING, StreamCompressor, compressed, takes_gzip
from sully.dashboard.http import Request, Response
from sully.dashboard.work import Work

ACCEPTED = {
    "": False,
    "gzip": True,
    "deflate, GZIP;q=0.5, br": True,
    "gzip;q=1": True,
    "gzip; q=0": False,
    "gzip;q=0.000": False,
    "br": False,
    "x-gzip2": False,
}


def request(accepted: str) -> Request:
    headers = [(b"accept-encoding", accepted.encode())]
    scope: dict[str, Any] = {"method": "GET", "headers": headers}

    async def receive() -> dict[str, Any]:
        raise AssertionError("nothing is read")

    return Request(scope, receive, "/")


@pytest.mark.parametrize(("accepted", "want"), ACCEPTED.items(), ids=ACCEPTED)
def test_what_a_browser_accepts(accepted: str, *, want: bool) -> None:
    assert takes_gzip(request(accepted)) == want


@pytest.mark.parametrize("accepted", ["gzip", ""])
@pytest.mark.parametrize("size", [WORTH_COMPRESSING, WORTH_COMPRESSING - 1])
async def test_a_large_answer_is_compressed(accepted: str, size: int) -> None:
    work = Work()
    plain = Response(body=b"x" * size)
    got = await compressed(request(accepted), plain, work)
    work.close()

    if accepted and size >= WORTH_COMPRESSING:
        assert gzip.decompress(got.body) == plain.body
        assert dict(got.headers)["content-encoding"] == "gzip"
        assert dict(got.headers)["vary"] == "accept-encoding"
        assert set(plain.headers) < set(got.headers)
    else:
        assert got == plain


async def test_each_event_can_be_read_when_it_arrives() -> None:
    work = Work()
    compressor, reader = StreamCompressor(work), zlib.decompressobj(wbits=31)
    events = [b"event: beat\n\n", b"event: fleet\ndata: " + b"row " * 100_000 + b"\n\n", b"end\n\n"]
    for event in events:
        assert reader.decompress(await compressor.compress(event)) == event
    assert reader.decompress(compressor.end()) == b""
    assert reader.eof
    work.close()


@pytest.mark.parametrize("accepted", ["gzip", ""])
async def test_the_stream_of_a_page(accepted: str) -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        assert (await browser.get("/api/pending")).code == 200
        opened = asyncio.create_task(browser.get("/api/stream", accept_encoding=accepted))
        page.app.stopping.set()
        answer = await opened
    data = gzip.decompress(answer.body) if accepted else answer.body

    assert answer.headers.get("content-encoding", "") == accepted
    assert data.startswith(b"event: beat\ndata: {}\n\n")


async def test_an_answer_of_a_page() -> None:
    async with dashboard() as page:
        browser = await page.signed_in()
        small = await browser.get("/api/pending", accept_encoding="gzip")
        script = await browser.get("/vendor/uplot.js", accept_encoding="gzip")
        plain = await browser.get("/vendor/uplot.js")

    assert json.loads(small.body) == {"pods": []}
    assert gzip.decompress(script.body) == plain.body
    assert int(script.headers["content-length"]) == len(script.body) < len(plain.body)
