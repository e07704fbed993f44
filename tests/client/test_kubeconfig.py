"""Kubeconfig: merged files, and what is reported when they are wrong."""

from __future__ import annotations

import stat
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.credentials import NO_CREDENTIAL, AccessError, Credential
from sully.client.kubeconfig.kubeconfig import find_access
from sully.client.kubeconfig.writing import Login, kubeconfig, write_kubeconfig
from sully.testing.clock import FakeClock

CA = b"-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----\n"


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def config(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "main",
    current: str | None = None,
) -> dict[str, Any]:
    """Build a kubeconfig with one of everything."""
    return {
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{name}:6443"} | (cluster or {})}
        ],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | (context or {})}],
        "current-context": name if current is None else current,
    }


def write(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (folder / name).write_text(text)


async def shown(access: Access) -> Credential:
    return await access.credentials.current()


@dataclass(frozen=True)
class Case:
    config: dict[str, Any]
    want: dict[str, Any] = field(default_factory=dict)
    """Attributes of the access."""
    credential: Credential = NO_CREDENTIAL
    authorization: str = ""
    context: str = ""


CASES = {
    "server and default namespace": Case(
        config(), {"server": "https://main:6443", "namespace": "default", "ca": b""}
    ),
    "namespace of the context": Case(config(context={"namespace": "team"}), {"namespace": "team"}),
    "a slash at the end of the server": Case(
        config(cluster={"server": "https://rancher/k8s/clusters/c-1/"}),
        {"server": "https://rancher/k8s/clusters/c-1"},
    ),
    "authority inline": Case(
        config(cluster={"certificate-authority-data": encoded(CA)}), {"ca": CA}
    ),
    "authority in a file beside": Case(
        config(cluster={"certificate-authority": "ca.crt"}), {"ca": CA}
    ),
    "inline wins over file": Case(
        config(
            cluster={
                "certificate-authority": "nowhere",
                "certificate-authority-data": encoded(CA),
            }
        ),
        {"ca": CA},
    ),
    "no verification": Case(config(cluster={"insecure-skip-tls-verify": True}), {"insecure": True}),
    "another name, a proxy, no compression": Case(
        config(
            cluster={
                "tls-server-name": "api.internal",
                "proxy-url": "http://proxy:3128",
                "disable-compression": True,
            }
        ),
        {
            "tls_server_name": "api.internal",
            "proxy_url": "http://proxy:3128",
            "compression": False,
        },
    ),
    "token": Case(
        config(user={"token": "secret"}),
        credential=Credential("secret"),
        authorization="Bearer secret",
    ),
    "token file wins over token": Case(
        config(user={"token": "old", "tokenFile": "token"}), credential=Credential("from-file")
    ),
    "user and password": Case(
        config(user={"username": "ann", "password": "pw"}),
        credential=Credential(username="ann", password="pw"),
        authorization="Basic " + encoded(b"ann:pw"),
    ),
    "client certificate inline": Case(
        config(
            user={"client-certificate-data": encoded(b"crt"), "client-key-data": encoded(b"key")}
        ),
        credential=Credential(certificate=b"crt", key=b"key"),
    ),
    "client certificate in files": Case(
        config(user={"client-certificate": "tls.crt", "client-key": "tls.key"}),
        credential=Credential(certificate=b"crt-file", key=b"key-file"),
    ),
    "certificate in a file, key inline": Case(
        config(user={"client-certificate": "tls.crt", "client-key-data": encoded(b"key")}),
        credential=Credential(certificate=b"crt-file", key=b"key"),
    ),
    "impersonation": Case(
        config(
            user={
                "as": "bob",
                "as-uid": "7",
                "as-groups": ["dev", "ops"],
                "as-user-extra": {"example.com/team": ["a", "b"]},
            }
        ),
        {
            "headers": {
                "Impersonate-User": "bob",
                "Impersonate-Uid": "7",
                "Impersonate-Group": ("dev", "ops"),
                "Impersonate-Extra-example.com%2Fteam": ("a", "b"),
            }
        },
    ),
    "a context by name": Case(config(current="other"), {"namespace": "default"}, context="main"),
    "a context without user": Case(config(context={"user": ""})),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_access(case: Case, tmp_path: Path) -> None:
    write(tmp_path, config=case.config, token="from-file\n", **{"ca.crt": CA.decode()})
    write(tmp_path, **{"tls.crt": "crt-file", "tls.key": "key-file"})

    access = find_access(str(tmp_path / "config"), case.context, env={}, clock=FakeClock())
    credential = await shown(access)

    assert {name: getattr(access, name) for name in case.want} == case.want
    assert credential == case.credential
    if case.authorization:
        assert credential.authorization == case.authorization


@dataclass(frozen=True)
class Bad:
    config: Any
    texts: list[str]
    """Parts of the message; `FILE` is the kubeconfig."""
    context: str = ""


BAD = {
    "no YAML": Bad("a: [", ["FILE: invalid YAML: line 2: did not find expected"]),
    "no mapping": Bad("- a", ["FILE: a kubeconfig is a mapping"]),
    "a day that there is not": Bad("a: 2026-13-45", ["FILE: invalid YAML: month must be"]),
    "clusters that are not a list": Bad({"clusters": 3}, ["FILE: ", "got `int` - at `$.clusters`"]),
    "a user that is not a mapping": Bad(
        {"users": [{"name": "a", "user": "a"}]}, ["FILE: ", "got `str` - at `$.users[0].user`"]
    ),
    "groups that are not a list": Bad(
        config(user={"as": "a", "as-groups": "b"}), ["FILE: ", "at `$.users[0].user.as-groups`"]
    ),
    "a variable without a value": Bad(
        config(user={"exec": {"command": "x", "env": [{"name": "A"}]}}),
        ["FILE: ", "missing required field `value` - at `$.users[0].user.exec.env[0]`"],
    ),
    "a port that there is not": Bad(
        config(cluster={"server": "https://a:99999"}), ["FILE: cluster 'main' needs a server"]
    ),
    "a proxy's port that there is not": Bad(
        config(cluster={"proxy-url": "http://a:99999"}),
        ["FILE: cluster 'main': proxy-url is http://a:99999; write it as http://"],
    ),
    "no current context": Bad(
        config(current=""), ["FILE: there is no current-context", "main", "--context"]
    ),
    "unknown context": Bad(
        config(), ['FILE: context "dev" not found (there are: main)'], context="dev"
    ),
    "unknown cluster": Bad(
        config(context={"cluster": "lost"}),
        ["context 'main' in FILE", 'cluster "lost" not found', "main"],
    ),
    "unknown user": Bad(
        config(context={"user": "lost"}), ["context 'main' in FILE", 'user "lost" not found']
    ),
    "context without cluster": Bad(config(context={"cluster": ""}), ["no cluster is named"]),
    "nameless entry": Bad({"users": [{"user": {}}]}, ["FILE: every item of users needs a name"]),
    "no server": Bad(config(cluster={"server": ""}), ["FILE: cluster 'main' needs a server"]),
    "odd server": Bad(config(cluster={"server": "main:6443"}), ["https://127.0.0.1:6443"]),
    "authority is not base64": Bad(
        config(cluster={"certificate-authority-data": "!"}),
        ["FILE: cluster 'main': certificate-authority-data is not base64"],
    ),
    "authority is not there": Bad(
        config(cluster={"certificate-authority": "gone.crt"}),
        ["FILE: cluster 'main': cannot read certificate-authority", "gone.crt", "No such file"],
    ),
    "authority and no verification": Bad(
        config(
            cluster={"certificate-authority-data": encoded(CA), "insecure-skip-tls-verify": True}
        ),
        ["remove one"],
    ),
    "socks proxy": Bad(
        config(cluster={"proxy-url": "socks5://x"}),
        ["proxy-url is socks5://x", "only http and https"],
    ),
    "certificate without key": Bad(
        config(user={"client-certificate": "x"}), ["user 'main': client-key", "is missing"]
    ),
    "key without certificate": Bad(
        config(user={"client-key-data": "eA=="}), ["client-certificate", "is missing"]
    ),
    "auth provider": Bad(
        config(user={"auth-provider": {"name": "oidc"}}), ["auth-provider", "use an exec plugin"]
    ),
    "exec without command": Bad(config(user={"exec": {"args": []}}), ["exec.command is missing"]),
    "exec of an old version": Bad(
        config(
            user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}
        ),
        ["v1alpha1", "client.authentication.k8s.io/v1,"],
    ),
    "exec v1 without mode": Bad(
        config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}),
        ["exec.interactiveMode is ''", "Never, IfAvailable or Always"],
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_complaint(case: Bad, tmp_path: Path) -> None:
    write(tmp_path, config=case.config)
    file = str(tmp_path / "config")

    with pytest.raises(AccessError) as caught:
        find_access(file, case.context, env={})

    for part in case.texts:
        assert part.replace("FILE", file) in str(caught.value)


def test_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="nope: no such file or directory"):
        find_access(str(tmp_path / "nope"), env={})


def test_nothing_configured(tmp_path: Path) -> None:
    with pytest.raises(AccessError) as caught:
        find_access(env={"HOME": str(tmp_path)})

    assert f"{tmp_path}/.kube/config" in str(caught.value)
    assert "sully up" in str(caught.value)


class TestMerge:
    """Several files in KUBECONFIG."""

    def test_first_file_wins_per_name(self, tmp_path: Path) -> None:
        write(tmp_path, one=config(user={"token": "one"}), two=config(user={"token": "two"}))
        access = self._find(tmp_path, "one", "two")

        assert access.server == "https://main:6443"

    async def test_entries_of_all_files_are_known(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            one={"current-context": "far"},
            two=config(name="near"),
            three=config(name="far", user={"token": "t"}),
        )
        access = self._find(tmp_path, "one", "missing", "", "two", "three")

        assert access.server == "https://far:6443"
        assert await shown(access) == Credential("t")

    async def test_entries_are_not_mixed(self, tmp_path: Path) -> None:
        two = config(user={"token": "two"}, cluster={"tls-server-name": "x"})
        write(tmp_path, one=config(), two=two)
        access = self._find(tmp_path, "one", "two")

        assert access.tls_server_name == ""
        assert await shown(access) == Credential()

    def test_paths_are_relative_to_their_file(self, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        write(tmp_path / "deep", two=config(cluster={"certificate-authority": "../ca.crt"}))
        write(tmp_path, one={}, **{"ca.crt": "mine"})
        access = self._find(tmp_path, "one", "deep/two")

        assert access.ca == b"mine"

    @pytest.mark.parametrize("name", ["config", "./config", "folder/../config"])
    async def test_paths_of_a_file_in_the_working_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        user = {"tokenFile": "token", "client-certificate": "crt", "client-key": "./key"}
        content = config(user=user, cluster={"certificate-authority": "ca.crt"})
        write(tmp_path, config=content, token="t", crt="c", key="k", **{"ca.crt": "mine"})
        (tmp_path / "folder").mkdir()
        monkeypatch.chdir(tmp_path)

        access = find_access(name, env={}, clock=FakeClock())
        # A path is resolved when the kubeconfig is read.
        monkeypatch.chdir(tmp_path / "folder")

        assert access.ca == b"mine"
        assert await shown(access) == Credential("t", certificate=b"c", key=b"k")

    def _find(self, folder: Path, *names: str) -> Access:
        paths = ":".join(str(folder / name) if name else "" for name in names)
        return find_access(env={"KUBECONFIG": paths}, clock=FakeClock())


def test_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", config=config(name="home"))

    assert find_access(env={"HOME": str(tmp_path)}).server == "https://home:6443"


async def test_written_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "data" / "kubeconfig"
    login = Login(
        server="https://127.0.0.1:8443", ca=CA, certificate=b"crt", key=b"key", namespace="team"
    )
    write_kubeconfig(path, kubeconfig(login))
    write_kubeconfig(path, kubeconfig(login))

    access = find_access(str(path), env={})
    assert (access.server, access.ca, access.namespace) == (login.server, CA, "team")
    assert await shown(access) == Credential(certificate=b"crt", key=b"key")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["kubeconfig"]


def test_secrets_are_not_printed() -> None:
    login = Login(server="https://x", key=b"very-secret", token="hush")
    access = Access(server="https://x")

    assert "very-secret" not in repr(login)
    assert "hush" not in repr([login, Credential("hush", password="hush"), access])
