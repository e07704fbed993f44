"""A tenant: somebody with rights in one namespace, who wants more, or wants others to have less."""

from __future__ import annotations

import pytest

from hostile.target import Target

pytestmark = pytest.mark.slow


def test_reads_secrets_of_another_namespace(target: Target, namespace: str) -> None:
    target.admin.post(
        f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": "theirs"}}
    ).ok()
    mallory = target.tenant("mallory")

    assert mallory.get("/api/v1/namespaces/mallory/secrets").code == 200
    assert mallory.get(f"/api/v1/namespaces/{namespace}/secrets/theirs").code == 403
