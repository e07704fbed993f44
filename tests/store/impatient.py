"""Calls to etcd that are expected to fail, and should do so soon."""

from collections.abc import Iterator
from contextlib import contextmanager

from sully.store.etcd.store import EtcdStore


@contextmanager
def impatient(store: EtcdStore, seconds: float = 2.0) -> Iterator[None]:
    """Shorten the timeout for calls that must fail: what must succeed has the usual one."""
    client = store._client
    before, client.timeout = client.timeout, seconds
    try:
        yield
    finally:
        client.timeout = before
