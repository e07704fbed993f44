"""`sully up` as a program: what it prints, refuses, protects, and how it ends."""

import json
import re
import signal
import socket
import stat
import sys
import threading
import time
from pathlib import Path
from shlex import quote

import pytest

from cli.terminals import environment, terminal
from e2e.raw import Raw
from sully.server.net.listen import DRAIN_SECONDS
from sully.testing.cluster import Process, process
from sully.testing.forkserver import run
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e
# How long a user may wait for the prompt after Ctrl-C, with watches open.


def in_use(up: Process) -> str:
    return (
        f"error: the data directory {up.data_dir} is in use by process {up.child.pid}\n"
        f"  to use that server:     export KUBECONFIG={quote(str(up.kubeconfig))}\n"
        "  to start another one:   sully up --data-dir DIR --listen 127.0.0.1:0\n"
    )


def test_a_second_up_on_the_same_data_is_refused(plane: Process) -> None:
    done = run("up", "--data-dir", str(plane.data_dir), "--listen", "127.0.0.1:0")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == in_use(plane)


def test_a_store_in_memory_does_not_share_its_kubeconfig(tmp_path: Path) -> None:
    arguments = ("--store", "memory")
    with process(*arguments, data_dir=tmp_path) as up:
        before = up.kubeconfig.read_text()
        done = run("up", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0", *arguments)
        after = up.kubeconfig.read_text()

    assert (done.returncode, after) == (1, before)
    assert done.stderr == in_use(up)


def test_a_new_one_has_no_devices(plane: Process) -> None:
    done = run("devices", "--kubeconfig", str(plane.kubeconfig))

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "No devices found: no driver has published any.\n"


def test_a_busy_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        done = run("up", "--data-dir", str(tmp_path / "d"), "--listen", f"127.0.0.1:{port}")

    assert done.returncode == 1
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1:{port}: address already in use;"
        " stop what listens there or use another --listen\n"
    )


WRONG_USAGE = {
    "unknown flag": (("--nonsense",), "unknown flag: --nonsense"),
    "unknown store": (("--store", "tape"), 'unknown store "tape"'),
    "address without port": (("--listen", "localhost"), "--listen: invalid address"),
    "port out of range": (("--listen", "127.0.0.1:70000"), "--listen: invalid address"),
    "unknown gate": (("--feature-gates", "Nonsense=true"), "Nonsense"),
    "gate without a value": (("--feature-gates", "DRADeviceTaints"), "DRADeviceTaints"),
    "locked gate": (("--feature-gates", "DRAAdminAccess=false"), "DRAAdminAccess"),
}


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage(case: str, tmp_path: Path) -> None:
    flags, reported = WRONG_USAGE[case]

    done = run("up", "--data-dir", str(tmp_path / "d"), *flags)

    assert (done.returncode, done.stdout) == (2, "")
    assert reported in done.stderr
    assert not (tmp_path / "d").exists()


def test_a_data_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    done = run("up", "--data-dir", str(tmp_path / "file"), "--listen", "127.0.0.1:0")

    assert done.returncode == 1
    assert str(tmp_path / "file") in done.stderr
    assert "Traceback" not in done.stderr


def test_what_it_writes_is_for_its_owner_only(plane: Process) -> None:
    assert mode(plane.kubeconfig) == 0o600
    assert {mode(path) for path in plane.data_dir.rglob("*.key")} == {0o600}


def test_in_a_terminal_it_shows_what_to_type_in_another(tmp_path: Path) -> None:
    made = tmp_path / "made"
    arguments = ("up", "--data-dir", str(made), "--listen", "127.0.0.1:0")
    with terminal(*arguments, env=environment(PATH="/usr/bin:/bin")) as screen:
        screen.wait_for("(pid ")
        screen.wait_for(f"In another terminal:\n  export KUBECONFIG={made}/kubeconfig\n")
        screen.wait_for(f"  export PATH={Path(sys.executable).parent}:$PATH\n")
        # A folder that it makes is for its owner only.
        assert mode(made) == 0o700
        screen.interrupt()
        assert screen.end() == 0


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda item: item.name)
def test_it_ends_watches_and_stops(number: signal.Signals, tmp_path: Path) -> None:
    with process() as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        with admin.open("GET", "/api/v1/namespaces?watch=true") as watch:
            assert json.loads(watch.readline())["type"] == "ADDED"
            began = time.monotonic()
            # Whoever watches reads on; nobody need close anything for the server to stop.
            rest: list[bytes] = []
            reader = threading.Thread(target=lambda: rest.append(watch.read()))
            reader.start()
            code = up.stop(number)
            took = time.monotonic() - began
            reader.join(PATIENCE)

    assert code == 0
    assert took < PATIENCE
    # It came to its proper end: a connection that breaks off would have raised.
    assert len(rest) == 1
    assert all(json.loads(line)["type"] == "ADDED" for line in rest[0].splitlines())


def test_a_client_that_stays_connected_does_not_keep_it(tmp_path: Path) -> None:
    def seconds_to_stop() -> float:
        with process("--store", "memory") as up:
            admin = Raw.admin(up.kubeconfig, tmp_path)
            # As pools of connections do: it is neither used nor closed after the answer.
            with admin.open("GET", "/version") as answer:
                answer.read()
                began = time.monotonic()
                assert up.stop() == 0
                return time.monotonic() - began

    # It would wait each time; a busy machine is not as slow as that each time.
    assert any(seconds_to_stop() < DRAIN_SECONDS for _ in range(5))


def test_logs_for_programs_are_json(tmp_path: Path) -> None:
    with process("--store", "memory", "--log-format", "json", "--log-level", "debug") as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "logged"}}
        admin.request("POST", "/api/v1/namespaces", made)
        admin.request("DELETE", "/api/v1/namespaces/logged")
        # The namespace is emptied and removed, which is worth a line.
        with admin.open(
            "GET", "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dlogged"
        ):
            line = next(line for line in up.output() if "logged" in line)

    entry = json.loads(line)
    assert entry["namespace"] == "logged"
    assert {"event", "level", "time"} <= entry.keys()


def test_the_metrics_page_counts_requests(raw: Raw) -> None:
    raw.request("GET", "/api/v1/namespaces/default/configmaps")

    page = raw.request("GET", "/metrics").body.decode()

    counted = re.search(
        r'^apiserver_request_total\{[^}]*resource="configmaps"[^}]*\} (\d+)', page, re.MULTILINE
    )
    assert counted is not None
    assert int(counted[1]) >= 1


def test_it_shows_where_it_is(plane: Process) -> None:
    done = run("version")

    assert done.returncode == 0
    assert "1.37" in done.stdout
    assert plane.url.startswith("https://127.0.0.1:")
