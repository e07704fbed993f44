"""A namespace of a test on a server that is not ours, and plain calls in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from e2e.raw import Raw
from e2e.watching import Named, until
from kube.process import Foreign

Obj = dict[str, Any]


@contextmanager
def emptied(there: Foreign, namespace: str, pods: str, *others: str) -> Iterator[Raw]:
    """Return the admin's access to a namespace; delete what is in these collections at the end."""
    admin = there.admin()
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    until(admin, accounts, lambda result: "default" in result)
    yield admin
    for path in (pods, *others):
        admin.request("DELETE", path, {"gracePeriodSeconds": 0})
    until(admin, pods, lambda left: not left)


def make(admin: Raw, path: str, body: Obj) -> None:
    """Create an object."""
    answer = admin.request("POST", path, body)
    assert answer.code == 201, answer.body


def named(admin: Raw, path: str) -> Named:
    """Return the objects of a collection, by name."""
    items = admin.request("GET", path).json()["items"]
    return {item["metadata"]["name"]: item for item in items}
