"""A control plane whose controllers run beside it, with exactly the rights that install gives.

Suites run once with controllers inside and once so: `@pytest.fixture(params=WHERE)`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from e2e.raw import Raw
from sully.controlling import CONTROLLERS
from sully.testing.cluster import Process, process
from sully.testing.remote import Crew, controllers

WHERE = ("inside", "beside")
ACCOUNT = "/api/v1/namespaces/sully-system/serviceaccounts/sully-controllers"
LEASE = "sully-system/sully-controllers"


@contextmanager
def plane(where: str, *flags: str) -> Iterator[Process]:
    """Run a control plane with its controllers inside, or beside it."""
    if where == "inside":
        with process(*flags) as up:
            yield up
        return
    with (
        tempfile.TemporaryDirectory(prefix="sully-") as folder,
        process("--disable-controllers", *flags) as up,
        installed(up, Path(folder), "--evictor", "sully", "--only", ",".join(CONTROLLERS)),
    ):
        yield up


@contextmanager
def installed(up: Process, folder: Path, *flags: str, only: str = "") -> Iterator[Crew]:
    """Install beside a server, and run what was installed as the installed account."""
    done = sully(up.kubeconfig, "install", "--apply", *flags)
    assert done.returncode == 0, done.stderr
    config = as_account(Raw.admin(up.kubeconfig, folder), up.kubeconfig, folder / "account")
    chosen = only or flags[flags.index("--only") + 1]
    with controllers(config, "--only", chosen, "--lease", LEASE) as crew:
        crew.wait_for("leading since")
        yield crew


def sully(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the user of a kubeconfig."""
    command = [sys.executable, "-m", "sully.cli.main", *arguments, "--kubeconfig", str(kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def as_account(admin: Raw, kubeconfig: Path, target: Path) -> Path:
    """Write a kubeconfig of the installed service account, with a token that the server gives."""
    asked = {"spec": {"expirationSeconds": 3600}}
    token = admin.request("POST", f"{ACCOUNT}/token", asked).json()["status"]["token"]
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    target.write_text(yaml.safe_dump(config))
    return target
