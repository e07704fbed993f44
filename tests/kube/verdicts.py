"""Objects of our kinds, valid and each invalid in one way, to compare what servers refuse."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
PATCH, RECORD, TAINTS, POLICY = (
    "ResourceSlicePatch",
    "EvictionRecord",
    "TaintRecord",
    "ClusterTaintPolicy",
)
DRIVER = "gpu.example.com"
_TAINT = {"key": "example.com/broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
_CAUSE = {
    "device": f"{DRIVER}/n1/gpu-0",
    "effect": "NoExecute",
    "key": "example.com/broken",
    "kind": "DeviceTaintRule",
    "name": "r",
    "uid": "u",
}
BASES: dict[str, Obj] = {
    PATCH: {
        "devices": {
            "priority": 3,
            "filter": {"driver": DRIVER, "selectors": [{"cel": {"expression": "true"}}]},
            "attributes": {"a.example.com/x": {"int": 1}},
            "capacity": {"a.example.com/memory": {"value": "1Gi"}},
            "taints": [_TAINT],
        }
    },
    RECORD: {
        "pod": {"name": "p", "namespace": "default", "uid": "u", "node": "n1"},
        "claims": ["c"],
        "devices": [f"{DRIVER}/n1/gpu-0"],
        "evictedTime": "2026-01-01T00:00:00.000000Z",
        "causes": [_CAUSE],
    },
    TAINTS: {
        "addedTime": "2026-01-01T00:00:00.000000Z",
        "rule": {"name": "r", "uid": "u"},
        "taint": _TAINT,
        "deviceSelector": {"driver": DRIVER},
    },
    POLICY: {
        "clusterSelector": {"matchLabels": {"a": "b"}},
        "rules": [
            {
                "condition": {"type": "Ready", "status": "False"},
                "taint": {"key": "k", "effect": "NoSelect"},
            }
        ],
    },
}
"""The specs of valid objects."""

_FILTER, _ATTRIBUTES = ("devices", "filter"), ("devices", "attributes")
_CAPACITY, _FIRST = ("devices", "capacity"), ("devices", "taints", 0)
_RULE = ("rules", 0)


def _attribute(value: Obj, name: str = "a.example.com/x") -> tuple[str, tuple[Any, ...], Any]:
    return PATCH, _ATTRIBUTES, {name: value}


def _capacity(value: Obj, name: str = "a.example.com/memory") -> tuple[str, tuple[Any, ...], Any]:
    return PATCH, _CAPACITY, {name: value}


CASES: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    # What a patch selects
    "filter: nothing": (PATCH, _FILTER, None),
    "filter: every device": (PATCH, _FILTER, {}),
    "driver: upper case": (PATCH, (*_FILTER, "driver"), "GPU.example.com"),
    "driver: empty": (PATCH, (*_FILTER, "driver"), ""),
    "driver: no subdomain": (PATCH, (*_FILTER, "driver"), "gpu_example"),
    "driver: a dash at the end": (PATCH, (*_FILTER, "driver"), "gpu-"),
    "driver: two dots": (PATCH, (*_FILTER, "driver"), "gpu..com"),
    "driver: 63 characters": (PATCH, (*_FILTER, "driver"), "d" * 63),
    "driver: 64 characters": (PATCH, (*_FILTER, "driver"), "d" * 64),
    "pool: with slashes": (PATCH, (*_FILTER, "pool"), "rack-1/node.a"),
    "pool: upper case": (PATCH, (*_FILTER, "pool"), "Rack"),
    "pool: empty": (PATCH, (*_FILTER, "pool"), ""),
    "pool: an empty part": (PATCH, (*_FILTER, "pool"), "a//b"),
    "pool: 254 characters": (PATCH, (*_FILTER, "pool"), "p" * 254),
    "device: a label": (PATCH, (*_FILTER, "device"), "gpu-0"),
    "device: with a dot": (PATCH, (*_FILTER, "device"), "gpu.0"),
    "device: upper case": (PATCH, (*_FILTER, "device"), "GPU"),
    "device: empty": (PATCH, (*_FILTER, "device"), ""),
    "device: 64 characters": (PATCH, (*_FILTER, "device"), "d" * 64),
    "class: a subdomain": (PATCH, (*_FILTER, "deviceClassName"), "gpus.example.com"),
    "class: with a space": (PATCH, (*_FILTER, "deviceClassName"), "my gpus"),
    "class: 254 characters": (PATCH, (*_FILTER, "deviceClassName"), "c" * 254),
    "selector: without an expression": (PATCH, (*_FILTER, "selectors"), [{}]),
    "selector: an empty expression": (
        PATCH,
        (*_FILTER, "selectors"),
        [{"cel": {"expression": ""}}],
    ),
    "selectors: 33": (PATCH, (*_FILTER, "selectors"), [{"cel": {"expression": "true"}}] * 33),
    # What it changes
    "priority: none": (PATCH, ("devices", "priority"), None),
    "priority: negative": (PATCH, ("devices", "priority"), -1),
    "priority: text": (PATCH, ("devices", "priority"), "3"),
    "attribute: an int": _attribute({"int": -5}),
    "attribute: a bool": _attribute({"bool": False}),
    "attribute: null": _attribute({"null": {}}),
    "attribute: nothing": _attribute({}),
    "attribute: two values": _attribute({"int": 1, "bool": True}),
    "attribute: 64 characters": _attribute({"string": "x" * 64}),
    "attribute: 65 characters": _attribute({"string": "x" * 65}),
    "attribute: 33 characters of two bytes": _attribute({"string": "ä" * 33}),
    "version: semver": _attribute({"version": "1.2.3-rc.1+build.7"}),
    "version: two numbers": _attribute({"version": "1.2"}),
    "version: a v": _attribute({"version": "v1.2.3"}),
    "version: a leading zero": _attribute({"version": "1.02.3"}),
    "version: an empty pre-release": _attribute({"version": "1.2.3-"}),
    "version: too long": _attribute({"version": "1.2.3-" + "a" * 60}),
    "strings: some": _attribute({"strings": ["a", "b"]}),
    "strings: none": _attribute({"strings": []}),
    "strings: too long": _attribute({"strings": ["x" * 65]}),
    "versions: semver": _attribute({"versions": ["1.2.3", "0.0.0"]}),
    "versions: no semver": _attribute({"versions": ["1.2.3", "1"]}),
    "name: without a domain": _attribute({"int": 1}, "x"),
    "name: an empty domain": _attribute({"int": 1}, "/x"),
    "name: nothing after the slash": _attribute({"int": 1}, "a.example.com/"),
    "name: two slashes": _attribute({"int": 1}, "a.example.com/x/y"),
    "name: a domain in upper case": _attribute({"int": 1}, "A.example.com/x"),
    "name: a domain that is none": _attribute({"int": 1}, "a_b/x"),
    "name: a domain of 64 characters": _attribute({"int": 1}, f"{'d' * 64}/x"),
    "name: a dash": _attribute({"int": 1}, "a.example.com/my-x"),
    "name: a digit first": _attribute({"int": 1}, "a.example.com/1x"),
    "name: an underscore first": _attribute({"int": 1}, "a.example.com/_x"),
    "name: 32 characters": _attribute({"int": 1}, f"a.example.com/{'x' * 32}"),
    "name: 33 characters": _attribute({"int": 1}, f"a.example.com/{'x' * 33}"),
    "capacity: a number": _capacity({"value": 5}),
    "capacity: no amount": _capacity({"value": "much"}),
    "capacity: without a value": _capacity({}),
    "capacity: without a domain": _capacity({"value": "1"}, "memory"),
    "capacity: a dash": _capacity({"value": "1"}, "a.example.com/my-memory"),
    "capacity: 33 characters": _capacity({"value": "1"}, f"a.example.com/{'x' * 33}"),
    "capacity: a domain in upper case": _capacity({"value": "1"}, "A.example.com/memory"),
    "values: 33": (
        PATCH,
        _ATTRIBUTES,
        {f"a.example.com/x{number}": {"int": number} for number in range(33)},
    ),
    # Taints
    "taint: without an effect": (PATCH, (*_FIRST, "effect"), None),
    "taint: an unknown effect": (PATCH, (*_FIRST, "effect"), "NoWay"),
    "taint: without a key": (PATCH, (*_FIRST, "key"), None),
    "taint: an empty key": (PATCH, (*_FIRST, "key"), ""),
    "taint: a key of two words": (PATCH, (*_FIRST, "key"), "two words"),
    "taint: a prefix that is not a subdomain": (PATCH, (*_FIRST, "key"), "a..b/k"),
    "taint: a prefix in upper case": (PATCH, (*_FIRST, "key"), "A/k"),
    "taint: two slashes": (PATCH, (*_FIRST, "key"), "a/b/c"),
    "taint: a key of 64 characters": (PATCH, (*_FIRST, "key"), "k" * 64),
    "taint: a value": (PATCH, (*_FIRST, "value"), "v_1.2"),
    "taint: an empty value": (PATCH, (*_FIRST, "value"), ""),
    "taint: a value that is none": (PATCH, (*_FIRST, "value"), "-"),
    "taint: a value of 64 characters": (PATCH, (*_FIRST, "value"), "v" * 64),
    "taint: no rate": (PATCH, (*_FIRST, "evictionsPerSecond"), 0),
    "taint: a description of 1025 bytes": (PATCH, (*_FIRST, "description"), "x" * 1025),
    "taint: 600 characters of two bytes": (PATCH, (*_FIRST, "description"), "ä" * 600),
    "taint: a time that is none": (PATCH, (*_FIRST, "timeAdded"), "yesterday"),
    "taints: the same twice": (PATCH, ("devices", "taints"), [_TAINT, _TAINT]),
    "taints: 17": (
        PATCH,
        ("devices", "taints"),
        [{**_TAINT, "key": f"k{number}"} for number in range(17)],
    ),
    # Records of evictions
    "record: no causes": (RECORD, ("causes",), None),
    "record: an empty list of causes": (RECORD, ("causes",), []),
    "record: no time": (RECORD, ("evictedTime",), None),
    "record: a claim that is none": (RECORD, ("claims",), ["Not A Claim"]),
    "record: a device without a pool": (RECORD, ("devices",), [f"{DRIVER}/gpu-0"]),
    "record: a pod without a name": (RECORD, ("pod", "name"), ""),
    "record: a pod whose name is none": (RECORD, ("pod", "name"), "Pod One"),
    "record: a pod without identity": (RECORD, ("pod", "uid"), None),
    "record: an owner": (RECORD, ("pod", "owner"), {"kind": "ReplicaSet", "name": "web"}),
    "record: an owner without a kind": (RECORD, ("pod", "owner"), {"name": "web"}),
    "cause: an unknown kind": (RECORD, ("causes", 0, "kind"), "Pod"),
    "cause: a name that is none": (RECORD, ("causes", 0, "name"), "A B"),
    "cause: a key that is none": (RECORD, ("causes", 0, "key"), "a b"),
    "cause: without an effect": (RECORD, ("causes", 0, "effect"), ""),
    "cause: a device without a pool": (RECORD, ("causes", 0, "device"), "d/x"),
    # Records of rules
    "rule record: a rule without identity": (TAINTS, ("rule", "uid"), ""),
    "rule record: a rule whose name is none": (TAINTS, ("rule", "name"), "A B"),
    "rule record: no time": (TAINTS, ("addedTime",), None),
    "rule record: a taint without a key": (TAINTS, ("taint", "key"), ""),
    "rule record: a key that is none": (TAINTS, ("taint", "key"), "a b"),
    "rule record: a long description": (TAINTS, ("description",), "x" * 1025),
    # Policies
    "policy: no rules": (POLICY, ("rules",), []),
    "policy: every cluster": (POLICY, ("clusterSelector",), {}),
    "policy: a label that is none": (POLICY, ("clusterSelector",), {"matchLabels": {"a b": "c"}}),
    "policy: an operator of nobody": (
        POLICY,
        ("clusterSelector",),
        {"matchExpressions": [{"key": "a", "operator": "Like"}]},
    ),
    "policy: In without values": (
        POLICY,
        ("clusterSelector",),
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
    ),
    "policy: Exists with values": (
        POLICY,
        ("clusterSelector",),
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
    ),
    "policy: a condition of no type": (POLICY, (*_RULE, "condition", "type"), ""),
    "policy: a condition whose type is none": (POLICY, (*_RULE, "condition", "type"), "a b"),
    "policy: a status of nobody": (POLICY, (*_RULE, "condition", "status"), "Maybe"),
    "policy: too long a delay": (POLICY, (*_RULE, "setAfterSeconds"), 366 * 24 * 3600),
    "policy: a negative delay": (POLICY, (*_RULE, "clearAfterSeconds"), -1),
    "policy: an effect of devices": (POLICY, (*_RULE, "taint", "effect"), "NoExecute"),
    "policy: a taint of the hub": (
        POLICY,
        (*_RULE, "taint", "key"),
        "cluster.open-cluster-management.io/unreachable",
    ),
    "policy: a prefix that is none": (POLICY, (*_RULE, "taint", "key"), "a..b/k"),
}
"""A kind, where its valid spec is changed, and to what; None removes the field."""


def spec_of(case: str) -> Obj:
    """Return the spec of a case."""
    kind, path, value = CASES[case]
    changed: Obj = _with(BASES[kind], path, value)
    return changed


def _with(result: Any, path: tuple[Any, ...], value: Any) -> Any:
    head, *rest = path
    if isinstance(result, list):
        inner = _with(result[head], tuple(rest), value) if rest else value
        return [inner if at == head else item for at, item in enumerate(result)]
    inner = _with(result.get(head, {}), tuple(rest), value) if rest else value
    changed = {**result, head: inner}
    return {name: item for name, item in changed.items() if item is not None}
