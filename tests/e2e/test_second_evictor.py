"""Kubernetes evicts although Sully is installed as the evictor: no rate is promised then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.beside import APPLY, LEASE, as_account
from e2e.watching import until
from kube.process import Foreign, foreign
from kube.scenes import DRIVER, Scene
from sully.testing.remote import controllers

pytestmark = pytest.mark.e2e

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
HOT = ("device", f"{DRIVER}/n1/gpu-0", "example.com/hot:NoExecute", "--name", "hot")
NO_RATE = "eviction rates, pauses and budgets of taints have no effect: Kubernetes evicts as well"
DISABLE = "--controllers=*,-device-taint-eviction-controller"


@dataclass
class World:
    there: Foreign
    scene: Scene


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """Run Kubernetes with or without its own evictor, and Sully's beside it."""
    with foreign(*request.param) as there:
        done = there.sully(*APPLY, "--evictor", "sully")
        assert done.returncode == 0, done.stderr
        account = as_account(there.admin(), there.kubeconfig, tmp_path / "account")
        with controllers(account, "--evictor", "sully", "--lease", LEASE) as crew:
            crew.wait_for("leading since")
            scene = Scene(there)
            scene.start("web", "default-scheduler")
            yield World(there, scene)


both = pytest.mark.parametrize("world", [()], ids=["both"], indirect=True)
alone = pytest.mark.parametrize("world", [("--no-evictor",)], ids=["only Sully"], indirect=True)


@both
def test_a_rate_is_refused_before_a_pod_is_evicted(world: World) -> None:
    """No rule exists that would show what evicts: the first one does, and evicts no pod."""
    first = world.there.sully("taint", *HOT, "--rate", "1/m", "--yes")
    assert first.returncode == 1
    assert NO_RATE in first.stderr
    assert DISABLE in first.stderr
    undo = f"kubectl delete devicetaintrule hot --kubeconfig {world.there.kubeconfig}"
    assert undo in first.stderr
    answer = world.scene.admin.request("GET", f"{RULES}/hot").json()
    assert answer["spec"]["taint"]["effect"] == "NoSchedule"

    # Now it is known.
    again = world.there.sully("taint", *HOT, "--rate", "1/m", "--yes", "--overwrite")
    assert again.returncode == 1
    assert "to evict all pods immediately, use --rate 0" in again.stderr
    planned = world.there.sully("plan", *HOT[:3], "--rate", "1/m")
    assert NO_RATE in planned.stderr
    pods = world.scene.admin.request("GET", "/api/v1/namespaces/team/pods/web").json()
    assert "deletionTimestamp" not in pods["metadata"]
    for command in (("status",), ("evictions",), ("rules",), ("capabilities",)):
        done = world.there.sully(*command)
        assert NO_RATE in done.stderr or "its own, as well as Sully's" in done.stdout, command
    doctor = world.there.sully("doctor")
    assert f"failure  evictors: {NO_RATE}" in doctor.stdout
    paused = world.there.sully("evictions", "pause", "hot", "--force")
    assert paused.returncode == 0, paused.stderr


@both
def test_without_a_rate_they_are_evicted_immediately(world: World) -> None:
    done = world.there.sully("taint", *HOT, "--rate", "0", "--yes")

    assert done.returncode == 0, done.stderr
    world.scene.wait_until_evicted("web")
    refused = world.there.sully("evictions", "pause", "hot")
    assert refused.returncode == 1
    assert NO_RATE in refused.stderr


@alone
def test_a_rate_holds_where_only_sully_evicts(world: World) -> None:
    done = world.there.sully("taint", *HOT, "--rate", "1/m", "--yes", "--no-wait")

    assert done.returncode == 0, done.stderr
    until(
        world.scene.admin,
        RULES,
        lambda rules: rules["hot"]["spec"]["taint"]["effect"] == "NoExecute",
    )
    world.scene.wait_until_evicted("web")
    assert "ok       evictors: Sully evicts" in world.there.sully("doctor").stdout
