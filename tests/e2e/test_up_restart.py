"""A restart continues with everything that was acknowledged."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from e2e.raw import Raw
from manifests import config_map
from sully.testing.cluster import process

pytestmark = pytest.mark.e2e
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda item: item.name)
def test_everything_acknowledged_is_there_again(number: signal.Signals, tmp_path: Path) -> None:
    data, scratch = tmp_path / "data", tmp_path / "scratch"
    scratch.mkdir()
    with process(data_dir=data) as up:
        admin = Raw.admin(up.kubeconfig, scratch)
        made = [
            admin.request("POST", MAPS, config_map(f"map-{index}")).json() for index in range(5)
        ]
        assert admin.request("DELETE", f"{MAPS}/map-4").code == 200
        listed = admin.request("GET", MAPS).json()
        up.stop(number)

    with process(data_dir=data) as up:
        admin = Raw.admin(up.kubeconfig, scratch)
        again = admin.request("GET", MAPS).json()
        events = _events_since(admin, made[1]["metadata"]["resourceVersion"], 4)
        new = admin.request("POST", MAPS, config_map("after")).json()

    assert again["items"] == listed["items"]
    # A watch resumes from a version of the former life.
    assert events == [
        ("ADDED", "map-2"),
        ("ADDED", "map-3"),
        ("ADDED", "map-4"),
        ("DELETED", "map-4"),
    ]
    assert version(new) > version(again) >= version(listed)


def version(one: dict[str, Any]) -> int:
    return int(one["metadata"]["resourceVersion"])


def _events_since(admin: Raw, since: str, number: int) -> list[tuple[str, str]]:
    with admin.open("GET", f"{MAPS}?watch=true&resourceVersion={since}") as watch:
        events = [json.loads(watch.readline()) for _ in range(number)]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def test_who_was_let_in_before_is_let_in_again(tmp_path: Path) -> None:
    data, scratch = tmp_path / "data", tmp_path / "scratch"
    scratch.mkdir()
    with process(data_dir=data) as up:
        port = up.url.rpartition(":")[2]
        before = Raw.admin(up.kubeconfig, scratch)
        uid = before.request("GET", "/api/v1/namespaces/default").json()["metadata"]["uid"]

    # The same port, so that the kubeconfig of before still points there.
    with process("--listen", f"127.0.0.1:{port}", data_dir=data):
        after = before.request("GET", "/api/v1/namespaces/default").json()["metadata"]["uid"]

    assert after == uid


def test_a_memory_store_forgets(tmp_path: Path) -> None:
    data, scratch = tmp_path / "data", tmp_path / "scratch"
    scratch.mkdir()
    with process("--store", "memory", data_dir=data) as up:
        Raw.admin(up.kubeconfig, scratch).request("POST", MAPS, config_map("map"))

    with process("--store", "memory", data_dir=data) as up:
        assert Raw.admin(up.kubeconfig, scratch).request("GET", f"{MAPS}/map").code == 404
