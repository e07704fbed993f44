"""Pods that are alike share what they have in common, however they are read."""

from __future__ import annotations

from typing import Any

import msgspec

import manifests
from sully.domain.scheduling.objects import Pod


def body(name: str) -> dict[str, Any]:
    return manifests.pod(
        name,
        {
            "nodeName": "node-1",
            "schedulerName": "sully",
            "preemptionPolicy": "PreemptLowerPriority",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        namespace="team-a",
        ownerReferences=[{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "u"}],
    )


def read(name: str) -> Pod:
    return msgspec.json.decode(msgspec.json.encode(body(name)), type=Pod)


def test_pods_share_what_they_have_in_common() -> None:
    one, two = read("a"), read("b")

    assert (one.metadata.name, two.metadata.name) == ("a", "b")
    for field in ("namespace", "owner_references"):
        assert getattr(one.metadata, field) is getattr(two.metadata, field)
    shared = ("node_name", "resource_claims", "scheduler_name", "preemption_policy", "tolerations")
    for field in shared:
        assert getattr(one.spec, field) is getattr(two.spec, field)


def test_what_differs_stays_different() -> None:
    one, other = body("a"), body("b")
    other["metadata"]["namespace"] = "team-b"
    other["spec"] |= {"nodeName": "", "tolerations": [{"key": "other"}], "resourceClaims": []}

    got = msgspec.convert(other, Pod)

    assert got.metadata.namespace == "team-b"
    assert (got.spec.node_name, got.spec.resource_claims) == ("", ())
    assert [x.key for x in got.spec.tolerations] == ["other"]
    assert msgspec.convert(one, Pod).spec.node_name == "node-1"
