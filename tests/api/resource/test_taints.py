"""Taints and tolerations: what is accepted, what is reported about the rest."""

from dataclasses import dataclass
from typing import Any

import pytest

from api.resource.bodies import (
    EFFECTS_TEXT,
    KEY_TEXT,
    VALUE_TEXT,
    claim_body,
    device,
    exactly,
    first_available,
    rule_body,
    slice_body,
    taint,
    template_body,
)
from api.resource.writing import NOON, REFERENCE, Writer, gates
from sully.machinery.compat import Compat

TAINTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "minimal": ({"key": "a", "effect": "None"}, []),
    "full": ({"key": "a.b/c", "value": "v", "effect": "NoExecute"}, []),
    "empty": (
        {},
        [
            'key: Invalid value: "": name part must be non-empty',
            f'key: Invalid value: "": {KEY_TEXT}',
            "effect: Required value",
        ],
    ),
    "all wrong": (
        {"key": "!", "value": "!", "effect": "!"},
        [
            f'key: Invalid value: "!": {KEY_TEXT}',
            f'value: Invalid value: "!": {VALUE_TEXT}',
            f'effect: Unsupported value: "!": {EFFECTS_TEXT}',
        ],
    ),
    "effects of gates that are off": (
        {"key": "a", "effect": "PreferNoSchedule"},
        [f'effect: Unsupported value: "PreferNoSchedule": {EFFECTS_TEXT}'],
    ),
    "long description": (
        {"key": "a", "effect": "None", "description": "x" * 1025},
        ["description: Too long: may not be more than 1024 bytes"],
    ),
    "description at the limit": ({"key": "a", "effect": "None", "description": "x" * 1024}, []),
    "large data": (
        {"key": "a", "effect": "None", "data": {"x": "y" * 10240}},
        ["data: Too long: may not be more than 10240 bytes"],
    ),
    "any small data": ({"key": "a", "effect": "None", "data": {"x": [1, None]}}, []),
    "no rate": (
        {"key": "a", "effect": "NoExecute", "evictionsPerSecond": 0},
        ["evictionsPerSecond: Invalid value: 0: must be greater than zero"],
    ),
    "a rate": ({"key": "a", "effect": "NoExecute", "evictionsPerSecond": 1}, []),
}


@pytest.mark.parametrize(("entry", "want"), TAINTS.values(), ids=TAINTS.keys())
def test_taint_of_a_rule(entry: dict[str, Any], want: list[str]) -> None:
    body = rule_body()
    body["spec"]["taint"] = entry

    assert Writer().create(body).texts == [f"spec.taint.{text}" for text in want]


@pytest.mark.parametrize(("entry", "want"), TAINTS.values(), ids=TAINTS.keys())
def test_taint_of_a_device(entry: dict[str, Any], want: list[str]) -> None:
    got = Writer().create(slice_body(device(taints=[taint(), entry])))

    assert got.texts == [f"spec.devices[0].taints[1].{text}" for text in want]


@pytest.mark.parametrize(
    ("switch", "effect"),
    [
        ("SullyPreferNoSchedule", "PreferNoSchedule"),
        ("SullyNoExecuteWithPodDisruptionBudget", "NoExecuteWithPodDisruptionBudget"),
    ],
)
def test_effects_behind_gates(switch: str, effect: str) -> None:
    writer = Writer(gates=gates(**{switch: True}))

    assert writer.create(rule_body(effect=effect)).texts == []
    assert (
        writer.create(claim_body(exactly(tolerations=[{"key": "a", "effect": effect}]))).texts == []
    )
    listed = sorted(["NoExecute", "NoSchedule", "None", effect])
    names = ", ".join(f'"{one}"' for one in listed)
    assert writer.create(rule_body(effect="x")).texts == [
        f'spec.taint.effect: Unsupported value: "x": supported values: {names}'
    ]


def test_seventeen_taints() -> None:
    got = Writer().create(slice_body(device(taints=[taint(f"k{i}") for i in range(17)])))

    assert got.texts == ["spec.devices[0].taints: Too many: 17: must have at most 16 items"]


def test_too_many_taints_do_not_hide_bad_effects() -> None:
    taints = [taint(f"k{i}", "x" if i == 3 else "None") for i in range(17)]

    got = Writer().create(slice_body(device(taints=taints)))

    assert got.texts == [
        "spec.devices[0].taints: Too many: 17: must have at most 16 items",
        f'spec.devices[0].taints[3].effect: Unsupported value: "x": {EFFECTS_TEXT}',
    ]


@dataclass(frozen=True)
class Stored:
    """Taints of a device, stored and sent, and whether the sent ones are accepted."""

    old: list[dict[str, Any]]
    new: list[dict[str, Any]]
    name: str = "d"
    accepted: bool = True


FUTURE = taint(effect="Future", timeAdded="2026-01-01T00:00:00Z")
PLAIN = taint(timeAdded="2026-01-01T00:00:00Z")
STORED = {
    "unknown effect stored and untouched": Stored([FUTURE], [FUTURE]),
    "unknown effect added": Stored([PLAIN], [PLAIN, FUTURE], accepted=False),
    "unknown effect kept, another taint added": Stored([FUTURE], [FUTURE, PLAIN], accepted=False),
    "unknown effect copied to a new device": Stored([FUTURE], [FUTURE], "e", accepted=False),
    "unknown effect removed": Stored([FUTURE], []),
}


@pytest.mark.parametrize("case", STORED.values(), ids=STORED.keys())
def test_unknown_effects_in_slices(case: Stored) -> None:
    old = Writer().read(slice_body(device(taints=case.old)))
    devices = [device(case.name, taints=case.new, attributes={"a": {"int": 1}})]

    got = Writer().update(slice_body(*devices), old)

    assert (got.texts == []) is case.accepted


def test_unknown_effect_of_a_rule_stays_editable() -> None:
    old = Writer().read(rule_body(effect="Future"))

    assert Writer().update(rule_body(effect="Future", value="v"), old).texts == []
    assert Writer().update(rule_body(effect="Other"), old).texts == [
        f'spec.taint.effect: Unsupported value: "Other": {EFFECTS_TEXT}'
    ]


TOLERATIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing but a key": ({"key": "a"}, []),
    "every taint": ({"operator": "Exists"}, []),
    "a key indefinitely": ({"key": "a.b/c", "operator": "Exists", "effect": "NoExecute"}, []),
    "a value": ({"key": "a", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, []),
    "effect None": ({"key": "a", "effect": "None"}, []),
    "seconds without NoExecute": (
        {"key": "a", "tolerationSeconds": -5, "effect": "NoSchedule"},
        [],
    ),
    "unknown operator": (
        {"operator": "Like"},
        ['operator: Unsupported value: "Like": supported values: "Equal", "Exists"'],
    ),
    "Exists with a value": (
        {"operator": "Exists", "value": "v"},
        ['value: Invalid value: "v": must be empty for operator `Exists`'],
    ),
    "all wrong": (
        {"key": "!", "value": "!", "effect": "!"},
        [
            f'value: Invalid value: "!": {VALUE_TEXT}',
            f'key: Invalid value: "!": {KEY_TEXT}',
            f'effect: Unsupported value: "!": {EFFECTS_TEXT}',
        ],
    ),
}


@pytest.mark.parametrize(("entry", "want"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
def test_tolerations_wherever_they_stand(entry: dict[str, Any], want: list[str]) -> None:
    exact = exactly(tolerations=[{"key": "a"}, entry])
    alternative = first_available({"name": "a"}, {"name": "b", "tolerations": [entry]})

    claim = Writer().create(claim_body(exact)).texts
    template = Writer().create(template_body(alternative)).texts

    assert claim == [f"spec.devices.requests[0].exactly.tolerations[1].{text}" for text in want]
    where = "spec.spec.devices.requests[0].firstAvailable[1].tolerations[0]"
    assert template == [f"{where}.{text}" for text in want]


def test_more_than_sixteen_tolerations() -> None:
    body = claim_body(exactly(tolerations=[{"key": f"k{i}"} for i in range(17)]))

    assert Writer().create(body).texts == [
        "spec.devices.requests[0].exactly.tolerations: Too many: 17: must have at most 16 items"
    ]
    assert Writer(compat=Compat.KUBERNETES, gates=REFERENCE).create(body).texts == []


def test_reserved_keys_warn() -> None:
    body = slice_body(device(taints=[taint("node.kubernetes.io/x"), taint("mykubernetes.io/x")]))

    assert Writer().create(body).warnings == [
        "spec.devices[0].taints[0].key: keys under kubernetes.io/ are reserved for Kubernetes;"
        ' "node.kubernetes.io/x" may come to mean something else'
    ]
    assert Writer(compat=Compat.KUBERNETES).create(body).warnings == []


@pytest.mark.parametrize("effect", ["None", "NoSchedule", "NoExecute"])
def test_time_added_is_stamped_whatever_the_effect(effect: str) -> None:
    explicit = "2001-02-03T04:05:06Z"
    devices = device(taints=[taint(effect=effect), taint(effect=effect, timeAdded=explicit)])

    stamped, explicit_taint = (
        Writer(now=NOON).create(slice_body(devices)).spec["devices"][0]["taints"]
    )

    assert stamped["timeAdded"] == "2026-03-01T12:00:00Z"
    assert explicit_taint["timeAdded"] == explicit
