"""Commands whose reader goes away while pods are evicted: what remains is printed to stderr."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from cli.test_taint import DRIVER, KEY, LAST, NODES, Server, fill
from e2e.beside import plane as controlled
from sully.cli.process import PIPE_CLOSED
from sully.testing.forkserver import start
from sully.testing.patience import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


@pytest.fixture
def server(where: str) -> Iterator[Server]:
    flags = ("--store", "memory", "--simulated-nodes", str(NODES), "--devices-per-node", "8")
    with controlled(where, *flags) as plane:
        server = Server(plane.kubeconfig, plane.child)
        server.ask(fill)
        yield server


def without_reader(server: Server, *arguments: str) -> tuple[int, str]:
    """Run a command whose objects nobody reads; return its exit code and stderr."""
    pipe = subprocess.PIPE
    more = ("--yes", "-o", "name")
    child = start(
        *arguments, *more, env=server.env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    shown = child.stderr.read()
    child.stderr.close()
    return child.wait(timeout=PATIENCE), shown if isinstance(shown, str) else shown.decode()


def test_a_drain_prints_how_to_resume_and_undo(server: Server) -> None:
    pool, device = server.device_of("web")

    code, shown = without_reader(server, "drain", "device", f"{DRIVER}/{pool}/{device}")

    assert code == PIPE_CLOSED
    assert "The devices stay cordoned.\n  to resume:  sully drain device" in shown
    assert "\n  to undo:    sully uncordon device" in shown
    assert len(server.rules()) == 1


def test_a_taint_prints_that_evictions_continue(server: Server) -> None:
    # The patient pod is there, and stays for an hour.
    arguments = ("taint", "device", f"{LAST}/gpu-0", f"{KEY}:NoExecute", "--name", "slow")

    code, shown = without_reader(server, *arguments)

    assert code == PIPE_CLOSED
    assert "The rule slow remains, and evictions continue." in shown
    assert shown.endswith("  to undo:    kubectl delete devicetaintrule slow\n")


def test_a_taint_that_evicts_no_pod_prints_how_to_undo_it(server: Server) -> None:
    arguments = ("taint", "device", f"{LAST}/gpu-[567]", f"{KEY}:NoSchedule", "--name", "idle")

    code, shown = without_reader(server, *arguments)

    assert code == PIPE_CLOSED
    assert "to undo:  kubectl delete devicetaintrule -l sully.dev/taint=idle\n" in shown
    assert len(server.rules()) == 3
