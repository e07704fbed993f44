"""A data directory of the previous release is read and served; `releases/` has the data of each.

The files were written by that release: `sully up` with two simulated nodes of two devices, then
objects of every group. A release adds its own file.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from e2e.raw import Raw
from faults.releases import EARLIER
from sully.testing.cluster import process

pytestmark = pytest.mark.slow
RELEASES = sorted((Path(__file__).parent / "releases").glob("*.db.gz"))
RESOURCE = "/apis/resource.k8s.io/v1"


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name.removesuffix(".db.gz"))
def test_data_of_a_release_is_served(release: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "store.db").write_bytes(gzip.decompress(release.read_bytes()))

    with process("--disable-controllers", data_dir=data) as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        claim = _object(admin, f"{RESOURCE}/namespaces/default/resourceclaims/gpu")
        rule = _object(admin, f"{RESOURCE}/devicetaintrules/overheating")
        pod = _object(admin, "/api/v1/namespaces/default/pods/train")
        patch = _object(admin, "/apis/resource.k8s.io/v1alpha3/resourceslicepatches/rack")
        hub = "/apis/cluster.open-cluster-management.io/v1"
        cluster = _object(admin, f"{hub}/managedclusters/eu-2")
        # What was read can be written: the whole object is decoded and validated again.
        pod["metadata"]["labels"] = {"upgraded": "yes"}
        written = admin.request("PUT", "/api/v1/namespaces/default/pods/train", pod)

    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert result["tolerations"][0]["tolerationSeconds"] == 3600
    assert rule["spec"]["taint"]["effect"] == "NoExecute"
    assert pod["status"]["phase"] == "Running"
    assert patch["spec"]["devices"]["attributes"] == {"example.com/rack": {"string": "r7"}}
    assert cluster["spec"]["taints"][0]["key"] == "example.com/offline"
    assert written.code == 200


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name.removesuffix(".db.gz"))
def test_every_object_of_a_release_is_served(release: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "store.db").write_bytes(gzip.decompress(release.read_bytes()))
    with closing(apsw.Connection(str(data / "store.db"))) as database:
        stored = set(database.execute("SELECT resource, namespace, name FROM current"))

    with process("--disable-controllers", data_dir=data) as up:
        admin = Raw.admin(up.kubeconfig, tmp_path)
        served = {_stored(item) for item in _everything(admin)}

    assert len(stored) > 50
    # Events expire.
    assert {entry for entry in stored if entry[0] != "events"} <= served


def _everything(admin: Raw) -> Iterator[dict[str, Any]]:
    groups = _object(admin, "/apis")["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    for version in ("v1", *versions):
        group = version.rpartition("/")[0]
        root = f"/apis/{version}" if group else f"/api/{version}"
        for resource in _object(admin, root)["resources"]:
            if "/" not in resource["name"] and "list" in resource["verbs"]:
                stored = f"{group}/{resource['name']}" if group else resource["name"]
                for item in _object(admin, f"{root}/{resource['name']}")["items"]:
                    yield {**item, "resource": stored}


def _stored(item: dict[str, Any]) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return item["resource"], metadata.get("namespace", ""), metadata["name"]


def test_there_is_data_of_each_release() -> None:
    assert {path.name for path in RELEASES} == {f"{item.version}.db.gz" for item in EARLIER}


def _object(admin: Raw, path: str) -> dict[str, Any]:
    answer = admin.request("GET", path)
    assert answer.code == 200, answer
    document: dict[str, Any] = answer.json()
    return document
