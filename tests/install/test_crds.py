"""Our kinds as custom resources: schemas that a server takes, and that take our objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from kube.rules import broken
from serving import Asgi
from sully.api import build_scheme
from sully.client.discovery.resources import of_scheme
from sully.domain.capabilities.offers import OWN_KINDS
from sully.install.crds import COLUMNS, definitions
from sully.machinery.fields import Path

Obj = dict[str, Any]
DEFINITIONS = {definition["spec"]["names"]["kind"]: definition for definition in definitions()}
_TAINT = {"key": "example.com/broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
OBJECTS: dict[str, Obj] = {
    "ResourceSlicePatch": {
        "spec": {
            "devices": {
                "priority": 3,
                "filter": {"driver": "d", "selectors": [{"cel": {"expression": "true"}}]},
                "attributes": {"a.example.com/x": {"null": {}}, "a.example.com/y": {"int": 1}},
                "capacity": {"a.example.com/memory": {"value": "1Gi"}},
                "taints": [{**_TAINT, "evictionsPerSecond": 3, "data": {"any": ["thing"]}}],
            }
        },
    },
    "EvictionRecord": {
        "spec": {
            "pod": {"name": "p", "namespace": "default", "uid": "u", "node": "n1"},
            "evictedTime": "2026-01-01T00:00:00.000000Z",
            "causes": [
                {
                    "device": "d/p/x",
                    "effect": "NoExecute",
                    "key": "k",
                    "kind": "DeviceTaintRule",
                    "name": "r",
                }
            ],
        }
    },
    "TaintRecord": {
        "spec": {
            "addedTime": "2026-01-01T00:00:00.000000Z",
            "rule": {"name": "r", "uid": "u"},
            "taint": _TAINT,
            "deviceSelector": {"driver": "d"},
        },
        "status": {"evicted": 3, "changes": [{"time": "2026-01-01T00:00:00Z", "what": "w"}]},
    },
    "ClusterTaintPolicy": {
        "spec": {
            "rules": [
                {
                    "condition": {"type": "Ready", "status": "False"},
                    "taint": {"key": "k", "effect": "NoSelect"},
                }
            ]
        }
    },
    "DeviceTaintPolicy": {
        "spec": {
            "mode": "Enforce",
            "selector": {"driver": "d", "nodeSelector": {"matchLabels": {"a": "b"}}},
            "sources": [
                {"name": "xid", "driverTaint": {"key": "k", "expression": "data.xid == 79"}},
                {"name": "gone", "severity": "Critical", "notPublished": True},
            ],
            "taint": {"key": "example.com/faulty"},
            "steps": [{"effect": "None"}, {"after": "2m", "effect": "NoSchedule"}],
            "holdFor": "30s",
            "clearAfter": "1h30m",
            "flaps": {"count": 3, "within": "1h"},
            "proof": {"type": "Manual"},
            "limits": [{"scope": "Attribute", "attribute": "rack", "maxUnavailable": "10%"}],
            "storm": {"devices": 20, "within": "5m"},
        },
        "status": {
            "devices": [{"device": "d/p/x", "phase": "Tainted", "step": 0}],
            "phases": {"Tainted": 1},
        },
    },
    "DeviceMaintenance": {
        "spec": {
            "selector": {"deviceClassName": "gpu", "identities": ["GPU-1"]},
            "reason": "firmware 4.2",
            "start": "2026-01-03T02:00:00Z",
            "duration": "4h",
            "closeBefore": "2h",
            "rolling": {"by": "Node", "maxUnavailable": "10%", "waitForReady": "5m"},
            "drain": {
                "mode": "Evict",
                "rate": "1/5m",
                "burst": 2,
                "maxUnavailable": 1,
                "timeout": "30m",
                "then": "NoExecute",
                "ignoreDaemonSets": True,
            },
            "hook": {
                "type": "Job",
                "job": {
                    "namespace": "tests",
                    "deviceClassName": "gpu",
                    "template": {
                        "spec": {
                            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}
                        }
                    },
                },
            },
            "proof": {"type": "Manual"},
        },
        "status": {
            "phase": "Running",
            "phases": {"Closed": 1},
            "units": [{"name": "node-1", "devices": ["d/node-1/x"], "phase": "Closed"}],
            "finished": ["node-0"],
        },
    },
    "DeviceHealth": {
        # Of no node, so that the report has the name that all objects have here.
        "metadata": {"name": "a"},
        "spec": {
            "reporter": "a",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseDurationSeconds": 30,
            "bootID": "b",
            "overallStatus": "Unhealthy",
            "devices": [
                {
                    "uuid": "GPU-1",
                    "pciAddress": "0000:3b:00.0",
                    "index": 0,
                    "device": "d/p/x",
                    "model": "m",
                    "status": "Unhealthy",
                    "since": "2026-01-01T00:00:00.000000Z",
                    "reasons": [
                        {
                            "key": "xid",
                            "value": "79",
                            "severity": "Critical",
                            "message": "m",
                            "since": "2026-01-01T00:00:00.000000Z",
                            "lastTime": "2026-01-01T00:00:00.000000Z",
                            "count": 1,
                            "expirationTime": "2026-01-01T00:00:00.000000Z",
                        }
                    ],
                }
            ],
        },
    },
}


def schema(kind: str) -> Any:
    return DEFINITIONS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(result: Obj, at: str = "") -> Iterator[tuple[str, Obj]]:
    """Yield every schema in a schema."""
    yield at, result
    for name, entry in result.get("properties", {}).items():
        yield from nodes(entry, f"{at}.{name}")
    for name in ("items", "additionalProperties"):
        if name in result:
            yield from nodes(result[name], f"{at}[]")


def test_all_of_them() -> None:
    assert DEFINITIONS.keys() == set(OWN_KINDS.values()) == OBJECTS.keys() == COLUMNS.keys()


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_names_scope_and_status_are_those_of_our_server(kind: str) -> None:
    ours = next(resource for resource in build_scheme().resources() if resource.kind == kind)
    served = next(item for item in of_scheme(build_scheme()) if item.kind == kind)
    spec = DEFINITIONS[kind]["spec"]

    assert DEFINITIONS[kind]["metadata"]["name"] == f"{served.plural}.sully.dev"
    assert spec["scope"] == ("Namespaced" if served.namespaced else "Cluster")
    assert ("subresources" in spec["versions"][0]) == (ours.status is not None)


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_value_has_a_type_and_keys_of_lists_are_required(kind: str) -> None:
    for at, result in nodes(schema(kind)):
        assert "type" in result or result.get("x-kubernetes-int-or-string"), at
        assert "$ref" not in result, at
        for key in result.get("x-kubernetes-list-map-keys", ()):
            assert key in result["items"]["required"], at


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_what_every_object_carries_is_left_to_the_server(kind: str) -> None:
    assert schema(kind)["properties"]["metadata"] == {"type": "object"}


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_our_objects_fit(kind: str) -> None:
    jsonschema_rs.validate(schema(kind), OBJECTS[kind])


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_field_of_them_is_known(kind: str) -> None:
    """What a schema does not name, a server drops."""
    own = {name: part for name, part in OBJECTS[kind].items() if name != "metadata"}
    assert list(_unknown(schema(kind), own)) == []


def _unknown(result: Obj, value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _unknown(result["items"], item)
    if not isinstance(value, dict) or result.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, item in value.items():
        inner = result.get("properties", {}).get(name) or result.get("additionalProperties")
        if inner is None:
            yield name
        else:
            yield from _unknown(inner, item)


PATCH, RECORD, POLICY = "ResourceSlicePatch", "EvictionRecord", "ClusterTaintPolicy"
DEVICES = "DeviceTaintPolicy"
MAINTENANCE = "DeviceMaintenance"
HEALTH = "DeviceHealth"
_MANY = {f"a.example.com/x{number}": {"int": number} for number in range(32)}
WRONG: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "an effect of clusters": (POLICY, ("rules", 0, "taint", "effect"), "NoExecute"),
    "no rules": (POLICY, ("rules",), []),
    "too long a delay": (POLICY, ("rules", 0, "setAfterSeconds"), 366 * 24 * 3600),
    "a delay of less than nothing": (POLICY, ("rules", 0, "clearAfterSeconds"), -1),
    "a condition of no type": (POLICY, ("rules", 0, "condition", "type"), ""),
    "a taint of clusters without a key": (POLICY, ("rules", 0, "taint", "key"), ""),
    "nothing selected": (DEVICES, ("selector",), {}),
    "everything and something": (DEVICES, ("selector", "matchAll"), True),
    "no sources": (DEVICES, ("sources",), []),
    "a source of no kind": (DEVICES, ("sources", 0), {"name": "a"}),
    "a source of two kinds": (DEVICES, ("sources", 0, "notPublished"), True),
    "a query that takes too long": (
        DEVICES,
        ("sources", 0),
        {"name": "a", "prometheus": {"url": "http://p", "query": "up", "timeout": "61s"}},
    ),
    "no steps": (DEVICES, ("steps",), []),
    "an effect of a gate": (DEVICES, ("steps", 0, "effect"), "PreferNoSchedule"),
    "a weaker step": (DEVICES, ("steps", 0, "effect"), "NoExecute"),
    "an equal step": (DEVICES, ("steps", 0, "effect"), "NoSchedule"),
    "an earlier step": (DEVICES, ("steps", 0, "after"), "3m"),
    "a step for milder faults": (DEVICES, ("steps", 0, "minSeverity"), "Major"),
    "no duration": (DEVICES, ("holdFor",), "soon"),
    "a mode of nobody": (DEVICES, ("mode",), "Maybe"),
    "one flap": (DEVICES, ("flaps", "count"), 1),
    "a proof of nobody": (DEVICES, ("proof", "type"), "Job"),
    "more than all": (DEVICES, ("limits", 0, "maxUnavailable"), "101%"),
    "less than nothing": (DEVICES, ("storm", "devices"), -1),
    "a class that does not count": (DEVICES, ("limits", 0, "deviceClassName"), "gpu"),
    "work on nothing": (MAINTENANCE, ("selector",), {}),
    "two ends": (MAINTENANCE, ("end",), "2026-01-03T06:00:00Z"),
    "no time to work": (MAINTENANCE, ("duration",), "0s"),
    "an end of no duration": (MAINTENANCE, ("closeBefore",), "soon"),
    "a unit of nobody": (MAINTENANCE, ("rolling", "by"), "Rack"),
    "nothing at a time": (MAINTENANCE, ("rolling", "maxUnavailable"), 0),
    "no share of the devices": (MAINTENANCE, ("rolling", "maxUnavailable"), "0%"),
    "replacements that nobody waits for": (MAINTENANCE, ("rolling", "waitForReady"), "0s"),
    "a drain of nobody": (MAINTENANCE, ("drain", "mode"), "Kill"),
    "a rate of nobody": (MAINTENANCE, ("drain", "rate"), "fast"),
    "no burst": (MAINTENANCE, ("drain", "burst"), 0),
    "NoExecute at no time": (MAINTENANCE, ("drain", "timeout"), None),
    "an action of nobody": (MAINTENANCE, ("drain", "then"), "Kill"),
    "a Job of nobody": (MAINTENANCE, ("hook", "type"), "Approval"),
    "two timeouts": (MAINTENANCE, ("hook", "timeout"), "1h"),
    "a Job that is missing": (MAINTENANCE, ("hook", "job"), None),
    "a hook of nobody": (MAINTENANCE, ("hook", "type"), "Script"),
    "a report of another": (HEALTH, ("reporter",), "b"),
    "a lease of nothing": (HEALTH, ("leaseDurationSeconds",), 0),
    "an address of nothing": (HEALTH, ("devices", 0, "pciAddress"), "3b:00"),
    "a health of nothing": (HEALTH, ("devices", 0, "status"), "Fine"),
    "a device of nothing": (
        HEALTH,
        ("devices", 0),
        {"index": 1, "status": "Healthy", "since": "2026-01-01T00:00:00Z"},
    ),
    "a reason of no severity": (HEALTH, ("devices", 0, "reasons", 0, "severity"), "Bad"),
    "no causes": (RECORD, ("causes",), None),
    "an empty list of causes": (RECORD, ("causes",), []),
    "a number for a name": (RECORD, ("pod", "name"), 3),
    "a device without a pool": (RECORD, ("causes", 0, "device"), "d/x"),
    "a cause of no kind": (RECORD, ("causes", 0, "kind"), "Pod"),
    "a pod without identity": (RECORD, ("pod", "uid"), ""),
    "too many taints": (PATCH, ("devices", "taints"), [_TAINT] * 17),
    "an effect of nobody": (PATCH, ("devices", "taints", 0, "effect"), "NoWay"),
    "a taint without a key": (PATCH, ("devices", "taints", 0, "key"), ""),
    "a key that is none": (PATCH, ("devices", "taints", 0, "key"), "two words"),
    "a value that is none": (PATCH, ("devices", "taints", 0, "value"), "-"),
    "a rate of nothing": (PATCH, ("devices", "taints", 0, "evictionsPerSecond"), 0),
    "an attribute of two types": (
        PATCH,
        ("devices", "attributes", "a.example.com/y"),
        {"int": 1, "bool": True},
    ),
    "an attribute of no type": (PATCH, ("devices", "attributes", "a.example.com/y"), {}),
    "too long a text": (
        PATCH,
        ("devices", "attributes", "a.example.com/y"),
        {"string": "x" * 65},
    ),
    "too many values": (PATCH, ("devices", "attributes"), _MANY),
    "no amount": (PATCH, ("devices", "capacity", "a.example.com/memory", "value"), "much"),
    "too long an expression": (
        PATCH,
        ("devices", "filter", "selectors", 0, "cel", "expression"),
        "true" + " " * 10240,
    ),
}


def refused(kind: str, obj: Obj, old: Obj | None = None) -> bool:
    """Report whether a server with the definition takes an object."""
    result = schema(kind)
    return not jsonschema_rs.is_valid(result, obj) or any(broken(result, obj, old, Path()))


@pytest.mark.parametrize(("kind", "path", "value"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_does_not_fit(kind: str, path: tuple[Any, ...], value: Any) -> None:
    assert not refused(kind, OBJECTS[kind])
    assert refused(kind, {**OBJECTS[kind], "spec": _with(OBJECTS[kind]["spec"], path, value)})


@pytest.mark.parametrize(("kind", "path", "value"), WRONG.values(), ids=WRONG.keys())
async def test_our_own_server_refuses_the_same(
    kind: str, path: tuple[Any, ...], value: Any, calm: Asgi
) -> None:
    ours = next(resource for resource in build_scheme().resources() if resource.kind == kind)
    where = f"/apis/{ours.group}/{ours.versions[0].name}"
    within = f"{where}/namespaces/default" if ours.namespaced else where
    spec = OBJECTS[kind]["spec"]
    wrong = {"metadata": {"name": "a"}, "spec": _with(spec, path, value)}

    answer = await calm.post(f"{within}/{ours.plural}", wrong)
    assert answer.code in (400, 422), answer.body
    good = {"metadata": {"name": "a"}, "spec": spec}
    assert (await calm.post(f"{within}/{ours.plural}", good)).code == 201


@pytest.mark.parametrize("kind", [RECORD, "TaintRecord"])
def test_what_happened_cannot_be_changed(kind: str) -> None:
    obj = OBJECTS[kind]
    changed = {**obj, "spec": {**obj["spec"], "evictedTime": "2027-01-01T00:00:00.000000Z"}}
    named = {**obj, "metadata": {"labels": {"a": "b"}}}

    assert refused(kind, changed, obj)
    assert not refused(kind, named, obj)


def _with(result: Any, path: tuple[Any, ...], value: Any) -> Any:
    head, *rest = path
    inner = _with(result[head], tuple(rest), value) if rest else value
    if isinstance(result, list):
        return [inner if at == head else entry for at, entry in enumerate(result)]
    changed = {**result, head: inner}
    return {name: entry for name, entry in changed.items() if entry is not None}
