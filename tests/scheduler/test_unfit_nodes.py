"""Which nodes remain to be evaluated for a class, in which order, and until when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.pools import BOTH, NO_NODE, ONLY_X, node_pools
from sully.domain.scheduling.objects import Pod
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.equivalence.unfit_nodes import UnfitNodes
from sully.testing.builders import node, pod_as

ONE_CPU = {"cpu": 1_000_000_000}


class Scene:
    """Three nodes, of which x and y do not fit one class, and y not another one."""

    def __init__(self) -> None:
        self.nodes = NodeCache()
        for name in ("z", "y", "x"):
            self.nodes.update_node(node(name))
        self.unfit = UnfitNodes(self.nodes, node_pools())
        self.nodes.on_capacity_gain(self.unfit.node_changed)
        self.unfit.add(b"q", {"x", "y"})
        self.unfit.add(b"r", {"y"})

    def put(self, name: str, where: str) -> None:
        self.nodes.add_pod(pod_as(Pod, name, node=""), where, ONE_CPU)

    def remaining(self, equivalence: bytes) -> list[str] | None:
        result = self.unfit.remaining(equivalence)
        return [info.name for info in result] if result is not None else None


FORGETTING: dict[str, tuple[Callable[[UnfitNodes], None], str, str]] = {
    "nothing": (lambda _: None, "z", "xz"),
    "a node gains": (lambda it: it.node_changed("y"), "yz", "xyz"),
    "a node that was not evaluated gains": (lambda it: it.node_changed("z"), "z", "xz"),
    "a node that is deleted gains": (lambda it: it.node_changed("w"), "z", "xz"),
    "a pool of one node": (lambda it: it.pool_released(ONLY_X), "xz", "xz"),
    "a pool of all nodes": (lambda it: it.pool_released(BOTH), "xyz", "xyz"),
    "a pool of no node": (lambda it: it.pool_released(NO_NODE), "z", "xz"),
}


@pytest.mark.parametrize("asked_before", [False, True])
@pytest.mark.parametrize("case", FORGETTING)
def test_what_remains(case: str, asked_before: bool) -> None:
    happens, first, second = FORGETTING[case]
    scene = Scene()
    if asked_before:
        assert (scene.remaining(b"q"), scene.remaining(b"r")) == (["z"], ["x", "z"])
    happens(scene.unfit)

    assert (scene.remaining(b"q"), scene.remaining(b"r")) == (list(first), list(second))
    assert scene.remaining(b"r") == list(second), "not reported as unfit"


def test_the_least_loaded_node_comes_first() -> None:
    scene = Scene()
    assert scene.remaining(b"r") == ["x", "z"]
    scene.put("p-1", "x")
    assert scene.remaining(b"r") == ["z", "x"]
    for pod, where in (("p-2", "z"), ("p-3", "z"), ("p-4", "x")):
        scene.put(pod, where)
    assert scene.remaining(b"r") == ["x", "z"]
    scene.nodes.remove_pod("uid-p-2")
    scene.nodes.remove_pod("uid-p-3")
    assert scene.remaining(b"r") == ["z", "x"]
    scene.put("p-5", "z")
    scene.put("p-6", "z")
    scene.nodes.remove_pod("uid-p-5")
    assert scene.remaining(b"r") == ["z", "x"], "a node that lost and got pods comes once"
    scene.nodes.remove_node("z")
    assert scene.remaining(b"r") == ["x"]


def test_a_node_that_does_not_fit_is_not_evaluated_again() -> None:
    scene = Scene()
    assert scene.remaining(b"r") == ["x", "z"]
    scene.unfit.add(b"r", {"x"})
    assert scene.remaining(b"r") == ["z"]


def test_nodes_that_were_not_reached_remain() -> None:
    scene = Scene()
    result = scene.unfit.remaining(b"r")
    assert result is not None
    assert next(result).name == "x"
    assert scene.remaining(b"r") == ["x", "z"]


def test_everything_is_forgotten_when_devices_change() -> None:
    scene = Scene()
    scene.unfit.invalidate_if_changed(1)
    assert scene.remaining(b"q") is None
    assert not scene.unfit


def test_a_flood_of_classes_does_not_fill_the_memory() -> None:
    scene = Scene()
    for number in range(1000):
        scene.unfit.add(b"%d" % number, {"x"})

    assert scene.remaining(b"999") == ["y", "z"]
    assert scene.remaining(b"q") is None
