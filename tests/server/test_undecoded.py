"""Readers in this process get what is stored as JSON until a user has decoded it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from manifests import Obj, pod, slice_
from serving import local
from sully.app import ADMIN
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef
from sully.store.base import StoreKey

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"


@dataclass(frozen=True)
class Case:
    """An object as it is created, and as it is read."""

    path: str
    obj: Obj
    stored: StoreKey
    ref: ResourceRef
    undecoded: bool


A_SLICE, A_POD = slice_("a", "n"), pod("a")
STORED_SLICE = StoreKey("resource.k8s.io/resourceslices", "", "a")
CASES = {
    "in the version that is stored": Case(
        PODS, A_POD, StoreKey("pods", "default", "a"), ResourceRef("", "v1", "pods"), True
    ),
    "of the cluster": Case(
        SLICES, A_SLICE, STORED_SLICE, ResourceRef("resource.k8s.io", "v1", "resourceslices"), True
    ),
    "in a version with another structure": Case(
        SLICES,
        A_SLICE,
        STORED_SLICE,
        ResourceRef("resource.k8s.io", "v1beta1", "resourceslices"),
        False,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_stored_object(case: Case) -> None:
    async with local(pods=True) as server:
        (await server.post(case.path, case.obj)).ok(201)
        record = server.api.store.newest(case.stored)
        assert record is not None
        record.derived.clear()  # as after a restart

        (reply,) = (await InProcess(server.api, ADMIN).call("list", case.ref)).items
        document = reply.document

        assert (document is not None) == case.undecoded
        assert document is None or json.loads(document) == reply.obj
        assert reply.document is None, "it is decoded now"


async def test_a_list_has_metadata_and_items() -> None:
    async with local() as server:
        listed = await InProcess(server.api, ADMIN).call(
            "list", ResourceRef("", "v1", "namespaces")
        )

        assert listed.obj["kind"] == "NamespaceList"
        assert listed.obj["metadata"]["resourceVersion"]
        assert listed.document is None
        assert "default" in [item.obj["metadata"]["name"] for item in listed.items]
