"""Transactions of the store as requests to etcd, and errors of etcd as those of the store.

`store.py` decides when to send one, and what the answer means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from sully.store.base import Delete, Op, Put, Record, StoreKey
from sully.store.errors import StoreError, TooLargeError, UnavailableError
from sully.store.etcd import messages as m
from sully.store.etcd.address import Keys
from sully.store.etcd.client import RefusedError, RequestTooLargeError


class Numbers(msgspec.Struct, frozen=True):
    """How a store names and numbers things in etcd."""

    keys: Keys
    offset: int

    def at_etcd(self, revision: int) -> int:
        """Return how etcd numbers a revision; 0, no record, is 0 there too."""
        # A revision before the offset does not exist in etcd; it is not the same as no record.
        return revision - self.offset if revision > self.offset else -1 if revision else 0


def write_request(
    numbers: Numbers, ops: Sequence[Op], stored: Callable[[StoreKey], Record | None], ident: bytes
) -> m.Message:
    """Return the request for these operations, if every key has its expected revision.

    An operation that expects nothing in particular expects what is stored now, so that the same
    request cannot be done twice. If it is rejected, the answer has the tip.
    """
    compare, success = [], []
    for op in ops:
        path = numbers.keys.encode(op.key)
        current = stored(op.key)
        expect = (current.revision if current else 0) if op.expect is None else op.expect
        expected = numbers.at_etcd(expect)
        compare.append(m.Compare(target=m.COMPARE_MOD, key=path, mod_revision=expected))
        if isinstance(op, Put):
            success.append(m.RequestOp(request_put=m.PutRequest(key=path, value=op.value)))
        elif isinstance(op, Delete):
            success.append(m.RequestOp(request_delete_range=m.DeleteRangeRequest(key=path)))
    mark = m.PutRequest(key=numbers.keys.tip, value=ident)
    tip = m.RangeRequest(key=numbers.keys.tip, keys_only=True)
    return m.TxnRequest(
        compare=compare,
        success=[*success, m.RequestOp(request_put=mark)],
        failure=[m.RequestOp(request_range=tip)],
    )


def tip_in(response: m.Message) -> int:
    """Return etcd's revision of the newest write that a rejected request was compared with."""
    kvs = response.responses[0].response_range.kvs
    return kvs[0].mod_revision if kvs else 0


def refusal(error: RefusedError, ops: Sequence[Op]) -> StoreError:
    """Return why etcd would never do these operations."""
    if not isinstance(error, RequestTooLargeError):
        return UnavailableError(str(error))
    largest = max((op for op in ops if isinstance(op, Put)), key=lambda op: len(op.value))
    return TooLargeError(largest.key, len(largest.value))
