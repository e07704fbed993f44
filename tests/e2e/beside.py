"""A control plane whose controllers run beside it, with exactly the rights that install gives.

Every end-to-end suite runs twice: once with the controllers inside `sully up`, once so. A test (or
the fixture of its plane) takes the fixture `where` and hands it to `plane`; `beside_plugin.py`
does the rest. `INSIDE_ONLY` has what runs once, and why.

What the account of the controllers asked for is read from the audit log when a plane ends
(trail.py), and at the end of a whole run held against what it was given (rights.py).
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import yaml

from e2e import trail
from e2e.raw import KeptRaw, Raw
from sully.controller_setup import CONTROLLERS
from sully.testing.cluster import Process, process
from sully.testing.forkserver import run
from sully.testing.remote import CommandProcess, controllers

INSIDE, BESIDE = "inside", "beside"
WHERE = (INSIDE, BESIDE)
APPLY = ("install", "--apply", "--image", "sully:test", "--timeout", "0s")
"""There is no such image: a process stands for the Deployment."""
ACCOUNT = "/api/v1/namespaces/sully-system/serviceaccounts/sully-controllers"
WORKLOAD = tuple(
    f"/apis/{group}/namespaces/sully-system/{plural}/sully-controllers"
    for group, plural in (("apps/v1", "deployments"), ("policy/v1", "poddisruptionbudgets"))
)
LEASE = "sully-system/sully-controllers"
SHORT = ("--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "300ms")
"""For those whose server is killed under them: who comes next waits for the lease of the former."""
ALL = ("--evictor", "sully", "--only", ",".join(CONTROLLERS))

_ITSELF = "is about controllers in processes of their own: it starts them itself"
_REPLICAS = "is about the election among replicas, of those controllers that are inside"
_UP = "is about `sully up` as a program: its flags, files, port and end"
_STORE = "is about what lies on the disk, which no controller touches"
_INPUTS = "sends to the API what is broken, huge or slow; no controller ever sees it"
INSIDE_ONLY = {
    "cli/test_kubeconfig.py": "is about certificates that are made from the data directory",
    "cli/test_json_logs.py": _UP,
    "cli/test_migrate.py": _STORE,
    "cli/test_up_flags.py": _UP,
    "cli/test_inspect.py::test_a_server_that_is_unreachable": "has no server",
    "cli/test_inspect.py::test_a_server_that_is_not_ours": (
        "is about a server where nothing of ours is installed"
    ),
    "cli/test_shells.py": "is about shells: names are the same whoever made the objects",
    "docs/test_guides.py::test_the_commands_of_a_guide_about_the_server_run": _UP,
    "dashboard/test_browser.py": "is about pages, which only use the API",
    "e2e/test_clients.py": "only lists which programs there are",
    "e2e/test_controllers.py": _ITSELF,
    "e2e/test_access.py": _ITSELF,
    "e2e/test_etcd_operations.py": _STORE,
    "e2e/test_foreign.py": _ITSELF,
    "e2e/test_foreign_versions.py": _ITSELF,
    "e2e/test_simulated_nodes.py::test_wrong_usage": _UP,
    "e2e/test_install.py": _ITSELF,
    "e2e/test_replica_failures.py": _REPLICAS,
    "e2e/test_replicas.py": _REPLICAS,
    "e2e/test_second_evictor.py": _ITSELF,
    "e2e/test_up.py": _UP,
    "e2e/test_up_access.py": "is about who is let in, before anything is done",
    "e2e/test_up_restart.py": _STORE,
    "install": "compares manifests; nothing runs",
    "kube": "is about servers that are not ours, with controllers of their own",
    "robust": f"{_STORE}, or {_INPUTS}; controllers that are killed are beside already",
}
"""What runs in one form, by folder, file or test, and why."""

_BOTH = frozenset(("--compat", "--feature-gates", "--log-level"))
_THEIRS = frozenset(
    (
        "--cluster-removal-budget-per-minute",
        "--default-cluster-toleration-seconds",
        "--default-evictions-per-second",
        "--history-retention",
        "--max-evictions-per-minute",
    )
)


def forms(path: str, test: str) -> tuple[str, ...]:
    """Return in which forms a test runs; the path is that below the folder of tests."""
    named = (path.partition("/")[0], path, f"{path}::{test}")
    return (INSIDE,) if any(item in INSIDE_ONLY for item in named) else WHERE


@contextmanager
def plane(
    where: str, *flags: str, data_dir: Path | None = None, crew: tuple[str, ...] = ()
) -> Iterator[Process]:
    """Run a control plane with its controllers inside, or beside it with these further flags."""
    if where == INSIDE:
        with process(*flags, data_dir=data_dir) as up:
            yield up
        return
    with tempfile.TemporaryDirectory(prefix="sully-") as name:
        folder = Path(name)
        noted = ("--audit-log", str(folder / "audit.log"), "--audit-reads")
        with (
            process("--disable-controllers", *noted, *flags, data_dir=data_dir) as up,
            installed(up, folder, *ALL, crew=(*_for_the_crew(flags), *crew)),
        ):
            yield up
        trail.follow(folder / "audit.log")


class Planes:
    """Control planes that all tests of a process share which only use them; one of each form."""

    def __init__(self, *flags: str) -> None:
        self._flags = flags
        self._stack = ExitStack()
        self._running: dict[str, Process] = {}

    def of(self, where: str) -> Process:
        """Return the one of a form, which is started for the first who asks."""
        if where not in self._running:
            self._running[where] = self._stack.enter_context(plane(where, *self._flags))
        return self._running[where]

    def close(self) -> None:
        """End them."""
        self._stack.close()


def _for_the_crew(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return what of the flags of a server its controllers have to know; each has a value."""
    return tuple(word for pair in pairwise(flags) if pair[0] in _BOTH | _THEIRS for word in pair)


@contextmanager
def installed(
    up: Process, folder: Path, *flags: str, only: str = "", crew: tuple[str, ...] = ()
) -> Iterator[CommandProcess]:
    """Install beside a server, and run what was installed as the installed account."""
    done = sully(up.kubeconfig, *APPLY, *flags)
    assert done.returncode == 0, done.stderr
    admin = KeptRaw.admin(up.kubeconfig, folder)
    for path in WORKLOAD:
        # Here a process stands for them: pods on simulated nodes would be seen and do nothing.
        assert admin.request("DELETE", path).code == 200
    config = as_account(admin, up.kubeconfig, folder / "account")
    chosen = only or flags[flags.index("--only") + 1]
    with controllers(config, "--only", chosen, "--lease", LEASE, *crew) as running:
        running.wait_for("leading since")
        yield running


def sully(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the user of a kubeconfig."""
    return run(*arguments, "--kubeconfig", str(kubeconfig))


def as_account(admin: Raw, kubeconfig: Path, target: Path) -> Path:
    """Write a kubeconfig of the installed service account, with a token that the server gives."""
    asked = {"spec": {"expirationSeconds": 3600}}
    token = admin.request("POST", f"{ACCOUNT}/token", asked).json()["status"]["token"]
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    target.write_text(yaml.safe_dump(config))
    return target
