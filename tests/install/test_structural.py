"""Our definitions by the rules of a server, and those rules by definitions that break them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from kube.rules import rule_problems
from kube.structural import problems
from sully.api import build_scheme
from sully.domain.capabilities.offers import OWN_KINDS
from sully.install.crds import definitions
from sully.install.limits import LIMITS
from sully.machinery.schema import ListOf, MapOf, ObjectType, Type

Obj = dict[str, Any]
DEFINITIONS = {definition["spec"]["names"]["kind"]: definition for definition in definitions()}


def schema(definition: Obj) -> Any:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def all_problems(definition: Obj) -> list[str]:
    """Look at both kinds of rules; without a schema there are none of the second."""
    wrong = list(problems(definition))
    version = definition["spec"]["versions"][0]
    return wrong + (list(rule_problems(schema(definition))) if "schema" in version else [])


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_a_server_takes_it(kind: str) -> None:
    assert all_problems(DEFINITIONS[kind]) == []


def test_every_limit_is_of_something() -> None:
    known: set[str] = set()
    scheme = build_scheme()
    for resource in scheme.resources():
        if resource.kind in OWN_KINDS.values():
            _collect(scheme.tables.get(resource.storage_version.package, resource.kind), known)

    assert set(LIMITS) - known == set()


def _collect(kind: Type, known: set[str]) -> None:
    match kind:
        case ObjectType() if kind.name not in known:
            known.add(kind.name)
            for field in kind.fields.values():
                known.add(f"{kind.name}.{field.name}")
                _collect(field.type, known)
        case ListOf():
            _collect(kind.item, known)
        case MapOf():
            _collect(kind.value, known)
        case _:
            pass


def spec_of(definition: Obj) -> Any:
    return schema(definition)["properties"]["spec"]


def conditions(definition: Obj) -> Any:
    return schema(definition)["properties"]["status"]["properties"]["conditions"]


def taints(definition: Obj) -> Any:
    return spec_of(definition)["properties"]["devices"]["properties"]["taints"]


def attributes(definition: Obj) -> Any:
    return spec_of(definition)["properties"]["devices"]["properties"]["attributes"]


def rule(text: str, message: str = "m") -> Obj:
    return {"x-kubernetes-validations": [{"rule": text, "message": message}]}


Break = Callable[[Obj], object]
BREAKS: dict[str, tuple[Break, str]] = {
    "a name that is not plural and group": (
        lambda d: d["metadata"].update(name="x.sully.dev"),
        "metadata.name",
    ),
    "a group that is not a domain": (lambda d: d["spec"].update(group="sully"), "spec.group"),
    "a scope that is none": (lambda d: d["spec"].update(scope="World"), "spec.scope"),
    "a short name that is none": (
        lambda d: d["spec"]["names"].update(shortNames=["R_P"]),
        "spec.names",
    ),
    "a list named as its items": (
        lambda d: d["spec"]["names"].update(listKind=d["spec"]["names"]["kind"]),
        "listKind",
    ),
    "fields that are kept": (
        lambda d: d["spec"].update(preserveUnknownFields=True),
        "preserveUnknownFields",
    ),
    "a webhook": (
        lambda d: d["spec"].update(conversion={"strategy": "Webhook"}),
        "spec.conversion",
    ),
    "nothing stored": (
        lambda d: d["spec"]["versions"][0].update(storage=False),
        "exactly one must be stored",
    ),
    "a version twice": (
        lambda d: d["spec"]["versions"].append({**d["spec"]["versions"][0], "storage": False}),
        "twice",
    ),
    "no schema": (lambda d: d["spec"]["versions"][0].pop("schema"), "schema: must be given"),
    "a column of no type": (
        lambda d: d["spec"]["versions"][0]["additionalPrinterColumns"][0].update(type="text"),
        "type: text",
    ),
    "a column from nowhere": (
        lambda d: d["spec"]["versions"][0]["additionalPrinterColumns"][0].update(jsonPath="spec"),
        "jsonPath",
    ),
    "a root that is not an object": (lambda d: schema(d).update(type="array"), "must be object"),
    "metadata of its own": (
        lambda d: schema(d)["properties"]["metadata"].update(
            properties={"labels": {"type": "object"}}
        ),
        "metadata: only name and generateName",
    ),
    "a reference": (lambda d: spec_of(d).update({"$ref": "#/x"}), "$ref is forbidden"),
    "patterns of properties": (
        lambda d: spec_of(d).update(patternProperties={}),
        "patternProperties is forbidden",
    ),
    "no type": (lambda d: spec_of(d).pop("type"), "type: must be given"),
    "an unknown type": (lambda d: spec_of(d).update(type="map"), "map is none"),
    "a type where both are allowed": (
        lambda d: spec_of(d).update({"x-kubernetes-int-or-string": True}),
        "must be absent",
    ),
    "items of many shapes": (lambda d: taints(d).update(items=[]), "must be one schema"),
    "named and unnamed properties": (
        lambda d: spec_of(d).update(additionalProperties={"type": "string"}),
        "exclude each other",
    ),
    "no more properties": (
        lambda d: attributes(d).update(additionalProperties=False),
        "must be a schema",
    ),
    "a required one that is unknown": (
        lambda d: spec_of(d).update(required=["ghost"]),
        "ghost is not a property",
    ),
    "a list type that is none": (
        lambda d: taints(d).update({"x-kubernetes-list-type": "heap"}),
        "heap of array",
    ),
    "a map without keys": (
        lambda d: conditions(d).pop("x-kubernetes-list-map-keys"),
        "only there",
    ),
    "a key that may be missing": (
        lambda d: conditions(d)["items"]["required"].remove("type"),
        "required or have a default",
    ),
    "a key that is an object": (
        lambda d: conditions(d)["items"]["properties"]["type"].update(type="object"),
        "must be a scalar",
    ),
    "a key that may be null": (
        lambda d: conditions(d)["items"]["properties"]["type"].update(nullable=True),
        "must not be null",
    ),
    "a set of objects": (
        lambda d: taints(d).update({"x-kubernetes-list-type": "set"}),
        "a set is of scalars",
    ),
    "an atomic string": (
        lambda d: schema(d)["properties"]["kind"].update({"x-kubernetes-map-type": "atomic"}),
        "atomic of string",
    ),
    "a format that is none": (
        lambda d: schema(d)["properties"]["kind"].update(format="name"),
        "format: name",
    ),
    "null by default": (
        lambda d: schema(d)["properties"]["kind"].update(default=None),
        "null is not allowed",
    ),
    "a choice twice": (
        lambda d: schema(d)["properties"]["kind"].update(enum=["a", "a"]),
        "given and differ",
    ),
    "a choice of another type": (
        lambda d: schema(d)["properties"]["kind"].update(enum=[1]),
        "of the type",
    ),
    "a pattern that Go has not": (
        lambda d: schema(d)["properties"]["kind"].update(pattern="^(?!x)"),
        "Go does not",
    ),
    "a type in a choice": (
        lambda d: spec_of(d).update(anyOf=[{"type": "object"}]),
        "type is forbidden within",
    ),
    "a rule that does not compile": (lambda d: spec_of(d).update(rule("self ==")), "rule: "),
    "a rule that is not boolean": (lambda d: spec_of(d).update(rule("'x'")), "must evaluate to"),
    "a rule without words": (
        lambda d: spec_of(d).update(rule("true", "")),
        "message: must be one line",
    ),
    "a rule in a list without end": (
        lambda d: (taints(d).pop("maxItems"), taints(d)["items"].update(rule("true"))),
        "costs too much",
    ),
    "a rule in a map without end": (
        lambda d: (
            attributes(d).pop("maxProperties"),
            attributes(d)["additionalProperties"].update(rule("true")),
        ),
        "costs too much",
    ),
    "a rule about what was before in a list": (
        lambda d: taints(d)["items"].update(rule("self == oldSelf")),
        "no one value before",
    ),
}


@pytest.mark.parametrize(("change", "message"), BREAKS.values(), ids=BREAKS.keys())
def test_what_breaks_a_rule_is_found(change: Break, message: str) -> None:
    definition = deepcopy(DEFINITIONS["ResourceSlicePatch"])
    change(definition)

    assert any(message in item for item in all_problems(definition))
