"""Every kind of credentials in a kubeconfig, for commands and controllers, with a real server."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from e2e.proxies import Proxy, proxy_to
from e2e.raw import Raw
from e2e.watching import until
from sully.client.http.transport import HttpTransport
from sully.client.kubeconfig.access import in_cluster
from sully.client.transport import Kind
from sully.testing.cluster import Process, process
from sully.testing.forkserver import run
from sully.testing.remote import controllers

pytestmark = pytest.mark.e2e

Obj = dict[str, Any]
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
FAR = "https://kubernetes.default.svc:6443"
"""A name in the server's certificate that nobody here can look up."""
PLUGIN = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
(here / "info").write_text(json.dumps(info))
if (here / "broken").exists():
    sys.exit("log in first")
status = json.loads((here / "status").read_text())
print(json.dumps({{"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}}))
"""


@dataclass
class Ground:
    """A running server, and what its admin has."""

    up: Process
    folder: Path
    admin: Raw
    proxy: Proxy

    @property
    def config(self) -> Obj:
        document: Obj = yaml.safe_load(self.up.kubeconfig.read_text())
        return deepcopy(document)

    def token(self, name: str) -> str:
        """Make an account that may do everything, and return a token of it."""
        self.admin.request("POST", ACCOUNTS, {"metadata": {"name": name}})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        body = {
            "metadata": {"name": name},
            "roleRef": {**role, "name": "cluster-admin"},
            "subjects": [subject],
        }
        self.admin.request("POST", BINDINGS, body)
        asked: Obj = {"spec": {"expirationSeconds": 3600}}
        answer = self.admin.request("POST", f"{ACCOUNTS}/{name}/token", asked)
        assert answer.code == 201, answer.body
        return str(answer.json()["status"]["token"])

    def plugin(self, version: str, status: Obj, **more: Any) -> Obj:
        """Write a plugin that gives a credential; return how a kubeconfig names it."""
        (self.folder / "plugin").write_text(PLUGIN)
        (self.folder / "plugin").chmod(0o755)
        (self.folder / "status").write_text(json.dumps(status))
        api = f"client.authentication.k8s.io/{version}"
        return {"exec": {"apiVersion": api, "command": "./plugin", **more}}

    def write(self, config: Obj) -> Path:
        path = self.folder / "config"
        path.write_text(yaml.safe_dump(config))
        return path


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with process("--disable-controllers", "--store", "memory") as up:
        yield up


@pytest.fixture
def ground(server: Process, tmp_path: Path) -> Iterator[Ground]:
    port = urlsplit(server.url).port
    assert port is not None
    with proxy_to(("127.0.0.1", port)) as proxy:
        yield Ground(server, tmp_path, Raw.admin(server.kubeconfig, tmp_path), proxy)


def cluster(config: Obj) -> Any:
    return config["clusters"][0]["cluster"]


def as_user(config: Obj, user: Obj) -> Obj:
    config["users"][0]["user"] = user
    return config


def files(ground: Ground) -> Obj:
    config = ground.config
    user = {}
    for name in ("client-certificate", "client-key"):
        data = config["users"][0]["user"][f"{name}-data"]
        (ground.folder / name).write_bytes(base64.b64decode(data))
        user[name] = name
    authority = cluster(config).pop("certificate-authority-data")
    (ground.folder / "ca.crt").write_bytes(base64.b64decode(authority))
    cluster(config)["certificate-authority"] = "ca.crt"
    return as_user(config, user)


def token_file(ground: Ground) -> Obj:
    (ground.folder / "token").write_text(ground.token("filed"))
    return as_user(ground.config, {"tokenFile": "token"})


def plugin_with_token(ground: Ground) -> Obj:
    more = {"interactiveMode": "Never", "provideClusterInfo": True}
    return as_user(ground.config, ground.plugin("v1", {"token": ground.token("plugged")}, **more))


def plugin_with_certificate(ground: Ground) -> Obj:
    user = ground.config["users"][0]["user"]
    status = {
        "clientCertificateData": base64.b64decode(user["client-certificate-data"]).decode(),
        "clientKeyData": base64.b64decode(user["client-key-data"]).decode(),
        "expirationTimestamp": "2020-01-01T00:00:00Z",
    }
    return as_user(ground.config, ground.plugin("v1beta1", status))


def server_name(ground: Ground) -> Obj:
    config = ground.config
    port = urlsplit(ground.up.url).port
    cluster(config).update({"server": f"https://localhost:{port}", "tls-server-name": "kubernetes"})
    return config


def through_proxy(ground: Ground) -> Obj:
    config = ground.config
    address = ground.proxy.url.replace("http://", "http://ann:secret@")
    cluster(config).update({"server": FAR, "proxy-url": address})
    return config


def unverified(ground: Ground) -> Obj:
    config = ground.config
    del cluster(config)["certificate-authority-data"]
    cluster(config)["insecure-skip-tls-verify"] = True
    return config


WAYS: dict[str, Callable[[Ground], Obj]] = {
    "a certificate inline": lambda ground: ground.config,
    "a certificate in files": files,
    "a token": lambda ground: as_user(ground.config, {"token": ground.token("bearer")}),
    "a token in a file": token_file,
    "a plugin that gives a token": plugin_with_token,
    "a plugin that gives a certificate": plugin_with_certificate,
    "another name of the server": server_name,
    "a proxy": through_proxy,
    "without verification": unverified,
}


def sully(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return run(*arguments, env={**os.environ, **(env or {})})


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_commands_and_controllers_get_in(way: Callable[[Ground], Obj], ground: Ground) -> None:
    config = ground.write(way(ground))

    done = sully("devices", "-o", "json", "--kubeconfig", str(config))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"devices": []}), done.stderr
    with controllers(config, "--only", "expiry", "--leader-elect=false") as crew:
        crew.wait_for("working since")
        assert crew.stop() == 0


def test_a_proxy_is_asked_for_the_server_and_shown_who_asks(ground: Ground) -> None:
    done = sully("devices", "--kubeconfig", str(ground.write(through_proxy(ground))))

    assert done.returncode == 0, done.stderr
    assert set(ground.proxy.asked) == {"CONNECT kubernetes.default.svc:6443"}
    assert ground.proxy.shown == {"Basic " + base64.b64encode(b"ann:secret").decode()}


def test_the_proxy_of_the_environment(ground: Ground) -> None:
    config = ground.config
    cluster(config)["server"] = FAR
    value = ("devices", "--kubeconfig", str(ground.write(config)))
    env = {"HTTPS_PROXY": ground.proxy.url}

    assert sully(*value, env=env).returncode == 0
    assert ground.proxy.asked
    # Without the proxy there is no such name.
    assert sully(*value, env={**env, "NO_PROXY": ".default.svc"}).returncode == 1


def test_a_plugin_hears_about_the_server(ground: Ground) -> None:
    config = plugin_with_token(ground)
    cluster(config)["tls-server-name"] = "localhost"
    done = sully("devices", "--kubeconfig", str(ground.write(config)))

    document = json.loads((ground.folder / "info").read_text())
    assert done.returncode == 0, done.stderr
    assert document["spec"]["interactive"] is False
    assert document["spec"]["cluster"]["server"] == ground.up.url
    assert document["spec"]["cluster"]["tls-server-name"] == "localhost"
    authority = cluster(ground.config)["certificate-authority-data"]
    assert document["spec"]["cluster"]["certificate-authority-data"] == authority


def fails(**cluster_or_user: Any) -> Callable[[Ground], Obj]:
    def make(ground: Ground) -> Obj:
        config = ground.config
        config["clusters"][0]["cluster"] |= cluster_or_user.get("cluster", {})
        config["users"][0]["user"] |= cluster_or_user.get("user", {})
        return config

    return make


def broken_plugin(ground: Ground) -> Obj:
    (ground.folder / "broken").touch()
    return as_user(ground.config, ground.plugin("v1", {}, interactiveMode="Never"))


@dataclass(frozen=True)
class Refused:
    way: Callable[[Ground], Obj]
    say: str
    env: dict[str, str] = field(default_factory=dict)


REFUSED = {
    "a plugin that fails": Refused(broken_plugin, "plugin failed with exit code 1: log in first"),
    "a plugin that must ask": Refused(
        lambda ground: as_user(
            ground.config, ground.plugin("v1", {"token": "t"}, interactiveMode="Always")
        ),
        "must ask a person, and there is no terminal",
    ),
    "an auth provider": Refused(
        fails(user={"auth-provider": {"name": "oidc"}}), "auth-provider is not supported"
    ),
    "a socks proxy": Refused(
        fails(cluster={"proxy-url": "socks5://127.0.0.1:1"}), "only http and https work"
    ),
    "a socks proxy of the environment": Refused(
        fails(cluster={"server": FAR}),
        "HTTPS_PROXY is socks5://127.0.0.1:1; only http and https work",
        {"HTTPS_PROXY": "socks5://127.0.0.1:1"},
    ),
    "a name that is not the server's": Refused(
        fails(cluster={"tls-server-name": "elsewhere.example"}), "certificate"
    ),
    "a token that is none": Refused(
        lambda ground: as_user(ground.config, {"token": "nonsense"}), "Unauthorized"
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_work_is_reported(case: Refused, ground: Ground) -> None:
    config = ground.write(case.way(ground))
    done = sully("devices", "--kubeconfig", str(config), env=case.env)

    assert (done.returncode, done.stdout) == (1, "")
    assert case.say in done.stderr
    assert "Traceback" not in done.stderr


def test_several_files_and_a_context_by_name(ground: Ground) -> None:
    whole = ground.config
    pieces: dict[str, Obj] = {
        "one": {"clusters": whole["clusters"]},
        "two": {"users": whole["users"], "contexts": whole["contexts"]},
    }
    for name, content in pieces.items():
        (ground.folder / name).write_text(yaml.safe_dump(content))
    env = {"KUBECONFIG": f"{ground.folder / 'one'}{os.pathsep}{ground.folder / 'two'}"}

    named = sully("devices", "--context", whole["current-context"], env=env)
    unnamed = sully("devices", env=env)
    assert named.returncode == 0, named.stderr
    assert "there is no current-context" in unnamed.stderr


def test_somebody_else(ground: Ground) -> None:
    config = str(ground.up.kubeconfig)
    refused = sully("devices", "--kubeconfig", config, "--as", "bob", "--as-group", "dev")
    granted = sully("devices", "--kubeconfig", config, "--as", "bob", "--as-group=system:masters")
    nobody = sully("devices", "--kubeconfig", config, "--as-group", "dev")

    assert refused.returncode == 1
    assert '"bob" cannot list' in refused.stderr
    assert granted.returncode == 0, granted.stderr
    assert "--as-group requires --as" in nobody.stderr


def test_a_token_that_is_replaced_while_controllers_run(ground: Ground) -> None:
    config = ground.write(token_file(ground))
    with controllers(config, "--only", "expiry", "--leader-elect=false") as crew:
        crew.wait_for("working since")
        # A new account of the name: the server takes no token of the old one any more.
        assert ground.admin.request("DELETE", f"{ACCOUNTS}/filed").code == 200
        (ground.folder / "token").write_text(ground.token("filed"))
        ended = {"sully.dev/expires-at": "2020-01-01T00:00:00Z"}
        taint = {"key": "example.com/hot", "effect": "NoSchedule"}
        rule = {"metadata": {"name": "old", "annotations": ended}, "spec": {"taint": taint}}
        assert ground.admin.request("POST", RULES, rule).code == 201
        until(ground.admin, RULES, lambda rules: "old" not in rules)
        assert crew.stop() == 0


async def test_the_account_of_a_pod(ground: Ground) -> None:
    mounted = ground.folder / "mounted"
    mounted.mkdir()
    data = cluster(ground.config)["certificate-authority-data"]
    (mounted / "ca.crt").write_bytes(base64.b64decode(data))
    (mounted / "namespace").write_text("team")
    (mounted / "token").write_text(ground.token("inside"))
    where = urlsplit(ground.up.url)
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(where.port)}
    access = in_cluster(env, folder=mounted)
    assert access is not None
    nodes: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)

    async with HttpTransport(access) as transport:
        assert (await transport.list(nodes)).items == []
        assert ground.admin.request("DELETE", f"{ACCOUNTS}/inside").code == 200
        (mounted / "token").write_text(ground.token("inside"))
        assert (await transport.list(nodes)).items == []
    assert access.namespace == "team"
