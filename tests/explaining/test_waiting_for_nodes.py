"""Why a pod has no node: what nodes have against it, devices aside."""

from __future__ import annotations

import pytest

from explaining.situation import Situation
from explaining.waiters import ALL, PLAIN, TWO, alone, takes, waiting
from explaining.worlds import (
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


NODES = {
    "there is no node": waiting(
        "NoNodes", class_(), TWO, says=("there is no node at all",), helps="Add a node"
    ),
    "the nodes are cordoned": waiting(
        "NodesRefuse",
        node(cordoned=True),
        class_(),
        TWO,
        first="the only node is cordoned.",
        says=("1 node (n1): node(s) were unschedulable",),
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then go to node n1.",
    ),
    "the nodes are tainted": waiting(
        "NodesRefuse",
        node(taints=[{"key": "infra", "effect": "NoSchedule"}]),
        class_(),
        TWO,
        first="the only node has taints that it does not tolerate.",
        says=("node(s) had untolerated taint(s)",),
        because=("Node/n1",),
        helps="Tolerate infra:NoSchedule of node n1 in spec.tolerations of the pod. The pod would",
    ),
    "the pod selects other nodes": alone(
        "NodesRefuse",
        *PLAIN,
        pod(nodeSelector={"zone": "a"}),
        first="the only node is not what its node selector or affinity asks for.",
        says=("node affinity/selector",),
        because=("Node/n1",),
        helps="or label node n1, so that the one matches the other. The pod would then go to node",
    ),
    "the nodes are full": alone(
        "NodesRefuse",
        *PLAIN,
        pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "99"}}}]),
        first="the only node has too little cpu.",
        says=("Insufficient cpu", "It asks for 99 cpu, and no node has more than 4."),
        because=("Node/n1",),
        helps="Ask for at most 4 cpu, or add a node that has more.",
    ),
    "no node is so large, and one is cordoned": alone(
        "NodesRefuse",
        node("n1", cordoned=True),
        node("n2"),
        pod(containers=[{"name": "c", "resources": {"requests": {"memory": "9Gi"}}}]),
        first="of 2 nodes, 1 has too little memory and 1 is cordoned.",
        says=("It asks for 9Gi memory, and no node has more than 8Gi.",),
        because=("Node/n2", "Node/n1"),
        helps="Ask for at most 8Gi memory, or add a node that has more.",
    ),
    "one node lacks two things": alone(
        "NodesRefuse",
        node(),
        pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "9", "memory": "9Gi"}}}]),
        first="the only node has too little cpu and has too little memory.",
        because=("Node/n1",),
        helps="Ask for at most 4 cpu",
    ),
    "no node has any of it": alone(
        "NodesRefuse",
        node(),
        pod(containers=[{"name": "c", "resources": {"requests": {"example.com/fpga": "1"}}}]),
        says=("It asks for 1 example.com/fpga, and no node has any.",),
        because=("Node/n1",),
        helps="Add a node that has example.com/fpga, or do without.",
    ),
    "one node has the cpu, another the memory": alone(
        "NodesRefuse",
        sized("n1", cpu="8", memory="1Gi"),
        sized("n2", cpu="1", memory="8Gi"),
        pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "4", "memory": "4Gi"}}}]),
        because=("Node/n2", "Node/n1"),
        helps="Ask for less, or add a node that has all of it.",
    ),
    "all nodes have the same against it": alone(
        "NodesRefuse",
        node("n1", cordoned=True),
        node("n2", cordoned=True),
        pod(),
        first="): all 2 nodes are cordoned.",
        because=("Node/n1", "Node/n2"),
        helps="Uncordon node n1",
    ),
    "nodes have this and that against it": alone(
        "NodesRefuse",
        node("n1", cordoned=True),
        node("n2", cordoned=True),
        node("n3", taints=[{"key": "infra", "effect": "NoExecute"}]),
        pod(),
        first="of 3 nodes, 2 are cordoned and 1 has taints that it does not tolerate.",
        because=("Node/n1", "Node/n2", "Node/n3"),
        helps="Uncordon node n1",
    ),
    "others have the room": alone(
        "NodesRefuse",
        *PLAIN,
        pod("large", on="n1", **takes("3")),
        pod("small", on="n1", **takes("1")),
        pod(**takes("2")),
        because=("Node/n1",),
        helps="Wait until pod team/large leaves node n1. The pod would then go to node n1.",
    ),
    "one goes anyway": alone(
        "NodesRefuse",
        *PLAIN,
        pod("large", on="n1", **takes("2")),
        pod("small", on="n1", deleted=30, **takes("2")),
        pod(**takes("2")),
        because=("Node/n1",),
        helps="Wait until pod team/small leaves node n1.",
    ),
    "others have the room and the devices": waiting(
        "NodesRefuse",
        *PLAIN,
        claim("busy", holds=("n1/gpu-0", "n1/gpu-1"), pods=("q",)),
        pod("q", "busy", on="n1", **takes("3")),
        pod("r", on="n1", **takes("1")),
        because=("Node/n1",),
        helps="Wait until claim team/busy (2 devices, used by pod team/q) gives its devices back.",
        takes=takes("1"),
    ),
    "cordoned, tainted, and so are its devices": waiting(
        "NodesRefuse",
        node(cordoned=True, taints=[{"key": "infra", "effect": "NoSchedule"}]),
        class_(),
        TWO,
        rule("fw"),
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). Also tolerate infra:NoSchedule of node n1 in"
        " spec.tolerations of the pod. Also tolerate example.com/fw:NoSchedule from rule fw in"
        " request gpu, or have it lifted. The pod would then go to node n1.",
    ),
    "what would open its node opens one that fails the attempt": waiting(
        "NodesRefuse",
        node("n1", taints=[{"key": "infra", "effect": "NoSchedule"}]),
        sized("n2", pods="1", cpu="4", memory="8Gi"),
        class_(),
        slice_(device("gpu-0")),
        slice_(on="n2", count=2),
        claim("busy", holds=("n1/gpu-0",), pods=("q",)),
        pod("q", "busy", on="n2"),
        pod("r", on="n1"),
        asks=request(**ALL),
        says=("Nor would that be enough on n1: claim team/busy has devices that it could use.",),
        because=("Node/n2", "Node/n1"),
        helps="Tolerate the taint of the nodes in spec.tolerations of the pod.",
    ),
    "the mark of a cordon goes with it": waiting(
        "NodesRefuse",
        node(
            cordoned=True,
            taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        ),
        class_(),
        TWO,
        because=("Node/n1",),
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then go to node n1.",
    ),
    "cordoned, and its devices would not do": waiting(
        "NodesRefuse",
        node(cordoned=True),
        class_("gpus", 'device.driver == "other"'),
        TWO,
        says=("Nor would that be enough on n1: no device is of class gpus.",),
        because=("Node/n1",),
        helps="Change the selector that refuses most devices",
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
        helps="Uncordon node n1 (kubectl uncordon n1). The pod would then go to node n1.",
    ),
}


SITUATIONS = NODES


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_cause(situation: Situation) -> None:
    situation.check()
