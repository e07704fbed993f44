"""`sully doctor` on files, and on a server that is not Sully's."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import manifests
from client.foreign import serving
from servers import answering, recorded, with_kinds
from storekeys import pod
from sully.cli.main import main
from sully.domain.capabilities.offers import OWN_KINDS
from sully.server.net.tls import Authority
from sully.store.base import Put
from sully.store.directory import DATABASE_FILE, DataDirectory
from sully.store.sqlite.store import SqliteStore
from sully.testing.forkserver import run

Obj = dict[str, Any]


async def data_directory(folder: Path) -> Path:
    async with await SqliteStore.open(folder) as store:
        await store.commit([Put(pod("a"), b"1")])
    Authority.open(folder, datetime.now(UTC))
    os.chmod(folder, 0o700)
    return folder


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Obj]]:
    code = main(["doctor", "-o", "json", *arguments])
    return code, {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


async def test_good_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await data_directory(tmp_path)

    code, checks = checked(capsys, "--data-dir", str(tmp_path))

    assert code == 0
    assert list(checks) == ["data directory", "free space", "lock", "store", "certificate ca.crt"]
    assert checks["store"] == {
        "name": "store",
        "state": "ok",
        "message": "1 object at revision 2",
    }


async def test_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await data_directory(tmp_path)
    (tmp_path / DATABASE_FILE).write_bytes(b"something else" * 100)
    (tmp_path / "server.crt").write_text("nothing")
    os.chmod(tmp_path, 0o755)

    assert main(["doctor", "--data-dir", str(tmp_path)]) == 1

    out = capsys.readouterr().out
    assert f"failure  data directory: {tmp_path} has mode 0755: other users" in out
    assert f"         -> chmod 700 {tmp_path}\n" in out
    assert "failure  store: " in out
    assert "failure  certificate server.crt: not a PEM certificate\n" in out


async def test_files_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = DataDirectory(await data_directory(tmp_path))

    _, checks = checked(capsys, "--data-dir", str(tmp_path))
    directory.release()

    assert "not checked while a server uses the directory" in checks["store"]["message"]


def test_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o700)

    code, checks = checked(capsys, "--data-dir", str(tmp_path))

    assert code == 0
    assert "there is no local store" in checks["store"]["message"]


def test_no_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--data-dir", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/none: no such directory")


# -- a server that is not Sully's -----------------------------------------------------------------

DENIED = ("evictionrecords", "taintrecords")
_CONTROLLERS = {"containers": [{"args": ["controllers", "--only=history,expiry"]}]}
DEPLOYMENT = manifests.body(
    "Deployment",
    "sully-controllers",
    {"template": manifests.pod_template({}, _CONTROLLERS)},
    namespace="sully-system",
)
NODES = [manifests.node("node-1")]
SLICE = manifests.slice_("a", "node-2")


def listed(kind: str, *items: Obj) -> Obj:
    return {"kind": f"{kind}List", "metadata": {"resourceVersion": "1"}, "items": list(items)}


SERVER = with_kinds(recorded(), "sully.dev", "v1alpha1", *OWN_KINDS) | {
    "/apis/apps/v1/deployments": listed("Deployment", DEPLOYMENT),
    "/api/v1/nodes": listed("Node", *NODES),
    "/apis/resource.k8s.io/v1/resourceslices": listed("ResourceSlice", SLICE),
}
FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not for you"}


async def doctor(folder: Path, reported: Mapping[str, Any], *forbidden: str) -> tuple[int, str]:
    """Run the command against a server that forbids some paths."""
    known = answering(reported)

    async def answer(request: web.Request) -> web.StreamResponse:
        if any(path in request.path for path in forbidden):
            return web.json_response(FORBIDDEN, status=403)
        if request.path == "/readyz":
            return web.Response(text="[+]ping ok\n[+]etcd ok\nreadyz check passed\n")
        if request.path.endswith("subjectaccessreviews"):
            asked = (await request.json())["spec"]["resourceAttributes"]
            return web.json_response({"status": {"allowed": asked["resource"] not in DENIED}})
        return await known(request)

    async with serving(answer) as url:
        config = folder / "kubeconfig"
        config.write_text(
            f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n"
            "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
        )
        done = await asyncio.to_thread(run, "doctor", "--kubeconfig", str(config))
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow
async def test_kubernetes(tmp_path: Path) -> None:
    code, out = await doctor(tmp_path, SERVER)

    assert code == 1
    assert "ok       server health: 2 checks of the server passed\n" in out
    assert "  clock: the server sends no time" not in out
    assert "ok       device API: resource.k8s.io/v1, rules v1\n" in out
    assert "failure  driver gpu.example.com: has slices of nodes that do not exist: node-2\n" in out
    assert "ok       pools: 1 pool, all complete\n" in out
    assert "ok       kinds: all kinds of Sully are installed\n" in out
    assert "warning  lease sully-system/sully-controllers: does not exist" in out
    assert "ok       rights of leader election: all rights are granted\n" in out
    assert "ok       rights of expiry: all rights are granted\n" in out
    assert "failure  rights of history: not granted: " in out


@pytest.mark.slow
async def test_what_is_forbidden_is_a_warning(tmp_path: Path) -> None:
    forbidden = ("resourceslices", "leases", "subjectaccessreviews", "readyz", "clusterroles")
    code, out = await doctor(tmp_path, SERVER, *forbidden)

    assert code == 0
    for check in ("server health", "drivers", "lease sully-system/sully-controllers", "rights"):
        assert f"warning  {check}: not checked: not for you\n" in out


@pytest.mark.slow
async def test_nothing_is_installed(tmp_path: Path) -> None:
    code, out = await doctor(tmp_path, recorded(), "deployments", "resourceslices", "nodes")

    assert code == 0
    assert "warning  kinds: not installed: ResourceSlicePatch, " in out
    assert "warning  controllers: not installed, or not readable\n" in out
    assert out.count("-> run 'sully install --apply --image IMAGE'\n") == 2
