"""Credentials that change while we run: files, service accounts, exec plugins."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sully.client.kubeconfig.access import in_cluster
from sully.client.kubeconfig.credentials import (
    AccessError,
    Credential,
    Credentials,
    FileCredentials,
)
from sully.client.kubeconfig.kubeconfig import find_access
from sully.machinery.formats.timestamps import format_time
from sully.testing.clock import NOON, FakeClock

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class TestFiles:
    """Files that another user renews."""

    async def test_read_again_after_a_minute(self, tmp_path: Path) -> None:
        clock, file = FakeClock(), tmp_path / "token"
        file.write_text("one\n")
        credentials = FileCredentials(token_file=file, clock=clock)
        assert await credentials.current() == Credential("one")

        file.write_text("two\n")
        clock.advance(59)
        assert await credentials.current() == Credential("one")
        clock.advance(1)
        assert await credentials.current() == Credential("two")

    async def test_read_again_when_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("one")
        credentials = FileCredentials(token_file=file, clock=FakeClock())
        first = await credentials.current()

        assert not credentials.reject(first)
        file.write_text("two")
        assert credentials.reject(first)
        assert await credentials.current() == Credential("two")

    async def test_file_missing_for_a_moment(self, tmp_path: Path) -> None:
        clock, file = FakeClock(), tmp_path / "token"
        file.write_text("one")
        credentials = FileCredentials(token_file=file, clock=clock)
        await credentials.current()

        file.unlink()
        clock.advance(60)
        assert await credentials.current() == Credential("one")

    @pytest.mark.parametrize("content", [None, "", " \n"])
    async def test_no_token(self, content: str | None, tmp_path: Path) -> None:
        file = tmp_path / "token"
        if content is not None:
            file.write_text(content)
        with pytest.raises(AccessError, match=str(file)):
            await FileCredentials(token_file=file, clock=FakeClock()).current()


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


class TestInCluster:
    """The service account of a pod."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name, text in {"token": "t", "ca.crt": "ca", "namespace": "team\n"}.items():
            (tmp_path / name).write_text(text)
        return tmp_path

    async def test_found(self, folder: Path) -> None:
        access = in_cluster(POD, clock=FakeClock(), folder=folder)

        assert access is not None
        assert (access.server, access.ca) == ("https://10.0.0.1:6443", b"ca")
        assert access.namespace == "team"
        assert await access.credentials.current() == Credential("t")

    def test_ipv6(self, folder: Path) -> None:
        access = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, folder=folder)

        assert access is not None
        assert access.server == "https://[fd00::1]:443"

    def test_outside(self, folder: Path, tmp_path: Path) -> None:
        assert in_cluster({}, folder=folder) is None
        assert in_cluster(POD, folder=tmp_path / "none") is None

    def test_no_authority(self, folder: Path) -> None:
        (folder / "ca.crt").unlink()
        with pytest.raises(AccessError, match=r"ca\.crt"):
            in_cluster(POD, folder=folder)


PLUGIN = """#!{python}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
runs = here / "runs"
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
(here / "seen").write_text(json.dumps([info, sys.argv[1:], os.environ.get("REGION")]))
sys.stderr.write((here / "complaint").read_text() if (here / "complaint").exists() else "")
print((here / "answer").read_text())
sys.exit(int((here / "code").read_text()) if (here / "code").exists() else 0)
"""


@dataclass
class Plugin:
    """A real program in a folder, and a kubeconfig that names it."""

    folder: Path
    clock: FakeClock

    def answer(self, version: str = V1, **status: Any) -> None:
        printed = {"kind": "ExecCredential", "apiVersion": version, "status": status}
        (self.folder / "answer").write_text(json.dumps(printed))

    def credentials(self, **block: Any) -> Credentials:
        execute = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"} | block
        cluster = {"server": "https://x:6443", "tls-server-name": "y"}
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "z"}}
        content = {
            "clusters": [{"name": "c", "cluster": cluster | {"extensions": [extension]}}],
            "users": [{"name": "u", "user": {"exec": execute}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        file = self.folder / "config"
        file.write_text(yaml.safe_dump(content))
        return find_access(str(file), env={}, clock=self.clock).credentials

    @property
    def runs(self) -> int:
        return len((self.folder / "runs").read_text())

    @property
    def seen(self) -> Any:
        return json.loads((self.folder / "seen").read_text())


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    program = tmp_path / "plugin"
    program.write_text(PLUGIN.format(python=sys.executable))
    program.chmod(0o755)
    made = Plugin(tmp_path, FakeClock())
    made.answer(token="secret")
    return made


BAD = {
    "no JSON": ("hello", "printed no ExecCredential"),
    "no object": ("[]", "printed no ExecCredential"),
    "other version": (
        json.dumps({"kind": "ExecCredential", "apiVersion": V1BETA1}),
        f"printed no ExecCredential of {V1}",
    ),
    "nothing in it": (
        json.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {}}),
        "gave neither a token nor a client certificate",
    ),
    "certificate without key": (
        json.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {"clientKeyData": "k"}}),
        "gave only one of",
    ),
    "bad time": (
        json.dumps(
            {
                "kind": "ExecCredential",
                "apiVersion": V1,
                "status": {"token": "t", "expirationTimestamp": "soon"},
            }
        ),
        "gave a bad expirationTimestamp",
    ),
}


class TestExec:
    """Programs that hand out credentials."""

    async def test_what_the_plugin_gets(self, plugin: Plugin) -> None:
        env = [{"name": "REGION", "value": "eu"}]
        credentials = plugin.credentials(args=["get", "token"], env=env)

        assert await credentials.current() == Credential("secret")
        info, arguments, region = plugin.seen
        assert (arguments, region) == (["get", "token"], "eu")
        assert info == {
            "kind": "ExecCredential",
            "apiVersion": V1,
            "spec": {"interactive": False},
        }

    async def test_plugin_beside_a_kubeconfig_without_a_directory(
        self, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plugin.credentials()  # writes the file
        monkeypatch.chdir(plugin.folder)

        access = find_access("config", env={}, clock=plugin.clock)

        assert await access.credentials.current() == Credential("secret")

    async def test_cluster_info(self, plugin: Plugin) -> None:
        await plugin.credentials(provideClusterInfo=True).current()

        assert plugin.seen[0]["spec"]["cluster"] == {
            "server": "https://x:6443",
            "tls-server-name": "y",
            "config": {"audience": "z"},
        }

    async def test_beta_version(self, plugin: Plugin) -> None:
        plugin.answer(V1BETA1, token="beta")
        credentials = plugin.credentials(apiVersion=V1BETA1, interactiveMode=None)

        assert await credentials.current() == Credential("beta")

    async def test_certificate(self, plugin: Plugin) -> None:
        plugin.answer(clientCertificateData="crt", clientKeyData="key")

        assert await plugin.credentials().current() == Credential(certificate=b"crt", key=b"key")

    async def test_kept_until_it_expires(self, plugin: Plugin) -> None:
        plugin.answer(token="one", expirationTimestamp=format_time(NOON + timedelta(hours=1)))
        credentials = plugin.credentials()
        await asyncio.gather(credentials.current(), credentials.current())
        plugin.clock.advance(3599)
        assert await credentials.current() == Credential("one")
        assert plugin.runs == 1

        plugin.answer(token="two")
        plugin.clock.advance(1)
        assert await credentials.current() == Credential("two")
        assert plugin.runs == 2

    async def test_run_again_when_refused(self, plugin: Plugin) -> None:
        credentials = plugin.credentials()
        refused = await credentials.current()

        plugin.answer(token="two")
        assert credentials.reject(refused)
        assert await credentials.current() == Credential("two")
        # A second complaint about the first token must not throw away the new one.
        assert credentials.reject(refused)
        await credentials.current()
        assert plugin.runs == 2

    @pytest.mark.parametrize(("printed", "complaint"), BAD.values(), ids=BAD.keys())
    async def test_bad_answer(self, printed: str, complaint: str, plugin: Plugin) -> None:
        (plugin.folder / "answer").write_text(printed)
        with pytest.raises(AccessError, match=complaint) as caught:
            await plugin.credentials().current()

        assert f"{plugin.folder}/config: user 'u'" in str(caught.value)

    async def test_failure_shows_what_it_reported(self, plugin: Plugin) -> None:
        (plugin.folder / "code").write_text("3")
        (plugin.folder / "complaint").write_text("log in first")
        with pytest.raises(AccessError, match="failed with exit code 3: log in first"):
            await plugin.credentials().current()

    async def test_not_installed(self, plugin: Plugin) -> None:
        credentials = plugin.credentials(command="./nowhere", installHint="apt install nowhere")
        with pytest.raises(AccessError, match="No such file or directory\napt install nowhere"):
            await credentials.current()

    async def test_found_in_path(self, plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", f"{plugin.folder}{os.pathsep}{os.environ['PATH']}")

        assert await plugin.credentials(command="plugin").current() == Credential("secret")

    async def test_needs_a_terminal(self, plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(AccessError, match="there is no terminal"):
            await plugin.credentials(interactiveMode="Always").current()
