"""What the guide to etcd promises: a password, a device in one claim, a backup that comes back."""

from __future__ import annotations

import json
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from e2e.raw import Raw
from e2e.watching import running, until
from etcds import Etcd
from manifests import claim, config_map, deployment
from sully.testing.cluster import Process, process

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"
IDENTITY = ("ca.crt", "ca.key", "sa.key")
QUICK = (
    *("--leader-elect-lease-duration", "2s", "--leader-elect-renew-deadline", "1500ms"),
    *("--leader-elect-retry-period", "200ms"),
)
MILLION = 1_000_000


def test_an_etcd_that_asks_for_a_password(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    with Etcd() as etcd:
        etcd.control("user", "add", "root:r")
        etcd.control("user", "grant-role", "root", "root")
        etcd.control("role", "add", "sully")
        etcd.control("role", "grant-permission", "sully", "--prefix=true", "readwrite", "/sully/")
        etcd.control("user", "add", "sully:secret")
        etcd.control("user", "grant-role", "sully", "sully")
        etcd.control("auth", "enable", user="root:r")
        store = ("--store", str(etcd.address))
        with pytest.raises(RuntimeError, match="user name is empty"), process(*store):
            pass
        login = ("--etcd-username", "sully", "--etcd-password-file", str(password))
        with process(*store, *login, *QUICK) as up:
            admin = Raw.admin(up.kubeconfig, tmp_path)
            assert admin.request("POST", MAPS, config_map("mine")).code == 201
            assert admin.request("GET", "/readyz").code == 200


class Site:
    """Replicas that are started with the keys of the first."""

    def __init__(self, stack: ExitStack, folder: Path, etcd: Etcd) -> None:
        self._stack, self._folder, self._etcd = stack, folder, etcd

    def replica(self, name: str, keys: Path | None, listen: str = "127.0.0.1:0") -> Process:
        data = self._folder / name
        data.mkdir(parents=True)
        for item in IDENTITY if keys is not None else ():
            shutil.copy((keys or data) / item, data / item)
        where = ("--store", str(self._etcd.address), "--listen", listen)
        flags = ("--simulated-nodes", "3", *QUICK)
        return self._stack.enter_context(process(*where, *flags, data_dir=data))


def allocation(device: str) -> dict[str, Any]:
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": device}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


def test_no_device_is_given_away_twice_by_two_replicas(tmp_path: Path) -> None:
    devices = [f"gpu-{n:02}" for n in range(30)]
    rivals = [(device, side) for device in devices for side in range(6)]
    with Etcd(size=3) as etcd, ExitStack() as stack:
        site = Site(stack, tmp_path, etcd)
        first = site.replica("0", None)
        second = site.replica("1", first.data_dir)
        admins = [Raw.admin(item.kubeconfig, item.data_dir) for item in (first, second)]
        workers = stack.enter_context(ThreadPoolExecutor(8))

        def make(rival: tuple[str, int]) -> int:
            device, side = rival
            return admins[side % 2].request("POST", CLAIMS, claim(f"{device}-{side}", "c")).code

        def take(rival: tuple[str, int]) -> int:
            device, side = rival
            path = f"{CLAIMS}/{device}-{side}/status"
            return admins[side % 2].request("PATCH", path, allocation(device), MERGE).code

        assert set(workers.map(make, rivals)) == {201}
        codes = list(workers.map(take, rivals))
        items = admins[0].request("GET", CLAIMS).json()["items"]

    held = [
        result["device"]
        for item in items
        for result in (item.get("status") or {}).get("allocation", {"devices": {"results": []}})[
            "devices"
        ]["results"]
    ]
    assert sorted(held) == devices
    assert sorted(codes) == [200] * len(devices) + [409] * (len(rivals) - len(devices))


def test_a_backup_comes_back(tmp_path: Path) -> None:
    snapshot, keys = tmp_path / "today.etcd", tmp_path / "keys.tar"
    kubeconfig = tmp_path / "kubeconfig"
    with ExitStack() as stack, Etcd(size=3) as etcd:
        site = Site(stack, tmp_path / "before", etcd)
        first = site.replica("0", None)
        second = site.replica("1", first.data_dir)
        shutil.copy(first.kubeconfig, kubeconfig)
        admin = Raw.admin(second.kubeconfig, tmp_path)
        saved = admin.request("POST", MAPS, config_map("kept")).json()
        assert admin.request("POST", DEPLOYMENTS, deployment("web", 3)).code == 201
        pods = until(admin, PODS, running(3))

        etcd.control("snapshot", "save", snapshot)
        with tarfile.open(keys, "w") as archive:
            for name in IDENTITY:
                archive.add(first.data_dir / name, name)

        later = admin.request("POST", MAPS, config_map("later")).json()
        changed = admin.request("PUT", f"{MAPS}/kept", {**saved, "data": {"a": "b"}}).json()
        listen = urlsplit(first.url).netloc
        for replica in (second, first):
            assert replica.stop() == 0

    # All is lost but the two files, and what clients record.
    unpacked = tmp_path / "keys"
    with tarfile.open(keys) as archive:
        archive.extractall(unpacked, filter="data")
    with Etcd(size=3, snapshot=snapshot) as etcd, ExitStack() as stack:
        etcd.control("put", "/sully/shared/offset", str(MILLION))
        site = Site(stack, tmp_path / "after", etcd)
        first = site.replica("0", unpacked, listen)
        second = site.replica("1", unpacked)
        admin = Raw.admin(kubeconfig, tmp_path)
        other = Raw.admin(second.kubeconfig, tmp_path)

        document = other.request("GET", f"{MAPS}/kept").json()
        assert document["metadata"]["uid"] == saved["metadata"]["uid"]
        assert "data" not in document
        assert admin.request("GET", f"{MAPS}/later").code == 404
        # The controllers continue: no pod is recreated, and further ones come.
        scale = {"spec": {"replicas": 5}}
        assert admin.request("PATCH", f"{DEPLOYMENTS}/web", scale, MERGE).code == 200
        assert set(pods) < set(until(other, PODS, running(5)))
        # What was numbered after the backup means nothing now, and is not taken for something else.
        version = later["metadata"]["resourceVersion"]
        with admin.open("GET", f"{MAPS}?watch=true&resourceVersion={version}") as watch:
            assert json.loads(watch.readline())["object"]["code"] == 410
        assert admin.request("PUT", f"{MAPS}/kept", changed).code == 409
        assert int(document["metadata"]["resourceVersion"]) > MILLION
