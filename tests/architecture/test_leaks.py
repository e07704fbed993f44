"""`pytest --find-leaks` fails the test that leaves something open, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from architecture.project import ROOT

BEGIN = """
import asyncio, gc, socket

def connect(close):
    async def main(address):
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(asyncio.Protocol, *address)
        if close:
            transport.close()
        return transport
    with socket.create_server(("127.0.0.1", 0)) as server:
        return asyncio.run(main(server.getsockname()))

def test_before():
    connect(close=True)

def test_this():
    {}

def test_after():
    gc.collect()
"""
LEFT = {
    "a transport that is garbage": ("connect(close=False)", "in connect"),
    "a transport that a user holds": ("global held; held = connect(close=False)", "in connect"),
    "a socket": ("a = socket.socket(); b = [a]; b.append(b); del a, b", "unclosed <socket.socket"),
    "a task": (
        "global task; loop = asyncio.new_event_loop();"
        " task = loop.create_task(asyncio.sleep(1)); loop.close()",
        "waits on a closed loop",
    ),
}


def run(folder: Path, text: str) -> str:
    file = folder / "test_leaking.py"
    file.write_text(BEGIN.format(text))
    command = [sys.executable, "-m", "pytest", "-p", "leaks_plugin", "--find-leaks", "-rA", "-q"]
    done = subprocess.run(
        [
            *command,
            "--noconftest",
            f"--rootdir={folder}",
            "-c",
            str(folder / "none.ini"),
            str(file),
        ],
        env={"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("text", "reported"), LEFT.values(), ids=LEFT)
def test_what_leaves_something_fails(tmp_path: Path, text: str, reported: str) -> None:
    (tmp_path / "none.ini").write_text("[pytest]\n")

    shown = run(tmp_path, text)

    assert "ERROR at teardown of test_this" in shown
    assert reported in shown
    assert "3 passed, 1 error" in shown
