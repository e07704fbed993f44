"""Objects as Go writes its internal types."""

from __future__ import annotations

from typing import Any

import pytest

from sully.api import build_scheme
from sully.machinery.serialization.gostructs import MAX_VALUES, diff, internal

CORE = "io.k8s.api.core.v1"
TABLES = build_scheme().tables

CASES: dict[str, tuple[str, Any, Any]] = {
    "every field, in the order of the struct": (
        "Toleration",
        {"effect": "NoExecute", "key": "k"},
        {"Key": "k", "Operator": "", "Value": "", "Effect": "NoExecute", "TolerationSeconds": None},
    ),
    "initials in capitals": (
        "HostAlias",
        {"ip": "10.0.0.1", "hostnames": ["a"]},
        {"IP": "10.0.0.1", "Hostnames": ["a"]},
    ),
    "what Go embeds is part of the struct": (
        "SecretKeySelector",
        {"name": "s", "key": "k"},
        {"Name": "s", "Key": "k", "Optional": None},
    ),
    "a selector, which has names of its own": (
        "PodAffinityTerm",
        {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"},
        {
            "LabelSelector": {"matchLabels": {"a": "b"}},
            "Namespaces": None,
            "TopologyKey": "zone",
            "NamespaceSelector": None,
            "MatchLabelKeys": None,
            "MismatchLabelKeys": None,
        },
    ),
    "maps are sorted": (
        "ResourceRequirements",
        {"limits": {"memory": "1Gi", "cpu": "1"}},
        {"Limits": {"cpu": "1", "memory": "1Gi"}, "Requests": None, "Claims": None},
    ),
}


@pytest.mark.parametrize(("kind", "value", "want"), CASES.values(), ids=CASES.keys())
def test_internal(kind: str, value: Any, want: Any) -> None:
    got = internal(value, TABLES.get(CORE, kind))

    assert list(got.items()) == list(want.items())


def test_renamed_fields() -> None:
    names = {
        ("PodSpec", "serviceAccount"): "DeprecatedServiceAccount",
        ("PodSpec", "dnsPolicy"): "DNSPolicy",
        ("PodSpec", "setHostnameAsFQDN"): "SetHostnameAsFQDN",
        ("PodSecurityContext", "seLinuxOptions"): "SELinuxOptions",
        ("Volume", "cephfs"): "CephFS",
        ("FCVolumeSource", "wwids"): "WWIDs",
        ("RBDVolumeSource", "image"): "RBDImage",
    }

    for (kind, name), want in names.items():
        assert want in internal({name: None}, TABLES.get(CORE, kind)), (kind, name)


def test_diff_escapes_as_go_does() -> None:
    kind = TABLES.get(CORE, "EnvVar")

    got = diff({"name": "a", "value": "<"}, {"name": "a", "value": "&"}, kind)

    assert got == (
        '@@ -1,5 +1,5 @@\n {\n  "Name": "a",\n- "Value": "\\u003c",\n+ "Value": "\\u0026",\n'
        '  "ValueFrom": null\n }\n'
    )


def test_no_difference() -> None:
    assert diff({"name": "a"}, {"name": "a"}, TABLES.get(CORE, "EnvVar")) == ""


def test_what_is_too_large_is_not_compared() -> None:
    large = {"args": ["x"] * MAX_VALUES}

    got = diff(large, {"args": []}, TABLES.get(CORE, "Container"))

    assert got == f"(too large to compare: more than {MAX_VALUES} fields and list items)\n"
