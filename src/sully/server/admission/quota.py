"""Enforces the quotas of a namespace on creates and on updates that use more.

What an object uses is charged to `status.used` of the quotas in the same transaction that writes
the object. So of two creates for the last unit one is rejected, also through different servers of
one store: each transaction expects the quota as it was when it was decided.
What an object no longer uses is released in the same way. What existed before the quota is counted
by the controller (controllers/resourcequota).

The quotas of a namespace are found by an index of hints, as in devices.py: the newest state of
each counts. A namespace without quotas costs a write one lookup.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

import msgspec
from msgspec.structs import replace

from sully.api.core.pods.phases import is_terminal
from sully.domain.quota.decisions import Charge, Refusal, account, decide, uncounted
from sully.domain.quota.devices import extended_claim_owner, is_claim_of
from sully.domain.quota.evaluators import IGNORED, Claims, Evaluator, evaluator
from sully.domain.quota.objects import ResourceQuota
from sully.domain.quota.pods import Usage, has_deadline, pod_usage
from sully.machinery.compat import Compat
from sully.machinery.errors import ServiceUnavailable, forbidden
from sully.machinery.serialization.codec import to_json
from sully.runtime.clock import Clock
from sully.server.requests import Target
from sully.server.storage.index import NewestRecords, StoreIndex
from sully.server.storage.informer import StoreInformer, keep_current
from sully.server.storage.objects import Objects
from sully.store.base import Op, Put, Record, Store, StoreKey

Obj = dict[str, Any]

QUOTAS = "resourcequotas"
CLASSES = "resource.k8s.io/deviceclasses"
CLAIMS = "resource.k8s.io/resourceclaims"
PODS = "pods"
_NOTHING = nullcontext()


class QuotaAdmission:
    """Charges writes to quotas, or rejects them."""

    def __init__(self, store: Store, objects: Objects, clock: Clock, compat: Compat) -> None:
        self._store: NewestRecords = store
        self._objects = objects
        self._clock = clock
        self._compat = compat
        self._quotas = StoreIndex(store, objects, QUOTAS, _namespace)
        self._claims = StoreIndex(store, objects, CLAIMS, _owner_uid)
        self._classes = StoreIndex(store, objects, CLASSES, _extended_resource)
        dependencies = {CLAIMS: self._claims, CLASSES: self._classes}
        self._indexes = {QUOTAS: self._quotas, **dependencies}
        self._informer = StoreInformer(store, objects, {QUOTAS: self._quotas})
        # Separate, because it is read only in namespaces with quotas.
        self._dependencies = StoreInformer(store, objects, dependencies)

    def over(self, store: NewestRecords) -> "QuotaAdmission":
        """Return the same for the writes of a transaction, each of which sees those before it."""
        other = copy(self)
        other._store = store
        other._quotas, other._claims = self._quotas.over(store), self._claims.over(store)
        other._indexes = {QUOTAS: other._quotas, CLAIMS: other._claims, CLASSES: self._classes}
        return other

    async def start(self) -> None:
        """Load the quotas."""
        await self._informer.open()
        await self._dependencies.open()

    async def run(self, clock: Clock) -> None:
        """Keep the indexes current until the server stops."""
        await keep_current(clock, self._informer, self._dependencies)

    def awaits_usage(self, target: Target) -> bool:
        """Report whether a quota limits objects of a kind and was not yet counted for it.

        Kubernetes admits such objects uncounted; here a create waits briefly.
        """
        if not self._compat.enforces_quota_immediately or not self._has_quotas(target):
            return False
        kind_evaluator = self._evaluator(target)
        quotas = map(self._quota, self._quotas.newest(target.namespace))
        return any(uncounted(quota, kind_evaluator) for quota in quotas)

    def charge(self, target: Target, obj: Obj, old: Obj | None = None) -> list[Op]:
        """Return the quota updates to commit with an object; raises Forbidden if one is exceeded.

        They are valid until the next `await`: the caller commits without one.
        """
        if (old is not None and not _changes_usage(target, obj, old)) or not self._has_quotas(
            target
        ):
            return []
        records, quotas, kind_evaluator = self._state_of(target)
        if target.subresource == "status":
            # A status reports what exists and cannot be rejected.
            return self._puts(records, account(quotas, kind_evaluator, obj, old))
        decision = decide(quotas, kind_evaluator, obj, old, compat=self._compat)
        if isinstance(decision, Refusal):
            resource, name = target.resource, obj["metadata"]["name"]
            raise forbidden(resource.plural, resource.group, name, decision.text)
        return self._puts(records, decision)

    def release(self, target: Target, record: Record) -> list[Op]:
        """Return the quota updates to commit with the deletion of an object."""
        if not self._has_quotas(target):
            return []
        records, quotas, kind_evaluator = self._state_of(target)
        ops = self._puts(records, account(quotas, kind_evaluator, None, self._objects.bare(record)))
        # A quota may count itself.
        return [op for op in ops if op.key != record.key]

    def indexed_while_written(self, key: StoreKey, obj: Obj) -> AbstractContextManager[None]:
        """Index a new object while it is being written, if quotas depend on it."""
        index = self._indexes.get(key.resource)
        return _NOTHING if index is None else index.indexed_while_written(key, obj)

    def _has_quotas(self, target: Target) -> bool:
        resource = target.resource
        if not resource.namespaced or (resource.group, resource.plural) in IGNORED:
            return False
        self._pull(self._informer)
        return bool(self._quotas.keys_of(target.namespace))

    def _pull(self, informer: StoreInformer) -> None:
        informer.pull()
        if informer.expired:
            raise ServiceUnavailable("quotas are being listed again, try again")

    def _state_of(self, target: Target) -> tuple[list[Record], list[ResourceQuota], Evaluator]:
        records = self._quotas.newest(target.namespace)
        return records, list(map(self._quota, records)), self._evaluator(target)

    def _quota(self, record: Record) -> ResourceQuota:
        """Return a quota as a type, converted once per revision."""
        quota: ResourceQuota | None = record.derived.get(ResourceQuota)
        if quota is None:
            quota = msgspec.convert(self._objects.bare(record), ResourceQuota)
            record.derived[ResourceQuota] = quota
        return quota

    def _puts(self, records: Iterable[Record], charges: Iterable[Charge]) -> list[Op]:
        by_name = {record.key.name: record for record in records}
        return [self._put(by_name[charge.name], charge.used) for charge in charges]

    def _put(self, record: Record, used: dict[str, str]) -> Put:
        bare, quota = self._objects.bare(record), self._quota(record)
        changed = {**bare, "status": {**bare["status"], "used": used}}
        counted = replace(quota, status=replace(quota.status, used=used))
        # The next write in the namespace reads it again.
        derived = {"bare": changed, ResourceQuota: counted}
        return Put(record.key, to_json(changed), record.revision, derived)

    def _evaluator(self, target: Target) -> Evaluator:
        self._pull(self._dependencies)
        resource = target.resource
        classes = {key.name: value for key, value in self._classes.values.items()}
        claims = Claims(classes, self._owner_usage)
        return evaluator(resource.group, resource.plural, self._clock.now(), claims)

    def _owner_usage(self, claim: Obj) -> Usage:
        """Return the usage of the pod for whose extended resources a claim was created, if any."""
        owner = extended_claim_owner(claim)
        if owner is None:
            return {}
        record = self._store.newest(StoreKey(PODS, claim["metadata"]["namespace"], owner["name"]))
        pod = None if record is None else self._objects.bare(record)
        if pod is None or pod["metadata"]["uid"] != owner["uid"]:
            return {}
        owned = map(self._objects.bare, self._claims.newest(owner["uid"]))
        claims = [claim for claim in owned if _owner_uid(claim) == owner["uid"]]
        return pod_usage(pod, self._clock.now()) if is_claim_of(claim, pod, claims) else {}


def _changes_usage(target: Target, obj: Obj, old: Obj) -> bool:
    """Report whether an update may change what an object uses; pods change requests by `resize`."""
    match target.resource.storage_key, target.subresource:
        case "pods", "" | "status":
            return has_deadline(obj) != has_deadline(old) or is_terminal(obj) != is_terminal(old)
        case "pods", "resize":
            return True
        case "resource.k8s.io/resourceclaims" | "services" | "persistentvolumeclaims", "":
            return True
        case _:
            return False


def _namespace(quota: Obj) -> str:
    return str(quota["metadata"]["namespace"])


def _owner_uid(claim: Obj) -> str | None:
    owner = extended_claim_owner(claim)
    return None if owner is None else str(owner["uid"])


def _extended_resource(device_class: Obj) -> str:
    return device_class["spec"].get("extendedResourceName") or ""
