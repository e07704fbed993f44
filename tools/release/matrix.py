"""Installs the wheel into empty environments, one per Python, and uses it there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from release.project import ROOT, ReleaseError, run

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_READY = re.compile(r"ready after +([\d.]+) s")
_PATIENCE = 120
_PIPX = "pipx==1.18.4"
_EXTRAS = {
    "etcd": "import grpc, google.protobuf",
    "monitor": "import pynvml",
    "otel": "import aiohttp",
    "testing": "import pytest",
}


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel."""

    python: str
    folder: Path

    def program(self, name: str) -> Path:
        """Return the path of a program of it."""
        return self.folder / "bin" / name


def find(python: str) -> Path | None:
    """Return the interpreter of this version, if the machine has one."""
    kept = sorted(map(str, Path.home().glob(".pyenv/versions/*/bin")))  # its shims find only one
    kept += map(str, ROOT.glob(".cache/python*/usr/bin"))  # of tools/fetch-python
    path = os.pathsep.join([*kept, os.environ["PATH"]])
    asked = ["python", "find", "--no-python-downloads", "--no-project", python]
    try:
        found = run("uv", *asked, env={"PATH": path})
    except ReleaseError:
        return None
    return Path(found.strip().splitlines()[-1])


def create(python: str, interpreter: Path, folder: Path) -> Environment:
    """Create an environment with what Sully needs, but without Sully."""
    run("uv", "venv", "--quiet", "--clear", "--python", interpreter, folder)
    install(folder, "--no-deps", "--require-hashes", "--requirement", "requirements/run.txt")
    return Environment(python, folder)


def install(folder: Path, *what: str | Path) -> None:
    """Install into an environment."""
    run("uv", "pip", "install", "--quiet", "--python", folder, *what)


def use(environment: Environment) -> str:
    """Do what a new user does; return what came out, in one line."""
    sully = environment.program("sully")
    version = run(sully, "version").split()[1]
    plugin = run(environment.program("kubectl-sully"), "version")
    if version not in plugin:
        raise ReleaseError(f"kubectl sully version printed {plugin!r}, sully version {version}")
    for shell in ("bash", "zsh", "fish"):
        if "sully" not in run(sully, "completion", shell):
            raise ReleaseError(f"no completion for {shell}")
    ready, stopped = up([str(sully)], str(environment.folder / "data"))
    return f"{version} ready after {ready} s, stopped with exit code {stopped}"


def up(program: list[str], data: str, env: dict[str, str] | None = None) -> tuple[str, int]:
    """Run `sully up` until it is ready, then stop it; return the seconds and the exit code."""
    command = [*program, "up", "--listen", "127.0.0.1:0", "--data-dir", data]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    patience = threading.Timer(_PATIENCE, child.kill)
    patience.start()
    try:
        for line in child.stdout or ():
            lines.append(line)
            if found := _READY.search(line):
                child.send_signal(signal.SIGINT)
                child.communicate()
                return found[1], child.returncode
    finally:
        patience.cancel()
        child.kill()
        child.wait()
    raise ReleaseError("sully up did not get ready:\n" + "".join(lines))


def check(wheel: Path, scratch: Path) -> None:
    """Install and use the wheel on every Python that this machine has; name the others."""
    for python in PYTHONS:
        interpreter = find(python)
        if interpreter is None:
            print(f"Python {python}: not found on this machine, not tried")
            continue
        start = time.monotonic()
        environment = create(python, interpreter, scratch / python)
        install(environment.folder, "--no-deps", wheel)
        took = time.monotonic() - start
        print(f"Python {python}: installed in {took:.1f} s; {use(environment)}")


def check_extras(wheel: Path, folder: Path) -> None:
    """Install each extra and import what it brings."""
    for extra, imports in _EXTRAS.items():
        install(folder, "--constraint", "requirements/dev.txt", f"{wheel}[{extra}]")
        run(folder / "bin/python", "-c", imports)
        print(f"extra {extra}: installed")


def check_launchers(wheel: Path, scratch: Path) -> None:
    """Run the wheel as the README does, with uvx and pipx."""
    version = run("uvx", "--quiet", "--from", wheel, "sully", "version").split()[1]
    print(f"uvx: sully {version}")
    home = {"PIPX_HOME": str(scratch), "PIPX_BIN_DIR": str(scratch / "bin")}
    pipx = ("--quiet", "--from", _PIPX, "pipx")
    run("uvx", *pipx, "install", wheel, env=home)
    version = run(scratch / "bin/sully", "version").split()[1]
    once = run("uvx", *pipx, "run", "--spec", wheel, "sully", "version", env=home)
    if f"sully {version} " not in once:
        raise ReleaseError(f"pipx run does not run sully {version}")
    print(f"pipx: sully {version}")
