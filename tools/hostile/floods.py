"""Requests that hold very many of one thing, far more than any object may.

They are part of `BOMBS`; objects that hold as much as they may are in brims.py.
"""

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from hostile.requests import (
    APPLY,
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    JSON_PATCH,
    MEBI,
    MERGE,
    PODS,
    PROTOBUF,
    RULES,
    SLICES,
    STRATEGIC,
    TARGET,
    YAML,
    Bomb,
    config_map,
    selector,
    within,
)

REVIEWS = "/apis/authorization.k8s.io/v1"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTERS = "/apis/cluster.open-cluster-management.io"
SECRETS = "/api/v1/namespaces/default/secrets"
Fields = dict[str, Any]
FULL = 3 * MEBI - 1024


def filled(start: bytes, item: bytes, end: bytes, *, size: int = FULL) -> bytes:
    """Repeat something until a body is full."""
    return start + item * ((size - len(start) - len(end)) // len(item)) + end


def numbered(start: bytes, item: str, end: bytes, *, size: int = FULL) -> bytes:
    """Repeat something with a number in it until a body is full."""
    parts: list[bytes] = []
    length = len(start) + len(end)
    while length < size:
        parts.append((item % len(parts)).encode())
        length += len(parts[-1])
    return start + b"".join(parts) + end


def made(path: str, fields: Callable[[], Fields]) -> Bomb:
    """Return the creation of an object."""

    def body() -> bytes:
        value = fields()
        metadata = {"generateName": "bomb-"} | value.pop("metadata", {})
        return json.dumps({"metadata": metadata, **value}).encode()

    return Bomb("POST", path, body)


def pod(spec: Callable[[], Fields]) -> Bomb:
    """Return the creation of a pod with something in its spec."""
    usual = {"containers": [{"name": "c", "image": "i"}]}
    return made(PODS, lambda: {"spec": usual | spec()})


def container(fields: Callable[[], Fields]) -> Bomb:
    """Return the creation of a pod with something in its container."""
    return pod(lambda: {"containers": [{"name": "c", "image": "i", **fields()}]})


def applied(**fields: Any) -> bytes:
    """Write a configuration."""
    kind = fields.pop("kind", "ConfigMap")
    metadata = {"name": "applied"} | fields.pop("metadata", {})
    value = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}
    return json.dumps(value).encode()


def device_slice(devices: int, attributes: int) -> dict[str, Any]:
    """Return a slice of devices with attributes."""
    device = {
        "attributes": {f"a{n}": {"string": f"value-{n}"} for n in range(attributes)},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": "bomb-"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "nobody",
            "pool": {"name": "nobody", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{n}", **device} for n in range(devices)],
        },
    }


def operations(*first: dict[str, Any], step: dict[str, Any], count: int = 9_900) -> bytes:
    """Write a JSON patch that repeats one step; a `%d` in its path becomes a number."""
    steps = [
        {name: part % n if "%d" in str(part) else part for name, part in step.items()}
        for n in range(count)
    ]
    return json.dumps([*first, *steps]).encode()


def message(number: int, content: bytes) -> bytes:
    """Write one field of a protobuf message."""
    size, length = len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def protobuf(kind: str, content: bytes) -> bytes:
    """Write an object in protobuf."""
    names = message(1, message(1, b"v1") + message(2, kind.encode()))
    return b"k8s\0" + names + message(2, content)


def nested_message(depth: int) -> bytes:
    """Nest messages in each other."""
    nested = b""
    for _ in range(depth):
        nested = message(1, nested)
    return nested


MANY_KEYS = {f"k{n}": "v" for n in range(60_000)}

FLOODS: dict[str, Bomb] = {
    # -- JSON
    "empty objects": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[", b"{},", b"{}]")),
    "empty objects in an unknown field": Bomb(
        "POST", CONFIG_MAPS, lambda: within(filled(b"[", b"{},", b"{}]", size=FULL - 100))
    ),
    "one key, again and again": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"{", b'"a":1,', b'"a":1}')
    ),
    "repeated keys with a long path": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: filled(b'{"' + b"x" * 1000 + b'":{', b'"a":1,', b'"a":1}}', size=2 * MEBI),
    ),
    "many keys, one of them twice": Bomb(
        "POST", CONFIG_MAPS, lambda: numbered(b'{"data":{', '"%d":"",', b'"0":""}}')
    ),
    "objects with a repeated key": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"[", b'{"a":1,"a":2},', b"{}]")
    ),
    "whole numbers": Bomb("POST", CONFIG_MAPS, lambda: within(filled(b"[", b"1,", b"1]"))[:FULL]),
    "fractions": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[", b"0.1,", b"1]")),
    "numbers of 19 digits": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"[", b"9" * 20 + b",", b"1]")
    ),
    "escapes": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: filled(b'{"metadata":{"name":"a"},"data":{"k":"', b"\\u0041", b'"}}'),
    ),
    "escaped quotes": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: filled(b'{"metadata":{"name":"a"},"data":{"k":"', b'\\"', b'"}}'),
    ),
    "half characters": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: filled(b'{"metadata":{"name":"a"},"data":{"k":"', b"\\ud800", b'"}}'),
    ),
    "strings with half characters": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"[", b'"\\ud800",', b"1]")
    ),
    "spaces": Bomb("POST", CONFIG_MAPS, lambda: filled(b"{", b" ", b"}")),
    "lines, and an error": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[", b"1,\n", b"x]")),
    "an error at the end": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[", b'"a",', b"x")),
    "bytes that are not text, many": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b'["', b"\xff", b'"]')
    ),
    "unknown fields, refused": Bomb(
        "POST",
        f"{CONFIG_MAPS}?fieldValidation=Strict",
        lambda: numbered(b'{"metadata":{"name":"a"}', ',"u%d":1', b"}"),
    ),
    "unknown fields in unknown places": Bomb(
        "POST", PODS, lambda: numbered(b'{"spec":{"containers":[{"x":1}', ',{"x":%d}', b"]}}")
    ),
    "a wrong type in many places": Bomb(
        "POST", PODS, lambda: filled(b'{"spec":{"containers":[', b"1,", b"1]}}")
    ),
    # -- YAML
    "empty objects in YAML": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[", b"{},", b"{}]"), YAML),
    "keys in YAML": Bomb(
        "POST", CONFIG_MAPS, lambda: numbered(b"data:\n", "  k%d: v\n", b""), YAML
    ),
    "one key in YAML": Bomb("POST", CONFIG_MAPS, lambda: filled(b"", b"a: 1\n", b""), YAML),
    "a long word in YAML": Bomb("POST", CONFIG_MAPS, lambda: filled(b"a: ", b"x", b"\n"), YAML),
    "long lines of words in YAML": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"a: ", b"x y\n ", b"\n"), YAML
    ),
    "a long block in YAML": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"a: |\n", b"  x\n", b"\n"), YAML
    ),
    "a quoted text in YAML": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b'a: "', b"\\n", b'"\n'), YAML
    ),
    "comments": Bomb("POST", CONFIG_MAPS, lambda: filled(b"", b"#\n", b"a: 1\n"), YAML),
    "one long comment": Bomb("POST", CONFIG_MAPS, lambda: filled(b"#", b"x", b"\na: 1\n"), YAML),
    "empty lines": Bomb("POST", CONFIG_MAPS, lambda: filled(b"", b"\n", b"a: 1\n"), YAML),
    "documents": Bomb("POST", CONFIG_MAPS, lambda: filled(b"", b"---\n", b"a: 1\n"), YAML),
    "anchors": Bomb("POST", CONFIG_MAPS, lambda: numbered(b"[", "&a%d x,", b"x]"), YAML),
    "aliases": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[&a x,", b"*a,", b"x]"), YAML),
    "aliases of a list": Bomb(
        "POST", CONFIG_MAPS, lambda: filled(b"[&a [" + b"x," * 1000 + b"x],", b"*a,", b"x]"), YAML
    ),
    "merged keys": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: numbered(b"a: &a {", "k%d: 1, ", b"}\nb:\n", size=MEBI) + b"  - <<: *a\n" * 9,
        YAML,
    ),
    "tags": Bomb("POST", CONFIG_MAPS, lambda: filled(b"[", b"!a x,", b"x]"), YAML),
    "tag handles": Bomb(
        "POST", CONFIG_MAPS, lambda: numbered(b"", "%%TAG !t%d! a\n", b"--- 1\n"), YAML
    ),
    "keys that are lists": Bomb("POST", CONFIG_MAPS, lambda: filled(b"", b"? []\n", b""), YAML),
    "lists in YAML, not closed": Bomb("POST", CONFIG_MAPS, lambda: b"[" * FULL, YAML),
    "dashes": Bomb("POST", CONFIG_MAPS, lambda: b"- " * (FULL // 2), YAML),
    "YAML numbers": Bomb("POST", CONFIG_MAPS, lambda: numbered(b"[", "%d.5,", b"1]"), YAML),
    "empty objects, applied": Bomb(
        "PATCH", f"{TARGET}?fieldManager=m", lambda: filled(b"[", b"{},", b"{}]"), APPLY
    ),
    "JSON that is too long for YAML": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/applied?fieldManager=m",
        lambda: applied(data={"k": "\\" * (1 * MEBI)}),
        APPLY,
    ),
    # -- objects
    "60 000 keys": Bomb("POST", CONFIG_MAPS, lambda: config_map(data=MANY_KEYS)),
    "20 000 keys": Bomb(
        "POST", CONFIG_MAPS, lambda: config_map(data={f"k{n}": "v" for n in range(20_000)})
    ),
    "secret keys": Bomb(
        "POST",
        SECRETS,
        lambda: json.dumps(
            {"metadata": {"generateName": "bomb-"}, "data": dict.fromkeys(MANY_KEYS, "MQ==")}
        ).encode(),
    ),
    "a large secret that is not base64": Bomb(
        "POST",
        SECRETS,
        lambda: json.dumps(
            {"metadata": {"name": "a"}, "data": {"k": "a" * 2 * MEBI + "!"}}
        ).encode(),
    ),
    "a large secret": Bomb(
        "POST",
        SECRETS,
        lambda: json.dumps(
            {"metadata": {"name": "a"}, "data": {"k": "aaaa" * (MEBI // 2)}}
        ).encode(),
    ),
    "annotations": made(
        CONFIG_MAPS, lambda: {"metadata": {"annotations": {f"k{n}": "v" for n in range(60_000)}}}
    ),
    "labels": made(
        CONFIG_MAPS, lambda: {"metadata": {"labels": {f"k{n}": "v" for n in range(10_000)}}}
    ),
    "owners": made(
        CONFIG_MAPS,
        lambda: {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": f"{n}"}
                    for n in range(20_000)
                ]
            }
        },
    ),
    "finalizers": made(
        CONFIG_MAPS,
        lambda: {"metadata": {"finalizers": [f"a.example/f{n}" for n in range(60_000)]}},
    ),
    "long finalizers": made(
        CONFIG_MAPS,
        lambda: {"metadata": {"finalizers": ["x" * 20_000 + str(n) for n in range(100)]}},
    ),
    "managed fields": made(
        CONFIG_MAPS,
        lambda: {
            "metadata": {
                "managedFields": [
                    {
                        "manager": "m",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "time": "2026-01-01T00:00:00Z",
                        "fieldsV1": {"f:data": {f"f:k{n}": {} for n in range(60_000)}},
                    }
                ]
            }
        },
    ),
    "managers": made(
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
                    for n in range(15_000)
                ]
            }
        },
    ),
    "containers": pod(
        lambda: {"containers": [{"name": f"c{n}", "image": "i"} for n in range(20_000)]}
    ),
    "containers of one name": pod(lambda: {"containers": [{"name": "c", "image": "i"}] * 20_000}),
    "variables": container(
        lambda: {"env": [{"name": f"V{n}", "value": "v"} for n in range(40_000)]}
    ),
    "ports": container(
        lambda: {"ports": [{"containerPort": n % 65_535 + 1} for n in range(40_000)]}
    ),
    "mounts": container(
        lambda: {"volumeMounts": [{"name": "v", "mountPath": f"/{n}"} for n in range(30_000)]}
    ),
    "arguments": container(lambda: {"args": ["$(A)"] * 200_000}),
    "resources": container(
        lambda: {"resources": {"limits": {f"a.example/{n}": "1" for n in range(30_000)}}}
    ),
    "volumes": pod(lambda: {"volumes": [{"name": f"v{n}", "emptyDir": {}} for n in range(30_000)]}),
    "tolerations": pod(
        lambda: {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(30_000)]}
    ),
    "bad tolerations": pod(lambda: {"tolerations": [{"operator": "x", "effect": "y"}] * 30_000}),
    "claims of a pod": pod(
        lambda: {
            "resourceClaims": [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(30_000)]
        }
    ),
    "affinity terms": pod(
        lambda: {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                        ]
                        * 15_000
                    }
                }
            }
        }
    ),
    "devices": Bomb("POST", SLICES, lambda: json.dumps(device_slice(4_000, 2)).encode()),
    "attributes": Bomb("POST", SLICES, lambda: json.dumps(device_slice(4, 8_000)).encode()),
    "taints": made(
        SLICES,
        lambda: {
            "spec": device_slice(1, 1)["spec"]
            | {
                "devices": [
                    {
                        "name": "d",
                        "taints": [{"key": f"k{n}", "effect": "NoSchedule"} for n in range(30_000)],
                    }
                ]
            }
        },
    ),
    "requests of a claim": made(
        CLAIMS,
        lambda: {
            "spec": {
                "devices": {
                    "requests": [
                        {"name": f"r{n}", "exactly": {"deviceClassName": "c"}}
                        for n in range(20_000)
                    ]
                }
            }
        },
    ),
    "constraints of a claim": made(
        CLAIMS,
        lambda: {
            "spec": {"devices": {"constraints": [{"matchAttribute": "a.example/b"}] * 40_000}}
        },
    ),
    "opaque parameters": made(
        CLASSES,
        lambda: {
            "spec": {
                "config": [
                    {
                        "opaque": {
                            "driver": "a.example",
                            "parameters": {f"k{n}": 1 for n in range(80_000)},
                        }
                    }
                ]
            }
        },
    ),
    "selectors of a rule": made(
        RULES,
        lambda: {
            "spec": {
                "deviceSelector": {"driver": "a", **{f"u{n}": "x" for n in range(60_000)}},
                "taint": {"key": "a", "effect": "NoSchedule"},
            }
        },
    ),
    "rules of a role": made(
        f"{RBAC}/clusterroles",
        lambda: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}] * 20_000},
    ),
    "subjects of a binding": made(
        f"{RBAC}/namespaces/default/rolebindings",
        lambda: {
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "view",
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"u{n}"}
                for n in range(20_000)
            ],
        },
    ),
    "predicates of a placement": made(
        f"{CLUSTERS}/v1beta1/namespaces/default/placements",
        lambda: {
            "spec": {
                "predicates": [
                    {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"k": f"v{n}"}}}}
                    for n in range(15_000)
                ]
            }
        },
    ),
    "taints of a cluster": made(
        f"{CLUSTERS}/v1/managedclusters",
        lambda: {
            "spec": {"taints": [{"key": f"k{n}", "effect": "NoSelect"} for n in range(30_000)]}
        },
    ),
    # -- questions, subresources, options
    "groups of a review": made(
        f"{REVIEWS}/subjectaccessreviews",
        lambda: {
            "spec": {
                "user": "u",
                "groups": [f"g{n}" for n in range(100_000)],
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            }
        },
    ),
    "extras of a review": made(
        f"{REVIEWS}/subjectaccessreviews",
        lambda: {
            "spec": {
                "user": "u",
                "extra": {f"e{n}": ["v"] for n in range(60_000)},
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            }
        },
    ),
    "requirements of a review": made(
        f"{REVIEWS}/selfsubjectaccessreviews",
        lambda: {
            "spec": {
                "resourceAttributes": {
                    "verb": "list",
                    "resource": "pods",
                    "fieldSelector": {
                        "requirements": [
                            {"key": f"k{n}", "operator": "In", "values": ["v"]}
                            for n in range(20_000)
                        ]
                    },
                }
            }
        },
    ),
    "a selector of a review": made(
        f"{REVIEWS}/selfsubjectaccessreviews",
        lambda: {
            "spec": {
                "resourceAttributes": {
                    "verb": "list",
                    "resource": "pods",
                    "fieldSelector": {"rawSelector": "a=b," * 500_000},
                }
            }
        },
    ),
    "audiences of a token": made(
        f"{ACCOUNT}/token", lambda: {"spec": {"audiences": [f"a{n}" for n in range(100_000)]}}
    ),
    "a long token under review": made(
        "/apis/authentication.k8s.io/v1/tokenreviews", lambda: {"spec": {"token": "a." * MEBI}}
    ),
    "preconditions of a delete": Bomb(
        "DELETE",
        f"{CONFIG_MAPS}/nobody",
        lambda: json.dumps({"dryRun": ["All"] * 300_000}).encode(),
    ),
    "targets of a binding": Bomb(
        "POST",
        f"{PODS}/target/binding",
        lambda: json.dumps({"target": {f"u{n}": "" for n in range(100_000)}}).encode(),
    ),
    "changes of a what-if": Bomb(
        "POST",
        "/debug/placements/",
        lambda: json.dumps(
            {"changes": [{"drop": {"cluster": f"c{n}"}} for n in range(25_000)]}
        ).encode(),
    ),
    "selectors of a what-if": Bomb(
        "POST",
        "/debug/placements/",
        lambda: json.dumps(
            {"changes": [{"silence": {"selector": f"k in (a{n},b)"}} for n in range(18_000)]}
        ).encode(),
    ),
    "a placement to try": Bomb(
        "POST",
        "/debug/placements/",
        lambda: json.dumps(
            {
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {"tolerations": [{"key": f"k{n}"} for n in range(40_000)]},
            }
        ).encode(),
    ),
    "nothing but brackets in a what-if": Bomb(
        "POST", "/debug/placements/", lambda: filled(b"[", b"{},", b"{}]", size=MEBI)
    ),
    # -- protobuf
    "labels in protobuf": Bomb(
        "POST",
        CONFIG_MAPS,
        lambda: protobuf(
            "ConfigMap",
            b"".join(
                message(2, message(1, f"k{n}".encode()) + message(2, b"v")) for n in range(150_000)
            ),
        ),
        PROTOBUF,
    ),
    "unknown fields in protobuf": Bomb(
        "POST", CONFIG_MAPS, lambda: protobuf("ConfigMap", b"\x78\x00" * MEBI), PROTOBUF
    ),
    "empty messages in protobuf": Bomb(
        "POST", PODS, lambda: protobuf("Pod", message(2, b"\x12\x00" * MEBI)), PROTOBUF
    ),
    "deep protobuf": Bomb(
        "POST", CONFIG_MAPS, lambda: protobuf("ConfigMap", nested_message(5_000)), PROTOBUF
    ),
    # -- patches
    "a patch that fills a map": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/data", "value": {}},
            step={"op": "add", "path": "/data/k%d", "value": "v"},
        ),
        JSON_PATCH,
    ),
    "a patch that changes a large map": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/data", "value": {f"k{n}": "" for n in range(40_000)}},
            step={"op": "replace", "path": "/data/k%d", "value": "v"},
        ),
        JSON_PATCH,
    ),
    "a patch that empties a map": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/data", "value": {f"k{n}": "" for n in range(10_000)}},
            step={"op": "remove", "path": "/data/k%d"},
        ),
        JSON_PATCH,
    ),
    "a patch that moves": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/data", "value": {f"k{n}": "" for n in range(10_000)}},
            step={"op": "move", "from": "/data/k%d", "path": "/data/m"},
        ),
        JSON_PATCH,
    ),
    "a patch that tests a large value": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/data", "value": {f"k{n}": "" for n in range(10_000)}},
            {"op": "copy", "from": "/data", "path": "/binaryData"},
            step={"op": "test", "path": "/data", "value": {f"k{n}": "" for n in range(10)}},
            count=2,
        ),
        JSON_PATCH,
    ),
    "a patch that copies many small values": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            {"op": "add", "path": "/unknown", "value": {"a": [1] * 3_000}},
            step={"op": "copy", "from": "/unknown/a", "path": "/unknown/b%d"},
            count=400,
        ),
        JSON_PATCH,
    ),
    "a patch through a deep path": Bomb(
        "PATCH",
        TARGET,
        lambda: operations(
            step={"op": "add", "path": "/unknown" + "/a" * 190, "value": 1}, count=5_000
        ),
        JSON_PATCH,
    ),
    "a merge patch of many keys": Bomb(
        "PATCH", TARGET, lambda: json.dumps({"data": MANY_KEYS}).encode(), MERGE
    ),
    "a merge patch that deletes many keys": Bomb(
        "PATCH", TARGET, lambda: json.dumps({"data": dict.fromkeys(MANY_KEYS)}).encode(), MERGE
    ),
    "a merge patch of unknown keys": Bomb(
        "PATCH", TARGET, lambda: json.dumps(MANY_KEYS).encode(), MERGE
    ),
    "keys to retain": Bomb(
        "PATCH",
        TARGET,
        lambda: json.dumps(
            {
                "data": {f"k{n}": "v" for n in range(8_000)}
                | {"$retainKeys": [f"k{n}" for n in range(8_000)]}
            }
        ).encode(),
        STRATEGIC,
    ),
    "an order of elements": Bomb(
        "PATCH",
        f"{PODS}/target",
        lambda: json.dumps(
            {
                "spec": {
                    "$setElementOrder/tolerations": [{"key": f"k{n}"} for n in range(30_000)],
                    "tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(30_000)],
                    "$setElementOrder/volumes": [{"name": f"k{n}"} for n in range(10_000)],
                    "volumes": [{"name": f"k{n}", "emptyDir": {}} for n in range(10_000)],
                }
            }
        ).encode(),
        STRATEGIC,
    ),
    "10 000 applied keys": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/applied?fieldManager=m",
        lambda: applied(data={f"k{n}": "v" for n in range(10_000)}),
        APPLY,
    ),
    "other values for 10 000 keys": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/applied?fieldManager=other",
        lambda: applied(data={f"k{n}": "w" for n in range(10_000)}),
        APPLY,
    ),
    "10 000 applied keys, given up": Bomb(
        "PATCH", f"{CONFIG_MAPS}/applied?fieldManager=m", lambda: applied(data={"k": "v"}), APPLY
    ),
    "applied finalizers": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/applied?fieldManager=m",
        lambda: applied(metadata={"finalizers": [f"a.example/f{n}" for n in range(60_000)]}),
        APPLY,
    ),
    "applied fields that nobody declared": Bomb(
        "PATCH",
        f"{CONFIG_MAPS}/applied?fieldManager=m",
        lambda: applied(**{f"u{n}": 1 for n in range(60_000)}),
        APPLY,
    ),
    # -- queries and heads
    "options": Bomb("GET", f"{CONFIG_MAPS}?" + "a&" * 250_000),
    "escaped options": Bomb("GET", f"{CONFIG_MAPS}?" + "%61=%62&" * 60_000),
    "one long option": Bomb("GET", f"{CONFIG_MAPS}?x=" + "%61" * 160_000),
    "requirements": Bomb("GET", selector(",".join(["a"] * 200_000))),
    "requirements with escapes": Bomb("GET", selector("!a," * 60_000)),
    "values of a requirement": Bomb("GET", selector(f"k in ({','.join('a' * 200_000)})")),
    "field requirements": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=" + "metadata.name=a," * 30_000
    ),
    "one long field requirement": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name=" + "a" * 450_000
    ),
    "a field requirement without an end": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=" + "a" * 450_000
    ),
    "a field requirement of escapes": Bomb(
        "GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name=" + quote("\\,") * 80_000
    ),
    "a watch of many requirements": Bomb(
        "GET", selector(",".join(["a"] * 100_000)) + "&watch=1&timeoutSeconds=1"
    ),
    "a collection deleted by many requirements": Bomb(
        "DELETE", selector(",".join(["a"] * 100_000))
    ),
    "a long token to continue": Bomb(
        "GET",
        f"{CONFIG_MAPS}?limit=1&continue="
        + base64.urlsafe_b64encode(
            json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "a" * 300_000}).encode()
        ).decode(),
    ),
    "a token of brackets": Bomb(
        "GET",
        f"{CONFIG_MAPS}?limit=1&continue=" + base64.urlsafe_b64encode(b"[" * 300_000).decode(),
    ),
    "forms": Bomb(
        "GET", CONFIG_MAPS, headers={"accept": "a/b;q=0.1," * 40_000 + "application/json"}
    ),
    "forms with options": Bomb("GET", CONFIG_MAPS, headers={"accept": "a/b" + ";c=d" * 100_000}),
    "encodings": Bomb("GET", CONFIG_MAPS, headers={"accept-encoding": "a," * 200_000}),
    "headers": Bomb("GET", CONFIG_MAPS, headers={f"x{n}": "1" for n in range(40_000)}),
    "impersonated groups": Bomb(
        "GET",
        CONFIG_MAPS,
        headers={"impersonate-user": "u"} | {f"impersonate-extra-{n}": "g" for n in range(20_000)},
    ),
    "a long bearer token": Bomb(
        "GET", CONFIG_MAPS, headers={"authorization": "Bearer " + "a." * 200_000}
    ),
    "a manager with a long name": Bomb(
        "POST", f"{CONFIG_MAPS}?fieldManager=" + "m" * 400_000, lambda: config_map()
    ),
}
