"""`sully kubeconfig`: certificates for users, from the files of a data directory."""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from e2e.raw import Raw
from sully.cli.main import main
from sully.client.kubeconfig.writing import Login, kubeconfig, write_kubeconfig
from sully.server.net.tls import Authority
from sully.testing.cluster import Process, process

SERVER = "https://127.0.0.1:12345"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a data directory as a server leaves it."""
    authority = Authority.open(tmp_path, datetime.now(UTC))
    login = Login(server=SERVER, ca=authority.pair.certificate)
    write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(login))
    return tmp_path


def certificate(content: Any) -> x509.Certificate:
    data = content["users"][0]["user"]["client-certificate-data"]
    return x509.load_pem_x509_certificate(base64.b64decode(data))


def test_it_prints_a_kubeconfig(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--user", "alice", "--group", "dev", "--group", "ops", "--expires", "24h"]

    assert main(["kubeconfig", *flags, "--data-dir", str(folder)]) == 0

    content = yaml.safe_load(capsys.readouterr().out)
    made = certificate(content)
    names = {
        oid: [str(item.value) for item in made.subject.get_attributes_for_oid(oid)]
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    }
    cluster = content["clusters"][0]["cluster"]
    left = made.not_valid_after_utc - datetime.now(UTC)
    assert names == {NameOID.COMMON_NAME: ["alice"], NameOID.ORGANIZATION_NAME: ["dev", "ops"]}
    assert timedelta(hours=23, minutes=59) < left <= timedelta(hours=24)
    assert content["current-context"] == "alice@sully"
    assert cluster["server"] == SERVER
    assert base64.b64decode(cluster["certificate-authority-data"]) == (
        (folder / "ca.crt").read_bytes()
    )


def test_it_writes_a_file_for_its_owner_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = folder / "alice.kubeconfig"
    flags = ["--user", "alice", "--server", "https://api.example:6443", "-o", str(target)]

    assert main(["kubeconfig", *flags, "--data-dir", str(folder)]) == 0

    content = yaml.safe_load(target.read_text())
    assert content["clusters"][0]["cluster"]["server"] == "https://api.example:6443"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    reported = capsys.readouterr()
    assert reported.out == ""
    assert reported.err == f"{target}: user alice, valid for 365d\n"


# name → (flags, exit code, what it reports)
REFUSED = {
    "no such folder": (
        ["--user", "a", "--data-dir", "nowhere"],
        1,
        "nowhere is not a data directory of a control plane: ca.crt not found\n"
        "  run 'sully up --data-dir nowhere' first, or use another --data-dir",
    ),
    "no time": (
        ["--user", "a", "--expires", "soon"],
        2,
        '--expires: invalid duration "soon" (for example 15s, 1m30s)',
    ),
    "no unit": (
        ["--user", "a", "--expires", "24"],
        2,
        '--expires: invalid duration "24" (for example 15s, 1m30s)',
    ),
    "no time at all": (
        ["--user", "a", "--expires", "0h"],
        2,
        '--expires: invalid duration "0h" (1s to 100 years)',
    ),
    "indefinitely": (
        ["--user", "a", "--expires", "999999999d"],
        2,
        '--expires: invalid duration "999999999d" (1s to 100 years)',
    ),
    "a name without letters": (["--user", ""], 2, "invalid user or group: "),
    "a name too long": (["--user", "a" * 65], 2, "invalid user or group: "),
    "a file that cannot be": (
        ["--user", "a", "-o", "/dev/null/x"],
        1,
        "cannot write /dev/null/x: ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags, code, text = REFUSED[name]
    monkeypatch.chdir(folder)

    assert main(["kubeconfig", "--data-dir", ".", *flags]) == code

    reported = capsys.readouterr()
    assert reported.out == ""
    assert reported.err.startswith(f"error: {text}")


def test_an_authority_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ca.key").write_text("no key")

    assert main(["kubeconfig", "--user", "a", "--data-dir", str(folder)]) == 1

    err = capsys.readouterr().err
    assert err.startswith(f"error: {folder}/ca.crt and {folder}/ca.key are not ")
    assert err.count("\n") == 1


def test_without_the_admins_file_it_needs_to_know_where_the_server_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "kubeconfig").unlink()

    assert main(["kubeconfig", "--user", "a", "--data-dir", str(folder)]) == 1
    assert "use --server URL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90d", 7_776_000), ("24h", 86_400), ("30m", 1800), ("45s", 45), ("1h30m", 5400)],
)
def test_times(text: str, seconds: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began = datetime.now(UTC).replace(microsecond=0)

    assert main(["kubeconfig", "--user", "a", "--data-dir", str(folder), "--expires", text]) == 0

    made = certificate(yaml.safe_load(capsys.readouterr().out))
    life = (made.not_valid_after_utc - began).total_seconds()
    assert seconds <= life < seconds + 30


@pytest.fixture(scope="module")
def up() -> Iterator[Process]:
    """Run `sully up`."""
    with process("--store", "memory") as running:
        yield running


# groups → code for a list of namespaces
@pytest.mark.e2e
@pytest.mark.parametrize(("groups", "code"), [(["system:masters"], 200), (["dev"], 403), ([], 403)])
def test_the_running_server_lets_them_in(
    groups: list[str], code: int, up: Process, tmp_path: Path
) -> None:
    target = tmp_path / "user.kubeconfig"
    flags = [part for group in groups for part in ("--group", group)]
    command = ["kubeconfig", "--user", "alice", *flags, "--data-dir", str(up.data_dir)]

    assert main([*command, "-o", str(target)]) == 0

    assert Raw.admin(target, tmp_path).request("GET", "/api/v1/namespaces").code == code
