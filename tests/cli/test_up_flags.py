"""Flags of `sully up` about who gets in and to what, on a process as users run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.terminals import PATIENCE, environment, program
from e2e.raw import Raw, authority, trusting
from manifests import namespace
from sully.cli.main import main
from sully.server.identity import Pair
from sully.server.net.listen import bind
from sully.server.net.tls import names_of
from sully.testing.cluster import process

pytestmark = pytest.mark.e2e
NAMESPACE = namespace("noted")


def test_flags_of_access(tmp_path: Path) -> None:
    log = tmp_path / "elsewhere.log"
    flags = ("--tls-san", "api.example", "--tls-san", "10.1.2.3", "--anonymous-auth", "true")

    versions = ("--runtime-config", "resource.k8s.io/v1beta1=false")
    with process("--store", "memory", *flags, *versions, "--audit-log", str(log)) as up:
        pair = Pair((up.data_dir / "server.crt").read_bytes(), b"")
        nobody = Raw(up.url, trusting(authority(up.kubeconfig)))
        refused = nobody.request("GET", "/api/v1/namespaces").code
        made = Raw.admin(up.kubeconfig, tmp_path).request("POST", "/api/v1/namespaces", NAMESPACE)
        usual = (up.data_dir / "audit.log").exists()
        admin = Raw.admin(up.kubeconfig, tmp_path)
        served = [
            admin.request("GET", f"/apis/resource.k8s.io/{version}/resourceslices").code
            for version in ("v1", "v1beta2", "v1beta1")
        ]

    assert {"api.example", "10.1.2.3", "127.0.0.1", "localhost"} <= names_of(pair)
    assert (refused, made.code) == (403, 201)
    assert served == [200, 200, 404]
    assert '"name":"noted"' in log.read_text()
    assert not usual


BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "alice-views"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
}


def test_one_user_has_so_many_watches(tmp_path: Path) -> None:
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    watch = "/api/v1/pods?watch=1"
    with process("--store", "memory", "--max-watches-per-user", "1") as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        assert admin.request("POST", bindings, BINDING).code == 201
        target = tmp_path / "alice"
        issue = ["kubeconfig", "--user", "alice", "--data-dir", str(up.data_dir)]
        assert main([*issue, "-o", str(target)]) == 0
        alice = Raw.admin(target, tmp_path)

        with alice.open("GET", watch) as first, alice.open("GET", watch) as second:
            assert (first.status, second.status) == (200, 429)
            assert second.headers["Retry-After"] == "1"
        # The admin is never refused, whatever the limits are.
        with admin.open("GET", watch) as first, admin.open("GET", watch) as second:
            assert (first.status, second.status) == (200, 200)


REFUSED = {
    "no such store": (("--store", "disk"), 'unknown store "disk" (one of: sqlite, memory, etcd://'),
    "no member": (
        ("--store", "etcd:///prefix"),
        "(for example etcd://127.0.0.1:2379)",
    ),
    "no port": (("--store", "etcd://a:b"), 'invalid etcd member "a:b" (HOST:PORT)'),
    "a certificate without a key": (
        ("--store", "etcd://a", "--etcd-cafile", "x", "--etcd-certfile", "y"),
        "--etcd-certfile and --etcd-keyfile only work together",
    ),
    "a certificate without an authority": (
        ("--store", "etcd://a", "--etcd-certfile", "x", "--etcd-keyfile", "y"),
        "--etcd-certfile requires --etcd-cafile",
    ),
    "no such file": (
        ("--store", "etcd://a", "--etcd-cafile", "/nowhere/ca.pem"),
        "file /nowhere/ca.pem not found",
    ),
    "files without etcd": (("--etcd-cafile", "x"), "--etcd-... flags require a store in etcd"),
    "a user without etcd": (
        ("--etcd-username", "x", "--etcd-password-file", "y"),
        "--etcd-... flags require a store in etcd",
    ),
    "a user without a password": (
        ("--store", "etcd://a", "--etcd-username", "x"),
        "--etcd-username and --etcd-password-file only work together",
    ),
    "a password of nobody": (
        ("--store", "etcd://a", "--etcd-password-file", "x"),
        "--etcd-username and --etcd-password-file only work together",
    ),
    "no password file": (
        ("--store", "etcd://a", "--etcd-username", "x", "--etcd-password-file", "/nowhere/p"),
        "file /nowhere/p not found",
    ),
    "a lease that ends before it is given up": (
        ("--leader-elect-lease-duration", "10s"),
        "the renew deadline must be shorter than the lease duration",
    ),
    "a lease that is not renewed in time": (
        ("--leader-elect-retry-period", "9s"),
        "the renew deadline must be longer than 1.2 times the retry period",
    ),
    "no address": (
        ("--listen", "here"),
        '--listen: invalid address "here" (for example 127.0.0.1:8443)',
    ),
    "no such gate": (("--feature-gates", "Nope=true"), 'unknown feature gate "Nope" (one of: DRA'),
    "no such version": (
        ("--runtime-config", "resource.k8s.io/v9=false"),
        "--runtime-config: unknown version resource.k8s.io/v9 (one of: ",
    ),
}


@pytest.mark.parametrize(("flags", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_wrong_flags(flags: tuple[str, ...], want: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", *flags]) == 2
    assert want in capsys.readouterr().err


IN_VAIN = {
    "an address that is taken": (
        "--listen",
        "127.0.0.1:{port}",
        "address already in use; stop what",
    ),
    "an address of others": ("--listen", "192.0.2.1:0", "not an address of this machine"),
    "a name without an address": (
        "--listen",
        "no-host.invalid:0",
        "cannot listen on no-host.invalid:0: ",
    ),
    "no folder for a log": ("--audit-log", "/nowhere/log", "cannot use /nowhere/log: No such"),
}


@pytest.mark.parametrize(("flag", "value", "want"), IN_VAIN.values(), ids=IN_VAIN)
def test_what_cannot_be_done_here(
    flag: str, value: str, want: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = ("--store", "memory", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        code = main(["up", *usual, flag, value.format(port=taken.getsockname()[1])])

    assert code == 1
    assert want in capsys.readouterr().err


def test_a_disk_that_is_full_from_the_start_is_reported_in_one_line(tmp_path: Path) -> None:
    arguments = program("up", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    ran = subprocess.run(
        ["bash", "-c", 'ulimit -f 64; exec "$@"', "-", *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    last = ran.stderr.splitlines()[-1]
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)
    assert last.startswith("error: the write could not be stored: cannot write ")
