"""Pods with constraints, and where they fit: what kube-scheduler 1.37 reports about each.

`tests/kube/test_constraints.py` asks the real one, `test_constraints.py` ours. By default there are
three nodes, n1 and n2 in zone a, n3 in zone b. The pod to schedule is `p`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import manifests
from manifests import namespace

Obj = dict[str, Any]
NAMESPACE = "default"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BOUND = "pv.kubernetes.io/bind-completed"
WEB = {"app": "web"}
APP: Obj = {"matchLabels": WEB}


def node(name: str, zone: str = "", *, cpu: str = "4", taints: Any = (), **labels: str) -> Obj:
    own = {HOST: name, **({ZONE: zone} if zone else {}), **labels}
    spec = {"taints": list(taints)} if taints else {}
    return manifests.node(name, cpu=cpu, spec=spec, labels=own)


def pod(
    name: str,
    on: str = "",
    labels: Obj | None = None,
    *,
    namespace: str = NAMESPACE,
    ports: Any = (),
    cpu: str = "",
    terminating: bool = False,
    **spec: Any,
) -> Obj:
    container: Obj = {"name": "c", "image": "i"}
    if ports:
        container["ports"] = [{"containerPort": x["hostPort"], **x} for x in ports]
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata: Obj = {"namespace": namespace, "labels": labels or {}}
    if terminating:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **spec}
    return manifests.pod(name, spec, **metadata)


def term(key: str = HOST, selector: Obj | None = APP, **more: Any) -> Obj:
    return {"topologyKey": key, "labelSelector": selector, **more}


def near(*terms: Obj) -> Obj:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def apart(*terms: Obj) -> Obj:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def spread(key: str = ZONE, skew: int = 1, **more: Any) -> Obj:
    constraint = {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": APP,
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def port(number: int = 8080, **more: Any) -> Obj:
    return {"hostPort": number, **more}


def claim(name: str, volume: str = "", cls: str = "", mode: str = "ReadWriteOnce") -> Obj:
    spec: Obj = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": cls,
    }
    annotations = {}
    if volume:
        spec["volumeName"] = volume
        annotations[BOUND] = "yes"
    return manifests.body(
        "PersistentVolumeClaim",
        name,
        spec,
        {"phase": "Bound" if volume else "Pending"},
        namespace=NAMESPACE,
        annotations=annotations,
    )


def volume(
    name: str,
    *on: str,
    of: str = "",
    cls: str = "",
    size: str = "1Gi",
    mode: str = "ReadWriteOnce",
    labels: Obj | None = None,
) -> Obj:
    spec: Obj = {
        "accessModes": [mode],
        "capacity": {"storage": size},
        "storageClassName": cls,
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if of:
        spec["claimRef"] = {"namespace": NAMESPACE, "name": of}
    if on:
        expressions = [{"key": HOST, "operator": "In", "values": list(on)}]
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        }
    status = {"phase": "Bound" if of else "Available"}
    return manifests.body("PersistentVolume", name, spec, status, labels=labels or {})


def storage_class(name: str, provisioner: str, *, waits: bool = True, **more: Any) -> Obj:
    return manifests.body("StorageClass", name) | {
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **more,
    }


def uses(*claims: str) -> Obj:
    return {
        "volumes": [{"name": x, "persistentVolumeClaim": {"claimName": x}} for x in claims],
    }


def disk(kind: str, **source: Any) -> Obj:
    return {"volumes": [{"name": "disk", kind: source}]}


NODES = (node("n1", "a"), node("n2", "a"), node("n3", "b"))
ALL = frozenset(("n1", "n2", "n3"))
NOBODY = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def refused(reasons: str, preemption: str = "", nodes: int = 3) -> str:
    head = f"0/{nodes} nodes are available: "
    return f"{head}{reasons}. preemption: {head}{preemption or f'{nodes} {NOBODY}'}."


def not_evaluated(reason: str) -> str:
    return f"0/3 nodes are available: {reason}. not found"


def all_refused(reason: str, *, resolvable: bool = False) -> str:
    return refused(f"3 node(s) {reason}", f"3 {NO_VICTIMS}" if resolvable else "")


@dataclass(frozen=True)
class Case:
    """A pod, other objects, and the nodes that fit, or what is reported."""

    pod: Obj
    objects: tuple[Obj, ...] = ()
    fits: frozenset[str] = frozenset()
    message: str = ""
    nodes: tuple[Obj, ...] = NODES


def fits(nodes: str, asking: Obj, *objects: Obj, among: tuple[Obj, ...] = NODES) -> Case:
    return Case(asking, objects, frozenset(nodes.split()), nodes=among)


def unschedulable(message: str, asking: Obj, *objects: Obj, among: tuple[Obj, ...] = NODES) -> Case:
    return Case(asking, objects, message=message, nodes=among)


AFFINITY = {
    "near a pod on the same node": fits("n2", pod("p", **near(term())), pod("w", "n2", WEB)),
    "near a pod in the same zone": fits("n1 n2", pod("p", **near(term(ZONE))), pod("w", "n2", WEB)),
    "near nothing": unschedulable(
        all_refused("didn't match pod affinity rules"), pod("p", **near(term())), pod("w", "n2")
    ),
    "near itself, the first": fits("n1 n2 n3", pod("p", "", WEB, **near(term(ZONE)))),
    "near itself, not the first": fits(
        "n3", pod("p", "", WEB, **near(term(ZONE))), pod("w", "n3", WEB)
    ),
    "near itself, on nodes with the label": fits(
        "n1 n2",
        pod("p", "", WEB, **near(term(ZONE))),
        among=(node("n1", "a"), node("n2", "a"), node("n3")),
    ),
    "near a pod that meets all terms": fits(
        "n1",
        pod("p", **near(term(ZONE), term(HOST, {"matchLabels": {"tier": "db"}}))),
        pod("v", "n3", WEB),
        pod("w", "n1", {**WEB, "tier": "db"}),
    ),
    "near pods that meet one term each": unschedulable(
        all_refused("didn't match pod affinity rules"),
        pod("p", **near(term(ZONE), term(HOST, {"matchLabels": {"tier": "db"}}))),
        pod("v", "n1", WEB),
        pod("w", "n1", {"tier": "db"}),
    ),
    "near a pod of another namespace": unschedulable(
        all_refused("didn't match pod affinity rules"),
        pod("p", **near(term())),
        namespace("other"),
        pod("w", "n2", WEB, namespace="other"),
    ),
    "near a pod of a named namespace": fits(
        "n2",
        pod("p", **near(term(namespaces=["other"]))),
        namespace("other"),
        pod("w", "n2", WEB, namespace="other"),
        pod("v", "n1", WEB),
    ),
    "near a pod of a selected namespace": fits(
        "n2",
        pod("p", **near(term(namespaceSelector={"matchLabels": {"team": "x"}}))),
        namespace("other", team="x"),
        pod("w", "n2", WEB, namespace="other"),
        pod("v", "n1", WEB),
    ),
    "near a pod of any namespace": fits(
        "n1 n2",
        pod("p", **near(term(namespaceSelector={}))),
        namespace("other"),
        pod("w", "n2", WEB, namespace="other"),
        pod("v", "n1", WEB),
    ),
    "near pods without a selector": unschedulable(
        all_refused("didn't match pod affinity rules"),
        pod("p", **near(term(selector=None))),
        pod("w", "n2", WEB),
    ),
    "near a pod that terminates": fits(
        "n2", pod("p", **near(term())), pod("w", "n2", WEB, terminating=True)
    ),
    "near a pod of the same revision": fits(
        "n2",
        pod("p", "", {"rev": "2"}, **near(term(matchLabelKeys=["rev"]))),
        pod("v", "n1", {**WEB, "rev": "1"}),
        pod("w", "n2", {**WEB, "rev": "2"}),
    ),
    "near by an expression": fits(
        "n3",
        pod(
            "p",
            **near(term(selector={"matchExpressions": [{"key": "x", "operator": "Exists"}]})),
        ),
        pod("w", "n3", {"x": "y"}),
    ),
}
ANTI_AFFINITY = {
    "apart from a pod on the node": fits("n1 n3", pod("p", **apart(term())), pod("w", "n2", WEB)),
    "apart from a pod in the zone": fits("n3", pod("p", **apart(term(ZONE))), pod("w", "n2", WEB)),
    "apart from pods everywhere": unschedulable(
        all_refused("didn't match pod anti-affinity rules", resolvable=True),
        pod("p", **apart(term(ZONE))),
        pod("v", "n1", WEB),
        pod("w", "n3", WEB),
    ),
    "apart, where a label is missing": fits(
        "n3",
        pod("p", **apart(term(ZONE))),
        pod("w", "n1", WEB),
        pod("v", "n3", WEB),
        among=(node("n1", "a"), node("n2", "a"), node("n3")),
    ),
    "apart by one of two terms": fits(
        "n1",
        pod("p", **apart(term(), term(ZONE, {"matchLabels": {"tier": "db"}}))),
        pod("v", "n2", WEB),
        pod("w", "n3", {"tier": "db"}),
    ),
    "apart from pods of other revisions": fits(
        "n1 n3",
        pod("p", "", {"rev": "2"}, **apart(term(mismatchLabelKeys=["rev"]))),
        pod("v", "n1", {**WEB, "rev": "2"}),
        pod("w", "n2", {**WEB, "rev": "1"}),
    ),
    "a pod there wants to be apart from its own revision": fits(
        "n1 n2 n3",
        pod("p", "", {**WEB, "rev": "2"}),
        pod("w", "n2", {"rev": "1"}, **apart(term(matchLabelKeys=["rev"]))),
    ),
    "apart from pods of selected namespaces": fits(
        "n1 n3",
        pod("p", **apart(term(namespaceSelector={"matchLabels": {"team": "x"}}))),
        namespace("other", team="x"),
        pod("w", "n2", WEB, namespace="other"),
        pod("v", "n1", WEB),
    ),
    "a pod there wants to be apart": fits(
        "n1 n3", pod("p", "", WEB), pod("w", "n2", **apart(term()))
    ),
    "a pod in the zone wants to be apart": fits(
        "n3", pod("p", "", WEB), pod("w", "n2", **apart(term(ZONE)))
    ),
    "pods everywhere want to be apart": unschedulable(
        all_refused("didn't satisfy existing pods anti-affinity rules", resolvable=True),
        pod("p", "", WEB),
        pod("v", "n1", **apart(term(ZONE))),
        pod("w", "n3", **apart(term(ZONE))),
    ),
    "a pod of another namespace wants to be apart": fits(
        "n1 n2 n3",
        pod("p", "", WEB),
        namespace("other"),
        pod("w", "n2", namespace="other", **apart(term())),
    ),
    "a pod that selects the namespace wants to be apart": fits(
        "n1 n3",
        pod("p", "", WEB),
        namespace("other"),
        pod(
            "w",
            "n2",
            namespace="other",
            **apart(
                term(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}})
            ),
        ),
    ),
    "both want to be apart": unschedulable(
        refused(
            "1 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't satisfy existing"
            " pods anti-affinity rules",
            f"3 {NO_VICTIMS}",
        ),
        pod("p", "", WEB, **apart(term(selector={"matchLabels": {"tier": "db"}}))),
        pod("v", "n3", {"tier": "db"}),
        pod("w", "n1", **apart(term(ZONE))),
    ),
}
SPREAD = {
    "the zone with fewer pods": fits("n3", pod("p", "", WEB, **spread()), pod("w", "n1", WEB)),
    "one more is allowed": fits(
        "n1 n2 n3", pod("p", "", WEB, **spread(skew=2)), pod("w", "n1", WEB)
    ),
    "the node with fewer pods": fits(
        "n2",
        pod("p", "", WEB, **spread(HOST)),
        pod("v", "n1", WEB),
        pod("w", "n3", WEB),
    ),
    "a pod that does not count itself": fits("n1 n2 n3", pod("p", **spread()), pod("w", "n1", WEB)),
    "no node but one has the label": unschedulable(
        refused(
            "1 node(s) didn't match pod topology spread constraints, 2 node(s) didn't match pod"
            " topology spread constraints (missing required label)",
            f"1 {NO_VICTIMS}, 2 {NOBODY}",
        ),
        pod("p", "", WEB, **spread(minDomains=2)),
        pod("w", "n1", WEB),
        among=(node("n1", "a"), node("n2"), node("n3")),
    ),
    "enough domains": fits(
        "n1 n2 n3",
        pod("p", "", WEB, **spread(minDomains=2)),
        pod("v", "n1", WEB),
        pod("w", "n3", WEB),
    ),
    "terminating pods do not count": fits(
        "n1 n2 n3", pod("p", "", WEB, **spread()), pod("w", "n1", WEB, terminating=True)
    ),
    "pods of other namespaces do not count": fits(
        "n1 n2 n3",
        pod("p", "", WEB, **spread()),
        namespace("other"),
        pod("w", "n1", WEB, namespace="other"),
    ),
    "nodes that it does not select do not count": fits(
        "n1 n2",
        pod("p", "", WEB, nodeSelector={ZONE: "a"}, **spread()),
        pod("w", "n1", WEB),
    ),
    "nodes that it does not select count": unschedulable(
        refused(
            "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod"
            " topology spread constraints",
            f"1 {NOBODY}, 2 {NO_VICTIMS}",
        ),
        pod("p", "", WEB, nodeSelector={ZONE: "a"}, **spread(nodeAffinityPolicy="Ignore")),
        pod("w", "n1", WEB),
    ),
    "tainted nodes count": unschedulable(
        refused(
            "1 node(s) had untolerated taint(s), 2 node(s) didn't match pod topology spread"
            " constraints",
            f"1 {NOBODY}, 2 {NO_VICTIMS}",
        ),
        pod("p", "", WEB, **spread()),
        pod("w", "n1", WEB),
        among=(*NODES[:2], node("n3", "b", taints=[{"key": "k", "effect": "NoSchedule"}])),
    ),
    "tainted nodes do not count": fits(
        "n1 n2",
        pod("p", "", WEB, **spread(nodeTaintsPolicy="Honor")),
        pod("w", "n1", WEB),
        among=(*NODES[:2], node("n3", "b", taints=[{"key": "k", "effect": "NoSchedule"}])),
    ),
    "only pods of the same revision": fits(
        "n1 n2 n3",
        pod("p", "", {**WEB, "rev": "2"}, **spread(matchLabelKeys=["rev"])),
        pod("w", "n1", {**WEB, "rev": "1"}),
    ),
    "an empty selector counts nothing": fits(
        "n1 n2 n3", pod("p", "", WEB, **spread(labelSelector={})), pod("w", "n1", WEB)
    ),
    "a preference": fits(
        "n1 n2 n3",
        pod("p", "", WEB, **spread(whenUnsatisfiable="ScheduleAnyway")),
        pod("w", "n1", WEB),
    ),
    "two constraints": fits(
        "n3",
        pod(
            "p",
            "",
            WEB,
            topologySpreadConstraints=[
                *spread()["topologySpreadConstraints"],
                *spread(HOST)["topologySpreadConstraints"],
            ],
        ),
        pod("v", "n1", WEB),
    ),
}
PORTS = {
    "a port that is free elsewhere": fits(
        "n1 n3", pod("p", ports=[port()]), pod("w", "n2", ports=[port()])
    ),
    "a port that is free nowhere": unschedulable(
        all_refused("didn't have free ports for the requested pod ports", resolvable=True),
        pod("p", ports=[port()]),
        *(pod(f"w{x}", x, ports=[port()]) for x in sorted(ALL)),
    ),
    "another protocol": fits(
        "n1 n2 n3", pod("p", ports=[port(protocol="UDP")]), pod("w", "n2", ports=[port()])
    ),
    "another address": fits(
        "n1 n2 n3",
        pod("p", ports=[port(hostIP="127.0.0.1")]),
        pod("w", "n2", ports=[port(hostIP="10.0.0.1")]),
    ),
    "all addresses": fits(
        "n1 n3",
        pod("p", ports=[port()]),
        pod("w", "n2", ports=[port(hostIP="10.0.0.1")]),
    ),
    "one address, where all are in use": fits(
        "n1 n3",
        pod("p", ports=[port(hostIP="10.0.0.1")]),
        pod("w", "n2", ports=[port(hostIP="0.0.0.0")]),
    ),
    "a port of a sidecar": fits(
        "n1 n3",
        pod("p", ports=[port()]),
        pod(
            "w",
            "n2",
            initContainers=[
                {
                    "name": "i",
                    "image": "i",
                    "restartPolicy": "Always",
                    "ports": [{"containerPort": 8080, "hostPort": 8080}],
                }
            ],
        ),
    ),
    "a port of an init container": fits(
        "n1 n2 n3",
        pod("p", ports=[port()]),
        pod(
            "w",
            "n2",
            initContainers=[
                {"name": "i", "image": "i", "ports": [{"containerPort": 8080, "hostPort": 8080}]}
            ],
        ),
    ),
    "ports come before resources": unschedulable(
        refused(
            "1 node(s) didn't have free ports for the requested pod ports, 2 Insufficient cpu",
            f"1 {NO_VICTIMS}, 2 {NOBODY}",
        ),
        pod("p", cpu="9", ports=[port()]),
        pod("w", "n2", ports=[port()]),
    ),
}
VOLUMES = {
    "a volume of one node": fits(
        "n3", pod("p", **uses("c")), volume("v", "n3", of="c"), claim("c", "v")
    ),
    "a volume of a node that is full": unschedulable(
        refused(
            "1 Insufficient cpu, 2 node(s) didn't match PersistentVolume's node affinity",
            f"1 {NO_VICTIMS}, 2 {NOBODY}",
        ),
        pod("p", cpu="2", **uses("c")),
        volume("v", "n3", of="c"),
        claim("c", "v"),
        pod("w", "n3", cpu="3"),
    ),
    "a volume of a zone": fits(
        "n1 n2",
        pod("p", **uses("c")),
        volume("v", of="c", labels={ZONE: "a"}),
        claim("c", "v"),
    ),
    "a volume of two zones": fits(
        "n1 n2 n3",
        pod("p", **uses("c")),
        volume("v", of="c", labels={ZONE: "a__b"}),
        claim("c", "v"),
    ),
    "a volume of no zone here": unschedulable(
        all_refused("had no available volume zone"),
        pod("p", **uses("c")),
        volume("v", of="c", labels={ZONE: "z"}),
        claim("c", "v"),
    ),
    "volumes of two nodes": unschedulable(
        all_refused("didn't match PersistentVolume's node affinity"),
        pod("p", **uses("c", "d")),
        volume("v", "n3", of="c"),
        claim("c", "v"),
        volume("u", "n1", of="d"),
        claim("d", "u"),
    ),
    "no claim": unschedulable(
        not_evaluated('persistentvolumeclaim "c" not found'), pod("p", **uses("c"))
    ),
    "a claim that is not bound": unschedulable(
        not_evaluated("pod has unbound immediate PersistentVolumeClaims"),
        pod("p", **uses("c")),
        claim("c"),
    ),
    "a claim that is not provisioned": unschedulable(
        not_evaluated("pod has unbound immediate PersistentVolumeClaims"),
        pod("p", **uses("c")),
        storage_class("fast", "example.com/disk", waits=False),
        claim("c", cls="fast"),
    ),
    "a claim of a class that does not exist": unschedulable(
        not_evaluated("pod has unbound immediate PersistentVolumeClaims"),
        pod("p", **uses("c")),
        claim("c", cls="none"),
    ),
    "a claim that waits for the pod, and no volume": unschedulable(
        all_refused("didn't find available persistent volumes to bind"),
        pod("p", **uses("c")),
        storage_class("local", "kubernetes.io/no-provisioner"),
        claim("c", cls="local"),
    ),
    "a claim that waits for the pod, and a volume": fits(
        "n2",
        pod("p", **uses("c")),
        storage_class("local", "kubernetes.io/no-provisioner"),
        volume("v", "n2", cls="local"),
        claim("c", cls="local"),
    ),
    "a claim that waits for the pod, and a small volume": unschedulable(
        all_refused("didn't find available persistent volumes to bind"),
        pod("p", **uses("c")),
        storage_class("local", "kubernetes.io/no-provisioner"),
        volume("v", "n2", cls="local", size="1Mi"),
        claim("c", cls="local"),
    ),
    "two claims that wait, and one volume each": fits(
        "n2",
        pod("p", **uses("c", "d")),
        storage_class("local", "kubernetes.io/no-provisioner"),
        volume("u", "n2", cls="local"),
        volume("v", "n2", cls="local"),
        volume("w", "n3", cls="local"),
        claim("c", cls="local"),
        claim("d", cls="local"),
    ),
    "a claim that is for one pod": unschedulable(
        all_refused(
            "unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already"
            " in-use by another pod",
            resolvable=True,
        ),
        pod("p", **uses("c")),
        volume("v", of="c", mode="ReadWriteOncePod"),
        claim("c", "v", mode="ReadWriteOncePod"),
        pod("w", "n1", **uses("c")),
    ),
    "a disk that is in use": fits(
        "n1 n3",
        pod("p", **disk("iscsi", iqn="iqn.2030-01.com.example:x", lun=0, targetPortal="10.0.0.1")),
        pod(
            "w",
            "n2",
            **disk("iscsi", iqn="iqn.2030-01.com.example:x", lun=0, targetPortal="10.0.0.1"),
        ),
    ),
    "a disk that is only read": fits(
        "n1 n2 n3",
        pod("p", **disk("gcePersistentDisk", pdName="x", readOnly=True)),
        pod("w", "n2", **disk("gcePersistentDisk", pdName="x", readOnly=True)),
    ),
    "an image that is in use": fits(
        "n1 n3",
        pod("p", **disk("rbd", monitors=["m1", "m2"], image="x")),
        pod("w", "n2", **disk("rbd", monitors=["m2"], image="x")),
    ),
}
TOGETHER = {
    "volume and anti-affinity": unschedulable(
        refused(
            "1 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't match"
            " PersistentVolume's node affinity",
            f"1 {NO_VICTIMS}, 2 {NOBODY}",
        ),
        pod("p", **uses("c"), **apart(term())),
        volume("v", "n3", of="c"),
        claim("c", "v"),
        pod("w", "n3", WEB),
    ),
    "spread and affinity": unschedulable(
        refused(
            "1 node(s) didn't match pod affinity rules, 2 node(s) didn't match pod topology"
            " spread constraints",
            f"1 {NOBODY}, 2 {NO_VICTIMS}",
        ),
        pod("p", "", WEB, **near(term(ZONE)), **spread()),
        pod("w", "n1", WEB),
    ),
}
CASES: dict[str, Case] = {**AFFINITY, **ANTI_AFFINITY, **SPREAD, **PORTS, **VOLUMES, **TOGETHER}

LOW: Obj = {"priority": 1}
HIGH: Obj = {"priority": 100}
Preempted = tuple[tuple[str, tuple[str, ...]], ...]
"""Nodes on which a pod may preempt others, and whom, the fewest victims first."""
PREEMPTED: dict[str, tuple[tuple[Obj, ...], Preempted]] = {
    "the fewest victims first": (
        (
            pod("p", cpu="3", **HIGH),
            *(pod(f"v{x}", "n1", cpu="2", **LOW) for x in range(2)),
            pod("w", "n2", cpu="4", **LOW),
            pod("u", "n3", cpu="4", **HIGH),
        ),
        (("n2", ("default/w",)), ("n1", ("default/v0", "default/v1"))),
    ),
    "the more important pod is spared": (
        (
            pod("p", cpu="2", **HIGH),
            pod("v", "n1", cpu="2", **LOW),
            pod("w", "n1", cpu="2", priority=2),
            pod("t", "n2", cpu="4", **HIGH),
            pod("u", "n3", cpu="4", **HIGH),
        ),
        (("n1", ("default/v",)),),
    ),
    "nobody is less important": (
        (pod("p", cpu="3", **LOW), *(pod(f"u{x}", x, cpu="4", **LOW) for x in ("n1", "n2", "n3"))),
        (),
    ),
    "the pod never preempts": (
        (
            pod("p", cpu="3", preemptionPolicy="Never", **HIGH),
            *(pod(f"u{x}", x, cpu="4", **LOW) for x in ("n1", "n2", "n3")),
        ),
        (),
    ),
    "a pod that wants to be apart": (
        (
            pod("p", "", WEB, **HIGH),
            *(pod(f"u{x}", x, cpu="1", **LOW, **apart(term())) for x in ("n1", "n2")),
            pod("u", "n3", **HIGH, **apart(term())),
        ),
        (("n1", ("default/un1",)), ("n2", ("default/un2",))),
    ),
}
