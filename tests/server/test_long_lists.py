"""The encodings of the objects of a list: kept for the next reader, unless there are too many."""

from __future__ import annotations

import pytest

from sully.api import build_scheme
from sully.server.storage.objects import Objects
from sully.store.base import Record, StoreKey


@pytest.mark.parametrize(("count", "cached"), [(3, True), (3000, False)])
def test_bodies_of_a_list(count: int, *, cached: bool) -> None:
    scheme = build_scheme()
    resource = scheme.find("", "v1", "configmaps")
    assert resource is not None
    records = [
        Record(
            StoreKey(resource.storage_key, "default", f"c-{number}"),
            b'{"metadata":{"name":"c-%d"},"data":{}}' % number,
            number,
            number,
        )
        for number in range(count)
    ]
    objects = Objects(scheme)
    alone = [objects.body(record, resource, "v1") for record in records[:2]]
    bodies = list(objects.bodies(records, resource, "v1"))

    assert bodies[:2] == alone
    assert bodies[-1] == (
        b'{"metadata":{"resourceVersion":"%d","name":"c-%d"},"data":{}}' % (count - 1, count - 1)
    )
    assert bool(records[-1].derived) is cached
