"""Copies of typed objects with other values."""

from __future__ import annotations

from msgspec.structs import replace

from sully.domain.scheduling.objects import PodMetadata
from sully.machinery.meta import OwnerReference
from sully.machinery.serialization.wire import amended

OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="o", uid="u")


def test_an_amended_object_is_as_a_replaced_one() -> None:
    before = PodMetadata(name="p", namespace="a", owner_references=(OWNER,))

    after = amended(before, name="q", resource_version="2")

    assert after == replace(before, name="q", resource_version="2")
    assert before.name == "p"
    assert after.owner_references is before.owner_references
