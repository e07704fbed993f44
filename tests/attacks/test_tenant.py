"""A tenant: somebody with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

import pytest

from attacks.target import Target

pytestmark = pytest.mark.slow


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403


def test_forges_what_the_devices_of_a_claim_were(target: Target) -> None:
    """Rules are judged by this note when a driver has withdrawn a device."""
    mallory = target.tenant("forger")
    note = "sully.dev/allocated-attributes"
    claims = "/apis/resource.k8s.io/v1/namespaces/forger/resourceclaims"
    requests = [{"name": "r", "exactly": {"deviceClassName": "x"}}]
    body = {
        "metadata": {"name": "c", "annotations": {note: "forged", "mine": "kept"}},
        "spec": {"devices": {"requests": requests}},
    }

    made = mallory.post(claims, body).ok()["metadata"]["annotations"]
    changed = mallory.merge(f"{claims}/c", {"metadata": {"annotations": {note: "forged"}}})
    target.admin.merge(f"{claims}/c", {"metadata": {"annotations": {note: "true"}}}).ok()
    removed = mallory.merge(f"{claims}/c", {"metadata": {"annotations": {note: None}}})
    replaced = mallory.put(f"{claims}/c", body)

    assert (made, changed.ok()["metadata"]["annotations"]) == ({"mine": "kept"}, {"mine": "kept"})
    for answer in (removed, replaced):
        assert answer.ok()["metadata"]["annotations"][note] == "true"
