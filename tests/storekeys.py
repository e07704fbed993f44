"""Keys of objects in a store."""

from sully.store.base import StoreKey


def pod(name: str, namespace: str = "default") -> StoreKey:
    return StoreKey("pods", namespace, name)
