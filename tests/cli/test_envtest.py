"""`sully envtest-assets`: programs that start with the command lines of envtest.

The flags are those that controller-runtime passes, and the certificates are made as it makes them:
one CA signs the server's, another one those of clients.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etcds import reserved_port
from sully.cli.main import main
from sully.cli.run.envtest.programs import FlagError, parse_flags, serving_pair
from sully.cli.run.envtest.programs import main as run_program
from sully.runtime.clock import SystemClock
from sully.server.net.tls import Authority


class Envtest:
    """What envtest does, with the programs of a folder."""

    def __init__(self, assets: Path, folder: Path, ports: tuple[int, int]) -> None:
        self.assets, self.folder = assets, folder
        self.etcd, self.port = f"http://127.0.0.1:{ports[0]}", ports[1]
        self.processes: list[subprocess.Popen[bytes]] = []
        now = SystemClock().now()
        self.server_ca = Authority.open(_made(folder / "server-ca"), now)
        self.client_ca = Authority.open(_made(folder / "client-ca"), now)
        certs = _made(folder / "certs")
        pair = self.server_ca.server(["127.0.0.1", "localhost"], now)
        (certs / "apiserver.crt").write_bytes(pair.certificate)
        (certs / "apiserver.key").write_bytes(pair.key)
        (certs / "client-cert-auth-ca.crt").write_bytes(self.client_ca.pair.certificate)

    def start(self, program: str, **flags: Any) -> None:
        named = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        process = subprocess.Popen([self.assets / program, *named], env=environment)
        self.processes.append(process)

    def run(self) -> None:
        certs = self.folder / "certs"
        self.start(
            "etcd",
            listen_peer_urls="http://localhost:0",
            unsafe_no_fsync="true",
            advertise_client_urls=self.etcd,
            data_dir=_made(self.folder / "etcd"),
            listen_client_urls=self.etcd,
        )
        assert self.answer(f"{self.etcd}/health")["health"] == "true"
        self.start(
            "kube-apiserver",
            advertise_address="127.0.0.1",
            allow_privileged="true",
            authorization_mode="RBAC",
            bind_address="127.0.0.1",
            cert_dir=certs,
            client_ca_file=certs / "client-cert-auth-ca.crt",
            disable_admission_plugins="ServiceAccount",
            etcd_servers=self.etcd,
            secure_port=self.port,
            service_account_issuer=f"https://127.0.0.1:{self.port}/",
            service_account_key_file=certs / "sa-signer.crt",
            service_account_signing_key_file=certs / "sa-signer.key",
            service_cluster_ip_range="10.0.0.0/24",
        )
        assert self.answer(f"https://127.0.0.1:{self.port}/readyz") == "ok"

    def answer(self, url: str) -> Any:
        """Ask until there is an answer, without credentials, as envtest does."""
        while True:
            assert all(process.poll() is None for process in self.processes)
            try:
                with urllib.request.urlopen(url, context=self.trust(url)) as reply:
                    text = reply.read().decode()
                    return json.loads(text) if text.startswith("{") else text
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)

    def trust(self, url: str = "https") -> ssl.SSLContext | None:
        if not url.startswith("https"):
            return None
        return ssl.create_default_context(cadata=self.server_ca.pair.certificate.decode())

    def ask(self, user: str, *groups: str, body: Any = None) -> Any:
        """Ask as a user of the CA of clients."""
        pair = self.client_ca.client(user, list(groups), SystemClock().now())
        (self.folder / "user.crt").write_bytes(pair.certificate)
        (self.folder / "user.key").write_bytes(pair.key)
        trust = self.trust()
        assert trust is not None
        trust.load_cert_chain(self.folder / "user.crt", self.folder / "user.key")
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/api/v1/namespaces/default/configmaps",
            data=json.dumps(body).encode() if body else None,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=trust) as reply:
            return json.load(reply)

    def stop(self) -> list[int]:
        for process in self.processes:
            process.terminate()
        return [process.wait() for process in self.processes]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Envtest]:
    assets = tmp_path / "as sets"
    assert main(["envtest-assets", str(assets)]) == 0
    assert capsys.readouterr().out == f"export KUBEBUILDER_ASSETS='{assets}'\n"
    with reserved_port() as etcd, reserved_port() as server:
        one = Envtest(assets, tmp_path, (etcd, server))
        try:
            yield one
        finally:
            one.stop()


@pytest.mark.slow
def test_clients_are_those_of_the_given_certificates(there: Envtest) -> None:
    there.run()

    made = there.ask(
        "admin", "system:masters", body={"metadata": {"name": "a"}, "data": {"k": "v"}}
    )
    assert made["metadata"]["uid"]
    assert [one["metadata"]["name"] for one in there.ask("admin", "system:masters")["items"]] == [
        "a"
    ]
    with pytest.raises(urllib.error.HTTPError) as refused:
        there.ask("nobody")
    with refused.value as answer:
        assert answer.code == 403
    assert there.stop() == [0, 0]


def test_flags_as_envtest_writes_them() -> None:
    assert parse_flags(["--a=b=c", "--d", "e", "--f", "--g="]) == {
        "a": "b=c",
        "d": "e",
        "f": "true",
        "g": "",
    }
    with pytest.raises(FlagError, match='unexpected argument "x"'):
        parse_flags(["x"])


@pytest.mark.parametrize(
    ("program", "flag", "want"),
    [
        ("etcd", "unsafe-no-fsync", True),
        ("kube-apiserver", "secure-port", True),
        ("kube-apiserver", "insecure-port", False),
    ],
)
def test_help_as_envtest_reads_it(
    program: str, flag: str, want: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """envtest asks both programs for their flags before it starts them."""
    assert run_program([program, "--help"]) == 0

    assert bool(re.search(rf"(?m)^\s*--{flag}\b", capsys.readouterr().out)) is want


def test_which_certificate_is_served(tmp_path: Path) -> None:
    assert serving_pair({}) is None
    assert serving_pair({"cert-dir": str(tmp_path)}) is None
    (tmp_path / "apiserver.crt").touch()
    assert serving_pair({"cert-dir": str(tmp_path)}) == (
        tmp_path / "apiserver.crt",
        tmp_path / "apiserver.key",
    )
    assert serving_pair({"tls-cert-file": "/c", "tls-private-key-file": "/k"}) == (
        Path("/c"),
        Path("/k"),
    )


REFUSED = {
    "a flag that Sully does not have": (["--audit-policy-file=x"], "--audit-policy-file"),
    "an unknown gate": (["--feature-gates=Nonsense=true"], "Nonsense"),
    "no number": (["--secure-port=x"], "invalid literal"),
    "a CA that is not there": (["--secure-port=0", "--client-ca-file=/none"], "/none"),
}


@pytest.mark.parametrize(("flags", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(flags: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(["kube-apiserver", *flags]) == 1
    assert text in capsys.readouterr().err


def test_programs_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    package = _made(tmp_path / "here" / "sully")
    (package / "__init__.py").write_text("raise SystemExit(99)\n")
    assert main(["envtest-assets", str(tmp_path / "assets")]) == 0

    program = [str(tmp_path / "assets" / "kube-apiserver"), "--audit-policy-file=x"]
    done = subprocess.run(program, cwd=package.parent, capture_output=True, check=False)

    assert done.returncode == 1
    assert b"--audit-policy-file" in done.stderr


def test_a_link_in_the_folder_is_replaced(tmp_path: Path) -> None:
    other, program = tmp_path / "other", tmp_path / "etcd"
    other.write_text("mine")
    program.symlink_to(other)

    assert main(["envtest-assets", str(tmp_path)]) == 0
    assert other.read_text() == "mine"
    assert not program.is_symlink()
    assert program.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()

    assert main(["envtest-assets", str(tmp_path / "file")]) == 1
    assert "cannot write" in capsys.readouterr().err
