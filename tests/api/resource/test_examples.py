"""The examples are objects the server accepts, without a warning and without a typing error."""

from pathlib import Path

import pytest
import yaml

from api.resource.writing import BY_KIND, TABLES, Writer, served
from sully.machinery.serialization.decode import decode

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = {
    "deviceclass": "DeviceClass",
    "resourceslice": "ResourceSlice",
    "resourceclaim": "ResourceClaim",
    "resourceclaimtemplate": "ResourceClaimTemplate",
    "devicetaintrule": "DeviceTaintRule",
    "resourceslicepatch": "ResourceSlicePatch",
}


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str) -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))

    assert documents
    for document in documents:
        kind = BY_KIND[NAMES[name]]
        group, _, version = document["apiVersion"].partition("/")
        unknown: list[str] = []
        decode(document, TABLES.get(served(kind, version).package, kind.kind), unknown)
        got = Writer(version=version).create(document)
        assert (group, document["kind"]) == (kind.group, kind.kind)
        assert (unknown, got.texts, got.warnings) == ([], [], [])
