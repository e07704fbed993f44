"""With --log-format json every line that a process writes is JSON, also when it fails."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sully.testing.cluster import process
from sully.testing.forkserver import run

JSON = ("--log-format", "json")
ELSEWHERE = ["up", *JSON, "--store", "memory", "--listen", "192.0.2.1:1"]
FAILURES: dict[str, tuple[list[str], str]] = {
    "an unknown flag": (["up", *JSON, "--bogus"], "unknown flag: --bogus"),
    "an unknown flag, one word": (["up", "--bogus", "--log-format=json"], "unknown flag: --bogus"),
    "a value that is none": (["up", *JSON, "--listen", "nowhere:x"], "--listen"),
    "an unknown gate": (["up", *JSON, "--feature-gates", "Nope=true"], "Nope"),
    "an unknown controller": (["controllers", *JSON, "--only", "nope"], "unknown controller nope"),
    "no kubeconfig": (["controllers", *JSON, "--kubeconfig", "/nowhere"], "/nowhere"),
    "an address elsewhere": (
        ELSEWHERE,
        "cannot listen on 192.0.2.1:1",
    ),
}


def entries(text: str) -> list[dict[str, Any]]:
    """Read each line; one that is not JSON fails."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(("arguments", "error"), FAILURES.values(), ids=FAILURES)
def test_a_start_that_fails(arguments: list[str], error: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)

    assert done.returncode != 0
    assert done.stdout == ""
    *_, last = entries(done.stderr)
    assert error in last["error"]
    assert (last["level"], last["event"]) == ("error", "command failed")


def test_an_address_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("up", *JSON, "--store", "memory", "--listen", where, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "address already in use" in entries(done.stderr)[-1]["error"]


def test_a_flag_without_effect(tmp_path: Path) -> None:
    flag = "--default-cluster-toleration-seconds"
    done = run(*ELSEWHERE, "--compat", "reference", flag, "5", cwd=tmp_path)

    first = entries(done.stderr)[0]
    assert first["level"] == "warning"
    assert first["event"] == f"{flag} has no effect with --compat reference"


CRASHES = {
    "in the main thread": "raise RuntimeError('first\\nsecond')",
    "in a thread": (
        "import threading\n"
        "def work(): raise RuntimeError('first\\nsecond')\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()"
    ),
    "where nobody can catch it": (
        "class Bad:\n    def __del__(self): raise RuntimeError('first\\nsecond')\ndel Bad"
        "\nclass Worse:\n    def __del__(self): raise RuntimeError('first\\nsecond')\nWorse()"
    ),
    "in a task that nobody awaits": (
        "import asyncio, gc\n"
        "async def work(): raise RuntimeError('first\\nsecond')\n"
        "async def main():\n    task = asyncio.create_task(work()); await asyncio.sleep(0)\n"
        "    del task; gc.collect()\n"
        "asyncio.run(main())"
    ),
    "a warning": "import warnings; warnings.warn('first\\nsecond')",
    "a library": "import logging; logging.getLogger('uvicorn.error').error('first\\nsecond')",
}


@pytest.mark.parametrize("code", CRASHES.values(), ids=CRASHES)
def test_a_crash(code: str) -> None:
    script = f"from sully.runtime.log import configure\nconfigure('json')\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    (entry,) = entries(done.stderr)
    assert "first\nsecond" in json.dumps(entry).replace("\\\\n", "\n").replace("\\n", "\n")
    assert {"event", "level", "time", "logger"} <= entry.keys()


@pytest.mark.e2e
def test_a_server_from_start_to_end() -> None:
    with process(*JSON, "--store", "memory", "--simulated-nodes", "1") as up:
        assert up.url.startswith("https://127.0.0.1:")
        assert up.stop() == 0
        rest = "".join(up.output())

    assert entries(rest)[-1]["event"] == "stopping"
