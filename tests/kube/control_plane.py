"""A real Kubernetes control plane for tests, from the programs in KUBEBUILDER_ASSETS.

That folder has kube-apiserver, etcd and kubectl, as for envtest of controller-runtime, and also
kube-scheduler and kube-controller-manager where tests need them. Programs of 1.36 start with the
flags that DeviceTaintRules need there. There is no kubelet: run `sully simulate-nodes`. Everything
listens on 127.0.0.1 and is deleted at the end.

with control_plane(assets) as there:
    there.sully("devices")
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kube.process import Foreign
from sully.app import ADMIN
from sully.client.kubeconfig.writing import Login, kubeconfig, write_kubeconfig
from sully.runtime.clock import SystemClock
from sully.server.authentication.groups import MASTERS
from sully.server.net.issuing import ServerCertificate
from sully.server.net.tls import Authority

NEEDED = ("etcd", "kube-apiserver")
CONTROLLERS = ("kube-scheduler", "kube-controller-manager")
VARIABLE = "KUBEBUILDER_ASSETS"
WITH_RULES = ("--feature-gates=DRADeviceTaintRules=true",)
RULES_OF_1_36 = {
    "kube-apiserver": (*WITH_RULES, "--runtime-config=resource.k8s.io/v1beta2=true"),
    **dict.fromkeys(CONTROLLERS, WITH_RULES),
}
"""What enables DeviceTaintRules in 1.36, by program."""
_LOG_LINES = 5
_INTERVAL = 0.1
"""Seconds between two questions whether something is so."""


def missing(names: Sequence[str] = (*NEEDED, *CONTROLLERS)) -> str:
    """Return why there can be no control plane with these programs; empty if there can be."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        return f"{VARIABLE} is not set: it names a folder with {', '.join(names)}"
    lacking = [name for name in names if not (Path(folder) / name).is_file()]
    return f"{', '.join(lacking)} not found in {VARIABLE} ({folder})" if lacking else ""


@contextmanager
def control_plane(
    assets: Path, *, flags: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Foreign]:
    """Run a control plane until the block ends; `flags` are further ones, by program."""
    further = flags or {}
    default = RULES_OF_1_36 if minor_version(assets) == 36 else {}
    with tempfile.TemporaryDirectory(prefix="sully-kube-") as name, ExitStack() as running:
        folder = Path(name)
        url = _write_access(folder)

        def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
            more = (*default.get(program, ()), *further.get(program, ()))
            command = [str(assets / program), *arguments, *more]
            return running.enter_context(_process(command, folder / f"{program}.log"))

        store = _address(free_port())
        etcd = start("etcd", *_etcd(folder, store))
        _until_answers(etcd, f"{store}/health", folder / "etcd.log")
        server = start("kube-apiserver", *_apiserver(folder, store, url))
        trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        _until_answers(server, f"{url}/readyz", folder / "kube-apiserver.log", trust)

        def forget_versions() -> None:
            nonlocal server
            _compact(store)
            # Its watch caches start empty, at the current version.
            server.kill()
            server.wait()
            server = start("kube-apiserver", *_apiserver(folder, store, url))
            _until_answers(server, f"{url}/readyz", folder / "kube-apiserver.log", trust)

        client = [f"--kubeconfig={folder / 'kubeconfig'}", "--leader-elect=false"]
        client += ["--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"]
        if not missing(CONTROLLERS):
            start("kube-scheduler", *client)
            start("kube-controller-manager", *client, *_manager(folder))
        yield Foreign(folder, url, forget_versions)


def minor_version(assets: Path) -> int:
    """Return the minor version of the API server in a folder."""
    command = [str(assets / "kube-apiserver"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split(".")[1])


def _compact(store: str) -> None:
    """Compact the history of etcd up to now."""
    everything = {"key": "AA==", "range_end": "AA==", "count_only": True}
    revision = _ask(f"{store}/v3/kv/range", everything)["header"]["revision"]
    _ask(f"{store}/v3/kv/compaction", {"revision": revision, "physical": True})


def _ask(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def _write_access(folder: Path) -> str:
    """Write certificates and the kubeconfig of the administrator; return the server's address."""
    clock, url = SystemClock(), f"https://127.0.0.1:{free_port()}"
    authority = Authority.open(folder, clock.now())
    names = ("127.0.0.1", "localhost", "kubernetes.default.svc")
    ServerCertificate(folder, authority, names).ensure(clock.now())
    pair = authority.client(ADMIN.name, [MASTERS], clock.now())
    login = Login(
        server=url,
        ca=authority.pair.certificate,
        user=ADMIN.name,
        certificate=pair.certificate,
        key=pair.key,
    )
    write_kubeconfig(folder / "kubeconfig", kubeconfig(login))
    return url


def _etcd(folder: Path, store: str) -> list[str]:
    peers = _address(free_port())
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}",
        f"--listen-peer-urls={peers}",
        # Nothing has to survive the end of the tests.
        "--unsafe-no-fsync",
    ]


def _apiserver(folder: Path, store: str, url: str) -> list[str]:
    key = folder / "server.key"
    return [
        f"--etcd-servers={store}",
        "--bind-address=127.0.0.1",
        f"--secure-port={url.rpartition(':')[2]}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={key}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--cert-dir={folder}",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'server.crt'}",
        f"--service-account-signing-key-file={key}",
        # The address of a cluster's Service may not be a loopback address.
        "--endpoint-reconciler-type=none",
    ]


def _manager(folder: Path) -> list[str]:
    return [
        f"--service-account-private-key-file={folder / 'server.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        # On a busy machine the leases of simulated nodes may be renewed late.
        "--node-monitor-grace-period=5m",
    ]


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdout=output, stderr=output
        )
        try:
            yield child
        finally:
            child.kill()
            child.wait()


def _until_answers(
    child: subprocess.Popen[bytes], url: str, log: Path, trust: ssl.SSLContext | None = None
) -> None:
    """Wait until a server is ready; raise with its last log lines if it ends."""

    def ready() -> bool:
        if child.poll() is not None:
            lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
            raise RuntimeError("\n".join([f"{log.stem} ended before it was ready:", *lines]))
        try:
            with urllib.request.urlopen(url, context=trust, timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    poll(ready)


def poll(holds: Callable[[], bool]) -> None:
    """Wait for something that nothing announces."""
    while not holds():
        time.sleep(_INTERVAL)


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
