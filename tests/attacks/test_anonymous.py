"""Anybody who reaches the port: no certificate, no token, or a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from hostile.target import Target
from robust.inputs.clients import parse

pytestmark = pytest.mark.slow

FLOOD = 300
LONG = 16 << 10


def test_pushes_others_out_of_the_audit_log(target: Target, namespace: str) -> None:
    """Fill the audit log with refusals that are as long as the server takes them."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    target.admin.post(path, {"metadata": {"name": "trace"}}).ok()
    target.audited(lambda event: _name(event) == "trace")
    log, own = (target.up.data_dir / name for name in ("audit.log", "audit-unauthenticated.log"))
    before = log.stat().st_size

    headers = {"user-agent": "x" * LONG, "authorization": "Bearer wrong", "content-length": "0"}
    request = target.anonymous.head("POST", path, headers) + b"\r\n"
    with target.anonymous.connect() as connection:
        for _ in range(FLOOD):
            connection.sendall(request)
            assert parse(connection.recv(1 << 16))[0] == 401
    target.admin.post(path, {"metadata": {"name": "after"}}).ok()
    target.audited(lambda event: _name(event) == "after")

    # Of those who are known, controllers included, there are a few lines; of the flood none.
    assert log.stat().st_size - before < FLOOD * LONG / 10
    assert all(event["user"] for event in target.audit_events())
    (*_, last) = target.audited(lambda event: not event["user"], own.name)
    assert last["userAgent"] == "x" * 1024 + "...TRUNCATED"
    # A burst of them, and some for each second that the test took.
    assert own.stat().st_size < FLOOD * LONG / 3


def test_breaks_the_audit_log(target: Target, namespace: str) -> None:
    """Send what cannot be written down, so that nothing after it is."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    broken = b'{metadata: {name: "\\uD800"}}'
    target.admin.call("POST", path, broken, "application/yaml")
    odd = {"user-agent": "line\tbreak \xff\x85"}
    target.anonymous.call("POST", path, {}, headers=odd)
    target.admin.post(path, {"metadata": {"name": "later"}}).ok()

    target.audited(lambda event: _name(event) == "later")


def _name(event: dict[str, Any]) -> str:
    return event.get("objectRef", {}).get("name", "")
