"""Why a pod has no node: what nodes have against it, devices aside."""

from __future__ import annotations

from typing import Any

import pytest

from explain.situation import Situation
from explain.waiters import ALL, PLAIN, TWO, alone, takes, waiting
from explain.worlds import (
    Obj,
    claim,
    class_,
    device,
    node,
    on_node,
    pod,
    request,
    rule,
    slice_,
)


def sized(name: str, **allocatable: str) -> Obj:
    return node(name) | {"status": {"allocatable": {"pods": "10"} | allocatable}}


def daemon(*names: str, **more: Any) -> Obj:
    """Return the affinity of a DaemonSet's pod."""
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}, **more}


def of_daemonset(made: Obj) -> Obj:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents", "uid": "u"}
    metadata = made["metadata"] | {"ownerReferences": [owner | {"controller": True}]}
    return made | {"metadata": metadata}


DAEMONS = {
    "its node has a taint": alone(
        "NodesUnsuitable",
        node("n1", taints=[{"key": "infra", "effect": "NoSchedule"}]),
        node("n2"),
        node("n3"),
        of_daemonset(pod(**daemon("n1"))),
        first="node n1 has taints that it does not tolerate.",
        contains=(
            "Only node n1 counts for it: its affinity names it, as of every pod of DaemonSet"
            " agents.",
        ),
        omits=("of 3 nodes", "affinity/selector"),
        because=("Node/n1",),
        helps="Tolerate infra:NoSchedule of node n1 in spec.tolerations of the pod. The pod would"
        " then be scheduled to node n1.",
    ),
    "its node is cordoned": alone(
        "NodesUnsuitable",
        node("n1", cordoned=True),
        node("n2"),
        pod(**daemon("n1")),
        first="node n1 is cordoned.",
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then be scheduled to node n1.",
    ),
    "its node is too small, another is not": alone(
        "NodesUnsuitable",
        node("n1"),
        sized("n2", cpu="99"),
        pod(**daemon("n1"), containers=takes("9")["containers"]),
        first="node n1 has insufficient cpu.",
        contains=("It requests 9 cpu, and node n1 has no more than 4.",),
        because=("Node/n1",),
        helps="Request at most 4 cpu.",
    ),
    "its node has none of it": alone(
        "NodesUnsuitable",
        node("n1"),
        pod(
            **daemon("n1"),
            containers=[{"name": "c", "resources": {"requests": {"example.com/fpga": "1"}}}],
        ),
        contains=("It requests 1 example.com/fpga, and node n1 has none.",),
        because=("Node/n1",),
        helps="Remove the request for example.com/fpga.",
    ),
    "its node is gone": alone(
        "NoNodes",
        node("n2"),
        of_daemonset(pod(**daemon("n1"))),
        first="and node n1 does not exist.",
        helps="Its controller deletes it, or node n1 has to be added again.",
    ),
    "the devices are elsewhere": alone(
        "NoDevices",
        node("n2"),
        *PLAIN,
        claim("c"),
        of_daemonset(pod("p", "c", **daemon("n2"))),
        contains=("2 devices are published, but not for node n2.", "Only node n2 counts for it"),
        omits=("for nodes that do not exist",),
        helps="",
    ),
    "the devices of its node are tainted, others are free": alone(
        "DevicesTainted",
        *PLAIN,
        node("n2"),
        slice_(device("gpu-0"), on="n2"),
        rule("fw", select={"pool": "n1"}),
        claim("c"),
        of_daemonset(pod("p", "c", **daemon("n1"))),
        contains=("Only node n1 counts for it",),
        because=("DeviceTaintRule/fw",),
        helps="The pod would then be scheduled to node n1.",
    ),
    "one of two nodes": alone(
        "NodesUnsuitable",
        node("n1", cordoned=True),
        node("n2", cordoned=True),
        node("n3"),
        pod(**daemon("n1", "n2")),
        first="all 2 nodes are cordoned.",
        contains=("Only node n1 or n2 count for it: its affinity names them.",),
        because=("Node/n1", "Node/n2"),
        helps="Uncordon node n1",
    ),
}


@pytest.mark.parametrize("situation", DAEMONS.values(), ids=DAEMONS)
def test_nodes_that_are_named(situation: Situation) -> None:
    situation.check()


NODES = {
    "there is no node": waiting(
        "NoNodes",
        class_(),
        TWO,
        contains=(
            "Pod team/p has been Pending since 2030-01-01T12:00:00Z"
            " (0s ago), and there is no node.",
        ),
        helps="Add a node",
    ),
    "the nodes are cordoned": waiting(
        "NodesUnsuitable",
        node(cordoned=True),
        class_(),
        TWO,
        first="the only node is cordoned.",
        contains=("1 node (n1): node(s) were unschedulable",),
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then be scheduled to node n1.",
    ),
    "the nodes are tainted": waiting(
        "NodesUnsuitable",
        node(taints=[{"key": "infra", "effect": "NoSchedule"}]),
        class_(),
        TWO,
        first="the only node has taints that it does not tolerate.",
        contains=("node(s) had untolerated taint(s)",),
        because=("Node/n1",),
        helps="Tolerate infra:NoSchedule of node n1 in spec.tolerations of the pod. The pod would",
    ),
    "the pod selects other nodes": alone(
        "NodesUnsuitable",
        *PLAIN,
        pod(nodeSelector={"zone": "a"}),
        first="the only node does not match its node selector or affinity.",
        contains=("node affinity/selector",),
        because=("Node/n1",),
        helps="Change the node selector or affinity of the pod, or label node n1, so that they"
        " match. The pod would then be scheduled to node n1.",
    ),
    "the nodes are full": alone(
        "NodesUnsuitable",
        *PLAIN,
        pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "99"}}}]),
        first="the only node has insufficient cpu.",
        contains=("Insufficient cpu", "It requests 99 cpu, and no node has more than 4."),
        because=("Node/n1",),
        helps="Request at most 4 cpu, or add a node that has more.",
    ),
    "no node is so large, and one is cordoned": alone(
        "NodesUnsuitable",
        node("n1", cordoned=True),
        node("n2"),
        pod(containers=[{"name": "c", "resources": {"requests": {"memory": "9Gi"}}}]),
        first="of 2 nodes, 1 has insufficient memory and 1 is cordoned.",
        contains=("It requests 9Gi memory, and no node has more than 8Gi.",),
        because=("Node/n2", "Node/n1"),
        helps="Request at most 8Gi memory, or add a node that has more.",
    ),
    "one node lacks two things": alone(
        "NodesUnsuitable",
        node(),
        pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "9", "memory": "9Gi"}}}]),
        first="the only node has insufficient cpu and has insufficient memory.",
        because=("Node/n1",),
        helps="Request at most 4 cpu, or add a node that has more.",
    ),
    "no node has any of it": alone(
        "NodesUnsuitable",
        node(),
        pod(containers=[{"name": "c", "resources": {"requests": {"example.com/fpga": "1"}}}]),
        contains=("It requests 1 example.com/fpga, and no node has any.",),
        because=("Node/n1",),
        helps="Add a node that has example.com/fpga, or remove the request.",
    ),
    "one node has the cpu, another the memory": alone(
        "NodesUnsuitable",
        sized("n1", cpu="8", memory="1Gi"),
        sized("n2", cpu="1", memory="8Gi"),
        pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "4", "memory": "4Gi"}}}]),
        because=("Node/n2", "Node/n1"),
        helps="Request less, or add a node that has all of it.",
    ),
    "all nodes have the same against it": alone(
        "NodesUnsuitable",
        node("n1", cordoned=True),
        node("n2", cordoned=True),
        pod(),
        first="): all 2 nodes are cordoned.",
        because=("Node/n1", "Node/n2"),
        helps="Uncordon node n1",
    ),
    "nodes have this and that against it": alone(
        "NodesUnsuitable",
        node("n1", cordoned=True),
        node("n2", cordoned=True),
        node("n3", taints=[{"key": "infra", "effect": "NoExecute"}]),
        pod(),
        first="of 3 nodes, 2 are cordoned and 1 has taints that it does not tolerate.",
        because=("Node/n1", "Node/n2", "Node/n3"),
        helps="Uncordon node n1",
    ),
    "others have the room": alone(
        "NodesUnsuitable",
        *PLAIN,
        pod("large", on="n1", **takes("3")),
        pod("small", on="n1", **takes("1")),
        pod(**takes("2")),
        because=("Node/n1",),
        helps="Wait until pod team/large is gone from node n1. The pod would then be scheduled"
        " to node n1.",
    ),
    "one goes anyway": alone(
        "NodesUnsuitable",
        *PLAIN,
        pod("large", on="n1", **takes("2")),
        pod("small", on="n1", deleted=30, **takes("2")),
        pod(**takes("2")),
        because=("Node/n1",),
        helps="Wait until pod team/small is gone from node n1. The pod would then be scheduled"
        " to node n1.",
    ),
    "others have the room and the devices": waiting(
        "NodesUnsuitable",
        *PLAIN,
        claim("busy", holds=("n1/gpu-0", "n1/gpu-1"), pods=("q",)),
        pod("q", "busy", on="n1", **takes("3")),
        pod("r", on="n1", **takes("1")),
        because=("Node/n1",),
        helps="Wait until claim team/busy (2 devices, used by pod team/q) is deallocated.",
        takes=takes("1"),
    ),
    "cordoned, tainted, and so are its devices": waiting(
        "NodesUnsuitable",
        node(cordoned=True, taints=[{"key": "infra", "effect": "NoSchedule"}]),
        class_(),
        TWO,
        rule("fw"),
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). Also tolerate infra:NoSchedule of node n1 in"
        " spec.tolerations of the pod. Also tolerate example.com/fw:NoSchedule from rule fw in"
        " request gpu, or have the taint removed. The pod would then be scheduled to node n1.",
    ),
    "what would open its node opens one that fails the attempt": waiting(
        "NodesUnsuitable",
        node("n1", taints=[{"key": "infra", "effect": "NoSchedule"}]),
        sized("n2", pods="1", cpu="4", memory="8Gi"),
        class_(),
        slice_(device("gpu-0")),
        slice_(on="n2", count=2),
        claim("busy", holds=("n1/gpu-0",), pods=("q",)),
        pod("q", "busy", on="n2"),
        pod("r", on="n1"),
        asks=request(**ALL),
        contains=(
            "That would not be enough on node n1: claim team/busy uses devices that it could use.",
        ),
        because=("Node/n2", "Node/n1"),
        helps="Tolerate the taint of the nodes in spec.tolerations of the pod.",
    ),
    "the mark of a cordon goes with it": waiting(
        "NodesUnsuitable",
        node(
            cordoned=True,
            taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        ),
        class_(),
        TWO,
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then be scheduled to node n1.",
    ),
    "cordoned, and its devices would not do": waiting(
        "NodesUnsuitable",
        node(cordoned=True),
        class_("gpus", 'device.driver == "other"'),
        TWO,
        contains=("That would not be enough on node n1: no device is of class gpus.",),
        because=("Node/n1",),
        helps='Change the selector that excludes most devices: `device.driver == "other"`.',
    ),
    "the devices of its claim are on a cordoned node": alone(
        "ClaimElsewhere",
        node("n1", cordoned=True),
        node("n2"),
        class_(),
        TWO,
        claim("c", holds=("n1/gpu-0",), selector=on_node("n1"), pods=("q",)),
        pod("q", "c", on="n1"),
        pod("p", "c"),
        because=("ResourceClaim/team/c",),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then be scheduled to node n1.",
    ),
}


SITUATIONS = NODES


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()
