"""What definitions are refused for. The texts were compared with those of Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from definitions import INTEGER, STRING, Obj, definition, fields, version
from kube.hub import definition as hub_definition
from sully.api import build_scheme
from sully.api.apiextensions.validation import definition_problems
from sully.domain.capabilities.offers import HUB
from sully.install.crds import definitions

IN_SCHEMA = "spec.validation.openAPIV3Schema.properties[spec]"
A = f"{IN_SCHEMA}.properties[a]"


def items(schema: Obj, **more: Any) -> Obj:
    return {"type": "array", "items": schema, **more}


def ruled(rule: str, schema: Obj = STRING, **more: Any) -> Obj:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}


def keyed(**item: Obj) -> Obj:
    return items(
        fields(**item),
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]},
    )


COST = (
    "exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems,"
    " maxProperties, and maxLength where arrays, maps, and strings are declared)"
)
SCHEMAS: dict[str, tuple[Obj, list[str]]] = {
    "no type": (
        {},
        [f"{A}.type: Required value: must not be empty for specified object fields"],
    ),
    "a list without items": (
        {"type": "array"},
        [f"{A}.items: Required value: must be specified"],
    ),
    "fields and values": (
        {**fields(b=STRING), "additionalProperties": STRING},
        [
            f"{A}.additionalProperties: Forbidden: additionalProperties and properties are mutual"
            " exclusive"
        ],
    ),
    "a reference": ({**STRING, "$ref": "#"}, [f"{A}.$ref: Forbidden: $ref is not supported"]),
    "a type inside of a junctor": (
        {**STRING, "anyOf": [{"type": "string"}]},
        [f"{A}.anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    "a key that may be absent": (
        keyed(n=STRING),
        [
            f"{A}.items.properties[n].default: Required value: this property is in"
            " x-kubernetes-list-map-keys, so it must have a default or be a required property"
        ],
    ),
    "a key that is not a field": (
        keyed(m=STRING),
        [
            f'{A}.x-kubernetes-list-map-keys: Invalid value: ["n"]: entries must all be names of'
            " item properties"
        ],
    ),
    "a set of objects": (
        items(fields(b=STRING), **{"x-kubernetes-list-type": "set"}),
        [
            f"{A}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a"
            " list with x-kubernetes-list-type=set"
        ],
    ),
    "a default of another type": (
        {**STRING, "default": 3},
        [f'{A}.default: Invalid value: "integer":  in body must be of type string: "integer"'],
    ),
    "a default that would be pruned": (
        {**fields(b=STRING), "default": {"c": 1}},
        [f'{A}.default: Invalid value: {{"c":1}}: must not have unknown fields'],
    ),
    "unique items": (
        items(STRING, uniqueItems=True),
        [
            f"{A}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime"
            " complexity becomes quadratic"
        ],
    ),
    "a rule of another type": (
        ruled("self"),
        [
            f'{A}.x-kubernetes-validations[0].rule: Invalid value: {{"Rule":"self","Message":"",'
            '"MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel'
            " expression must evaluate to a bool"
        ],
    ),
    "a rule without a bound": (
        items(ruled("self.matches('a.*b')")),
        [
            f"{A}.items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost {COST}",
            f"{A}.items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule"
            " cost total exceeding cost limit for entire OpenAPIv3 schema",
            "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule"
            f" cost total for entire OpenAPIv3 schema {COST}",
        ],
    ),
    "a transition rule without an old value": (
        items(ruled("self == oldSelf", INTEGER), maxItems=3),
        [
            f'{A}.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf'
            f" cannot be used on the uncorrelatable portion of the schema within {A}"
        ],
    ),
    "an unknown reason": (
        ruled("true", reason="Other"),
        [
            f'{A}.x-kubernetes-validations[0].reason: Unsupported value: "Other": supported values:'
            ' "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid",'
            ' "FieldValueRequired"'
        ],
    ),
    "an optional old value that is not used": (
        ruled("true", optionalOldSelf=True),
        [
            f"{A}.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set"
            " if oldSelf is not used in rule"
        ],
    ),
}


def texts(defined: Obj) -> list[str]:
    defined["spec"]["names"].setdefault("listKind", "CrontabList")
    defined["spec"].setdefault("conversion", {"strategy": "None"})
    defined["status"] = {"storedVersions": ["v1"]}
    return [str(error) for error in definition_problems(defined)]


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS.values(), ids=SCHEMAS.keys())
def test_schemas(schema: Obj, expected: list[str]) -> None:
    assert texts(definition(fields(a=schema))) == expected


VERSIONS: dict[str, tuple[Obj, str]] = {
    "a column": (
        {"additionalPrinterColumns": [{"name": "x", "type": "text", "jsonPath": "a"}]},
        'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of'
        " boolean,date,integer,number,string",
    ),
    "a path that is not supported": (
        {"additionalPrinterColumns": [{"name": "x", "type": "string", "jsonPath": "..a"}]},
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "..a": unrecognized column'
        " definition: unsupported at '..a'",
    ),
    "a scale": (
        {"subresources": {"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".status.b"}}},
        'spec.subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path'
        " under .spec",
    ),
    "a selectable field": (
        {"selectableFields": [{"jsonPath": ".spec.none"}]},
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec.none": is an invalid path: does'
        " not refer to a valid field",
    ),
    "a warning": (
        {"deprecationWarning": "x"},
        'spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated'
        " versions",
    ),
}


@pytest.mark.parametrize(("more", "expected"), VERSIONS.values(), ids=VERSIONS.keys())
def test_versions(more: Obj, expected: str) -> None:
    assert expected in texts(definition(None, version(fields(a=STRING), **more)))


SPECS: dict[str, tuple[Obj, str]] = {
    "a webhook": (
        {"conversion": {"strategy": "Webhook"}},
        "spec.conversion.strategy: Forbidden: conversion webhooks are not supported by this server,"
        " use None",
    ),
    "a group without a domain": (
        {"group": "example"},
        'spec.group: Invalid value: "example": should be a domain with at least one dot',
    ),
    "a protected group": (
        {"group": "example.k8s.io"},
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must"
        ' have approval annotation "api-approved.kubernetes.io", see'
        " https://github.com/kubernetes/enhancements/pull/1111",
    ),
    "a scope": (
        {"scope": "Everywhere"},
        'spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"',
    ),
    "unknown fields everywhere": (
        {"preserveUnknownFields": True},
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set"
        " x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    ),
}


@pytest.mark.parametrize(("more", "expected"), SPECS.values(), ids=SPECS.keys())
def test_specs(more: Obj, expected: str) -> None:
    defined = definition()
    defined["spec"] |= more

    assert expected in texts(defined)


def test_our_own_definitions_and_those_of_a_hub_are_accepted() -> None:
    scheme = build_scheme()
    hub = [hub_definition(scheme, kind) for kind in scheme.resources() if kind.group == HUB]
    own = list(definitions())

    assert (len(own), len(hub)) == (7, 7)
    for defined in (*own, *hub):
        stored = [one["name"] for one in defined["spec"]["versions"] if one["storage"]]
        defined["spec"].setdefault("conversion", {"strategy": "None"})
        defined["status"] = {"storedVersions": stored}
        assert [str(error) for error in definition_problems(defined)] == []
