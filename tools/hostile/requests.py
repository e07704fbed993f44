"""What a hostile request is made of: paths, media types, small writers of bodies."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
TARGET = f"{CONFIG_MAPS}/target"
JSON = "application/json"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MEBI = 1 << 20


@dataclass(frozen=True)
class Bomb:
    """One request."""

    method: str
    path: str
    body: Callable[[], bytes] = lambda: b""
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def config_map(**fields: Any) -> bytes:
    """Write a ConfigMap with something in it."""
    metadata = {"generateName": "bomb-"} | fields.pop("metadata", {})
    return json.dumps({"metadata": metadata, **fields}).encode()


def within(field: bytes) -> bytes:
    """Put raw JSON into a field that no schema knows, and one that takes any text."""
    return b'{"metadata":{"generateName":"bomb-"},"unknown":' + field + b"}"


def selector(text: str) -> str:
    """Return a list with a label selector."""
    return f"{CONFIG_MAPS}?labelSelector={quote(text)}"
