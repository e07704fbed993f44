"""What `sully install` prints about a server that is not Sully's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from client.foreign import serving
from servers import answering, recorded
from sully.testing.forkserver import run

ESTABLISHED = {
    "metadata": {"name": "x"},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}
EVICTORS = {"sully": True, "auto": False}


@pytest.mark.slow
@pytest.mark.parametrize(("evictor", "warned"), EVICTORS.items(), ids=EVICTORS)
async def test_two_evictors(evictor: str, warned: bool, tmp_path: Path) -> None:
    known = answering(recorded(), [])

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and "/customresourcedefinitions/" in request.path:
            return web.json_response(ESTABLISHED)
        return await known(request)

    config = tmp_path / "kubeconfig"
    command = ("install", "--apply", "--image", "example.com/sully:1", "--timeout", "0s")
    async with serving(answer) as url:
        config.write_text(
            f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
        )
        flags = ("--evictor", evictor, "--kubeconfig", str(config))
        done = await asyncio.to_thread(run, *command, *flags)

    assert done.returncode == 0
    text = "warning: Kubernetes evicts by default since 1.36: if its eviction controller is not"
    assert done.stderr.startswith(text) == warned
    assert ("--controllers=*,-device-taint-eviction-controller" in done.stderr) == warned
