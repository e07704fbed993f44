"""Objects that hold as much as they may, and the largest that people really send.

`BRIMS` just fit, so that all of a write happens to them: they are the longest writes there are.
`LARGE` are what real clusters hold; they have to be stored.
"""

import json
from typing import Any

import yaml

from hostile.floods import (
    CLUSTERS,
    RBAC,
    REVIEWS,
    SECRETS,
    applied,
    container,
    device_slice,
    filled,
    made,
    message,
    operations,
    pod,
    protobuf,
)
from hostile.requests import (
    APPLY,
    CONFIG_MAPS,
    JSON_PATCH,
    MEBI,
    MERGE,
    PODS,
    PROTOBUF,
    SLICES,
    STRATEGIC,
    TARGET,
    YAML,
    Bomb,
    config_map,
)

MOST = 9_900
"""Fields and list items; a few less than an object may have."""
KEYS = {f"k{n}": "v" for n in range(MOST)}


def as_yaml(data: dict[str, str]) -> bytes:
    """Write a ConfigMap as people do: a block of text under each key."""
    lines = ["metadata:", "  generateName: bomb-", "data:"]
    for name, text in data.items():
        lines += [f"  {name}: |", *(f"    {line}" for line in text.splitlines())]
    return ("\n".join(lines) + "\n").encode()


def slice_as_yaml() -> bytes:
    """Write a full slice as YAML in blocks."""

    return str(
        yaml.dump(json.loads(json.dumps(device_slice(128, 31))), Dumper=yaml.CSafeDumper)
    ).encode()


def full_slice() -> dict[str, Any]:
    """Return a slice with as much as is checked item by item."""
    made = device_slice(128, 32)
    for device in made["spec"]["devices"]:
        device["capacity"] = {}
    return made


def named(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Return items with names of their own."""
    return [{"name": f"n{n}", **fields} for n in range(count)]


def full_role(verbs: int, names: int) -> dict[str, Any]:
    """Return a role whose one rule means very many things."""
    rule = {
        "apiGroups": [""],
        "resources": [f"r{n}" for n in range(MOST // 3)],
        "verbs": [f"v{n}" for n in range(verbs)],
        "resourceNames": [f"n{n}" for n in range(names)],
    }
    return {"rules": [rule]}


BRIMS: dict[str, Bomb] = {
    "full: keys": Bomb("POST", CONFIG_MAPS, lambda: config_map(data=KEYS)),
    "full: secret keys": made(SECRETS, lambda: {"data": dict.fromkeys(KEYS, "MQ==")}),
    "full: annotations": made(CONFIG_MAPS, lambda: {"metadata": {"annotations": KEYS}}),
    "full: labels": made(CONFIG_MAPS, lambda: {"metadata": {"labels": KEYS}}),
    "full: finalizers": made(
        CONFIG_MAPS, lambda: {"metadata": {"finalizers": [f"a.example/{k}" for k in KEYS]}}
    ),
    "full: owners": made(
        CONFIG_MAPS,
        lambda: {
            "metadata": {"ownerReferences": named(MOST // 5, apiVersion="v1", kind="Pod", uid="u")}
        },
    ),
    "full: managers": made(
        CONFIG_MAPS,
        lambda: {
            "metadata": {
                "managedFields": [
                    {
                        "manager": f"m{n}",
                        "operation": "Apply",
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "time": "2026-01-01T00:00:00Z",
                        "fieldsV1": {"f:data": {"f:k": {}}},
                    }
                    for n in range(2 * MOST // 9)
                ]
            },
            "data": {"k": "v"},
        },
    ),
    "full: containers": pod(lambda: {"containers": named(MOST // 3, image="i")}),
    "full: containers without images": pod(lambda: {"containers": named(MOST // 2)}),
    "full: containers without anything": pod(lambda: {"containers": [{}] * MOST}),
    "full: unknown fields of containers": pod(lambda: {"containers": [{"x": 1}] * (MOST // 2)}),
    "full: variables": container(lambda: {"env": named(MOST // 3, value="v")}),
    "full: ports": container(
        lambda: {"ports": [{"containerPort": n + 1} for n in range(MOST // 2)]}
    ),
    "full: mounts": container(
        lambda: {"volumeMounts": [{"name": "v", "mountPath": f"/{n}"} for n in range(MOST // 3)]}
    ),
    "full: arguments": container(lambda: {"args": ["$(A)"] * MOST}),
    "full: resources": container(
        lambda: {"resources": {"limits": {f"a.example/{k}": "1" for k in KEYS}}}
    ),
    "full: volumes": pod(lambda: {"volumes": named(MOST // 3, emptyDir={})}),
    "full: volumes of nothing": pod(lambda: {"volumes": named(MOST // 2)}),
    "full: claims of a pod": pod(
        lambda: {"resourceClaims": named(MOST // 3, resourceClaimName="x")}
    ),
    "full: tolerations": pod(
        lambda: {"tolerations": [{"key": k, "operator": "Exists"} for k in list(KEYS)[: MOST // 3]]}
    ),
    "full: affinity": pod(
        lambda: {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                        ]
                        * (MOST // 7)
                    }
                }
            }
        }
    ),
    "full: pods of a replica set": made(
        "/apis/apps/v1/namespaces/default/replicasets",
        lambda: {
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": named(MOST // 3 - 10, image="i")},
                },
            }
        },
    ),
    "full: predicates": made(
        f"{CLUSTERS}/v1beta1/namespaces/default/placements",
        lambda: {
            "spec": {
                "predicates": [
                    {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"k": k}}}}
                    for k in list(KEYS)[: MOST // 5]
                ]
            }
        },
    ),
    "full: taints of a cluster": made(
        f"{CLUSTERS}/v1/managedclusters",
        lambda: {
            "spec": {"taints": [{"key": k, "effect": "NoSelect"} for k in list(KEYS)[: MOST // 3]]}
        },
    ),
    "full: subjects": made(
        f"{RBAC}/namespaces/default/rolebindings",
        lambda: {
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "view",
            },
            "subjects": named(6_000, kind="User", apiGroup="rbac.authorization.k8s.io"),
        },
    ),
    "full: rules": made(
        f"{RBAC}/namespaces/default/roles",
        lambda: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}] * 3_500},
    ),
    "full: a rule for very much": made(
        f"{RBAC}/namespaces/default/roles", lambda: full_role(MOST // 3, MOST // 3)
    ),
    "full: a slice": made(SLICES, full_slice),
    "full: a capacity of many values": made(
        SLICES,
        lambda: {
            "spec": device_slice(1, 1)["spec"]
            | {
                "devices": [
                    {
                        "name": "d",
                        "capacity": {
                            "x" * 1_000_000: {
                                "value": "1",
                                "requestPolicy": {"default": "1", "validValues": ["1"] * 20_000},
                            }
                        },
                    }
                ]
            }
        },
    ),
    "full: groups of a review": made(
        f"{REVIEWS}/subjectaccessreviews",
        lambda: {
            "spec": {
                "user": "u",
                "groups": list(KEYS),
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            }
        },
    ),
    "full: a what-if": Bomb(
        "POST",
        "/debug/placements/",
        lambda: json.dumps(
            {"changes": [{"silence": {"selector": f"k in (a{n},b)"}} for n in range(1_600)]}
        ).encode(),
    ),
    "full: YAML": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"[", b"{a: b},", b"{}]", size=12_000 * 7), YAML
    ),
    "full: unknown YAML": Bomb(
        "POST", PODS, lambda: b"spec: {containers: [" + b"{x: 1}, " * 4_900 + b"]}", YAML
    ),
    "full: protobuf": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: protobuf(
            "ConfigMap",
            b"".join(message(2, message(1, k.encode()) + message(2, b"v")) for k in KEYS),
        ),
        PROTOBUF,
    ),
    "full: a patch of many steps": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/data", "value": {}},
            step={"op": "add", "path": "/data/k%d", "value": "v"},
        ),
        JSON_PATCH,
    ),
    "full: another patch of many steps": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(step={"op": "replace", "path": "/data/k%d", "value": "w"}, count=9_000),
        JSON_PATCH,
    ),
    "full: a merge patch": Bomb(
        "PATCH", TARGET, lambda: json.dumps({"data": dict.fromkeys(KEYS, "x")}).encode(), MERGE
    ),
    "full: a merge patch that deletes": Bomb(
        "PATCH", TARGET, lambda: json.dumps({"data": dict.fromkeys(KEYS)}).encode(), MERGE
    ),
    "full: a strategic patch": Bomb(
        "PATCH",
        f"{PODS}/target",
        lambda: json.dumps({"spec": {"volumes": named(MOST // 2)}}).encode(),
        STRATEGIC,
    ),
    "full: an order": Bomb(
        "PATCH",
        f"{PODS}/target",
        lambda: json.dumps(
            {
                "spec": {
                    "$setElementOrder/volumes": named(MOST // 4),
                    "volumes": named(MOST // 4),
                }
            }
        ).encode(),
        STRATEGIC,
    ),
    "full: keys to retain": Bomb(
        "PATCH",
        TARGET,
        lambda: json.dumps(
            {
                "data": {f"k{n}": "v" for n in range(MOST // 2)}
                | {"$retainKeys": list(KEYS)[: MOST // 2]}
            }
        ).encode(),
        STRATEGIC,
    ),
    "full: applied": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/full?fieldManager=m",
        lambda: applied(metadata={"name": "full"}, data=KEYS),
        APPLY,
    ),
    "full: applied by another": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/full?fieldManager=other",
        lambda: applied(metadata={"name": "full"}, data=dict.fromkeys(KEYS, "w")),
        APPLY,
    ),
    "full: applied by another, with force": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/full?fieldManager=other&force=true",
        lambda: applied(metadata={"name": "full"}, data=dict.fromkeys(KEYS, "w")),
        APPLY,
    ),
    "full: no longer applied": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/full?fieldManager=other",
        lambda: applied(metadata={"name": "full"}, data={"k": "v"}),
        APPLY,
    ),
    "full: applied containers": Bomb(
        "PATCH",
        f"{PODS}/full?fieldManager=m",
        lambda: applied(
            kind="Pod", metadata={"name": "full"}, spec={"containers": named(MOST // 3, image="i")}
        ),
        APPLY,
    ),
    "full: applied ports": Bomb(
        "PATCH",
        f"{PODS}/full?fieldManager=m",
        lambda: applied(
            kind="Pod",
            metadata={"name": "full"},
            spec={
                "containers": named(
                    1, image="i", ports=[{"containerPort": n + 1} for n in range(MOST // 2)]
                )
            },
        ),
        APPLY,
    ),
    # A query is never longer than 64 KiB.
    "full: requirements": Bomb("GET", f"{CONFIG_MAPS}?labelSelector=" + "a," * 32_000 + "a"),
    "full: values": Bomb("GET", f"{CONFIG_MAPS}?labelSelector=k+in+(" + "a," * 32_000 + "a)"),
    "full: other values": Bomb(
        "GET", f"{CONFIG_MAPS}?labelSelector=k+in+({','.join(map(str, range(11_000)))})"
    ),
    "full: field requirements": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=" + "metadata.name=a," * 4_000
    ),
    "full: a field requirement": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name=" + "a" * 65_000
    ),
    "full: a watch": Bomb(
        "GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&labelSelector=" + "a," * 32_000 + "a"
    ),
    "full: a collection to delete": Bomb(
        "DELETE", f"{CONFIG_MAPS}?labelSelector=" + "a," * 32_000 + "a"
    ),
    "full: options": Bomb("GET", f"{CONFIG_MAPS}?" + "a&" * 32_000),
    "full: escaped options": Bomb("GET", f"{CONFIG_MAPS}?" + "%61&" * 16_000),
    "full: a path": Bomb("GET", "/a" * 32_000),
}

LARGE: dict[str, Bomb] = {
    "a full slice": Bomb("POST", SLICES, lambda: json.dumps(device_slice(128, 31)).encode()),
    "a full slice in YAML": Bomb("POST", SLICES, slice_as_yaml, YAML),
    "a config map of 1 MB": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(data={"a": "x y\n" * 250_000})
    ),
    "a config map of 1 MB in YAML": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: as_yaml(
            {f"file-{n}": "a line of text: {with}, [signs]\n" * 3_000 for n in range(10)}
        ),
        YAML,
    ),
    "a config map of 1 MB, applied": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/large?fieldManager=m&force=true",
        lambda: applied(metadata={"name": "large"}, data={"a": 'x "y"\n' * 140_000}),
        APPLY,
    ),
    "a secret of 1 MB": Bomb(
        "POST",
        SECRETS,
        lambda: json.dumps(
            {"metadata": {"generateName": "bomb-"}, "data": {"k": "aaaa" * (MEBI // 4)}}
        ).encode(),
    ),
    "a config map of 500 files": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: config_map(data={f"file-{n}.json": '{"a": [1, 2, 3]}' * 100 for n in range(500)}),
    ),
    "a pod of 100 containers": pod(
        lambda: {
            "containers": [
                {
                    "name": f"c{n}",
                    "image": "i",
                    "env": [{"name": f"V{m}", "value": "v"} for m in range(20)],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                }
                for n in range(100)
            ]
        }
    ),
}
