"""Config maps, secrets and service accounts."""

import base64
import copy
from typing import Any

import pytest

from api.core.writing import cells, create, update

Obj = dict[str, Any]
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',"
    "  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
MIB = 1024 * 1024


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CONFIG_MAPS: dict[str, tuple[Obj, list[str]]] = {
    "text and bytes": ({"data": {"a.b": "x"}, "binaryData": {"c": _b64("y")}}, []),
    "bad key": ({"data": {"a b": "x"}}, [f'data[a b]: Invalid value: "a b": {KEY}']),
    "key that climbs": (
        {"data": {"..": "x", "..a": "y"}},
        [
            "data[..]: Invalid value: \"..\": must not be '..'",
            "data[..a]: Invalid value: \"..a\": must not start with '..'",
        ],
    ),
    "key in both": (
        {"data": {"a": "x"}, "binaryData": {"a": _b64("y")}},
        ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
    ),
    "as large as allowed": ({"data": {"a": "x" * MIB}}, []),
    "too large": (
        {"data": {"a": "x" * MIB}, "binaryData": {"b": _b64("y")}},
        ["[]: Too long: may not be more than 1048576 bytes"],
    ),
}


@pytest.mark.parametrize(("body", "want"), CONFIG_MAPS.values(), ids=CONFIG_MAPS.keys())
def test_config_map(body: Obj, want: list[str]) -> None:
    assert create("configmaps", body).texts() == want


FROZEN = "Forbidden: field is immutable when `immutable` is set"
IMMUTABLE: dict[str, tuple[Obj, list[str]]] = {
    "nothing": ({}, []),
    "content": ({"data": {"a": "y"}}, [f"data: {FROZEN}"]),
    "promise": ({"immutable": False}, [f"immutable: {FROZEN}"]),
}


@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
@pytest.mark.parametrize(("change", "want"), IMMUTABLE.values(), ids=IMMUTABLE.keys())
def test_immutable(plural: str, change: Obj, want: list[str]) -> None:
    data = {
        name: {key: _b64(text) for key, text in values.items()} if plural == "secrets" else values
        for name, values in change.items()
        if name == "data"
    }
    old = create(plural, {"data": {"a": _b64("x")}, "immutable": True}).obj
    new = copy.deepcopy(old) | change | data

    assert update(plural, new, old).texts() == want


SECRETS: dict[str, tuple[Obj, list[str]]] = {
    "opaque": ({"data": {"a": _b64("x")}}, []),
    "too large": (
        {"data": {"a": _b64("x" * (MIB + 1))}},
        ["data: Too long: may not be more than 1048576 bytes"],
    ),
    "certificate without key": (
        {"type": "kubernetes.io/tls", "data": {"tls.crt": _b64("x")}},
        ["data[tls.key]: Required value"],
    ),
    "login without anything": (
        {"type": "kubernetes.io/basic-auth"},
        ["data[username]: Required value", "data[password]: Required value"],
    ),
    "token of nobody": (
        {"type": "kubernetes.io/service-account-token"},
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    ),
    "registry": (
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": _b64("{}")}},
        [],
    ),
    "registry in a file that is not JSON": (
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": _b64("x")}},
        [
            'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": invalid'
            " character 'x' looking for beginning of value"
        ],
    ),
    "registry in a file that is not an object": (
        {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": _b64("[]")}},
        [
            'data[.dockercfg]: Invalid value: "<secret contents redacted>": json: cannot unmarshal'
            " array into Go value of type map[string]interface {}"
        ],
    ),
    "registry without file": (
        {"type": "kubernetes.io/dockerconfigjson"},
        ["data[.dockerconfigjson]: Required value"],
    ),
}


@pytest.mark.parametrize(("body", "want"), SECRETS.values(), ids=SECRETS.keys())
def test_secret(body: Obj, want: list[str]) -> None:
    assert create("secrets", body).texts() == want


def test_plain_text_moves_into_data() -> None:
    body = {"data": {"a": _b64("x"), "b": _b64("x")}, "stringData": {"b": "y"}}

    made = create("secrets", body).obj

    assert made["data"] == {"a": _b64("x"), "b": _b64("y")}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


def test_type_of_a_secret_stays() -> None:
    old = create("secrets", {"type": "example.com/a"}).obj

    assert update("secrets", {**old, "type": "example.com/b"}, old).texts() == [
        'type: Invalid value: "example.com/b": field is immutable'
    ]


def test_account_knows_secrets_by_name() -> None:
    made = create("serviceaccounts", {"secrets": [{"name": "s", "namespace": "other"}]}).obj

    assert made["secrets"] == [{"name": "s"}]


def test_account_with_a_secret_without_a_name() -> None:
    assert create("serviceaccounts", {"secrets": [{}]}).obj["secrets"] == [{}]


def test_rows_count() -> None:
    config = create("configmaps", {"data": {"a": "x"}, "binaryData": {"b": _b64("y")}}).obj
    secret = create("secrets", {"stringData": {"a": "x"}}).obj

    assert cells("configmaps", config)["Data"] == 2
    assert (cells("secrets", secret)["Type"], cells("secrets", secret)["Data"]) == ("Opaque", 1)
