"""Records who changes or deletes a taint rule, in the same transaction.

Only the server knows who writes. The record itself (TaintRecord) is created and updated by
`controllers/history`; for a rule that changes before that, it is created here. What a record
contains is `domain/eviction/records.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from sully.api.resource.annotations import CREATED_BY, creator_of, expiry
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import GROUP, VERSION, TaintRecord, TaintRecordStatus
from sully.domain.eviction.records import (
    EXPIRY,
    close_record,
    follow,
    open_record,
    set_deleter,
    taint_record_name,
)
from sully.machinery.formats.timestamps import format_time
from sully.machinery.serialization.codec import from_json, to_json
from sully.machinery.serialization.decode import decode
from sully.machinery.serialization.moments import rewriter
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.server.requests import Request
from sully.server.storage.objects import Objects
from sully.store.base import Op, Put, Store, StoreKey

RULES = "resource.k8s.io/devicetaintrules"
RECORDS = "taintrecords"
_EXPIRY_CONTROLLER = "taint-expiry-controller"
_ACCOUNTS = "system:serviceaccount:"


class RuleHistory:
    """Adds the authors of changes to the records of rules."""

    def __init__(self, store: Store, objects: Objects, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._ids = ids
        # A server in compatibility mode has no records.
        self._resource = objects.scheme.find(GROUP, VERSION, RECORDS)

    def ops(self, request: Request, old: Obj, new: Obj | None) -> Iterator[Op]:
        """Yield further operations of a write; without a new object the old one is deleted."""
        target = request.target
        if target.resource.storage_key != RULES or target.subresource or self._resource is None:
            return
        metadata = old["metadata"]
        name = taint_record_name(metadata["name"], metadata["uid"])
        key = StoreKey(self._resource.storage_key, "", name)
        record = self._store.newest(key)
        bare = self._objects.bare(record) if record is not None else self._opened(old)
        status = msgspec.convert(bare.get("status", {}), TaintRecordStatus)
        recorded = _recorded(status, old, new, request=request, now=self._clock.now())
        if recorded == status:
            return
        schema = self._objects.scheme.schema(self._resource, VERSION)
        # In the normal form, as after every other write.
        normal = decode({**bare, "status": _normalized(recorded)}, schema, [])
        obj = {**bare, "status": normal["status"]}
        revision = record.revision if record is not None else 0
        yield Put(key, to_json(obj), revision, {"bare": obj})

    def _opened(self, rule: Obj) -> Obj:
        """Return the record of a rule that has none yet."""
        now = self._clock.now()
        opened = open_record(msgspec.convert(rule, DeviceTaintRule), now=now)
        body: Obj = from_json(to_json(opened))
        rewrite = rewriter(TaintRecord)
        body = body if rewrite is None else rewrite(body)
        body["metadata"] |= {"uid": self._ids.uid(), "creationTimestamp": format_time(now)}
        assert self._resource is not None, "ops() checks it"
        return decode(body, self._objects.scheme.schema(self._resource, VERSION), [])


def _recorded(
    status: TaintRecordStatus, old: Obj, new: Obj | None, *, request: Request, now: datetime
) -> TaintRecordStatus:
    if new is None:
        return close_record(status, now=now, by=_deleter(old, request, now))
    if "deletionTimestamp" not in new["metadata"]:
        rule = msgspec.convert(new, DeviceTaintRule)
        return follow(status, rule, now=now, by=_author(old, request))
    if "deletionTimestamp" not in old["metadata"]:
        return set_deleter(status, by=_deleter(old, request, now))
    return status


def _deleter(rule: Obj, request: Request, now: datetime) -> str:
    """Return who deletes a rule, except the controller that deletes expired ones.

    Its user agent decides, for it may run as any user; another client that deletes a rule
    that has expired hides nothing by that.
    """
    ends = expiry(rule["metadata"].get("annotations") or {})
    due = ends is not None and ends <= now
    if due and request.manager == _EXPIRY_CONTROLLER:
        return EXPIRY
    return _author(rule, request)


def _author(rule: Obj, request: Request) -> str:
    """Return the policy or maintenance of a rule if its controller writes, else the user.

    The controller is the service account that created the rule. People who name a policy in a rule
    of theirs are still recorded themselves.
    """
    user, annotations = request.user.name, rule["metadata"].get("annotations") or {}
    is_controller = user.startswith(_ACCOUNTS) and user == annotations.get(CREATED_BY)
    return creator_of(annotations) if is_controller else user


def _normalized(status: TaintRecordStatus) -> Obj:
    normalized: Obj = from_json(to_json(status))
    rewrite = rewriter(TaintRecordStatus)
    return normalized if rewrite is None else rewrite(normalized)
