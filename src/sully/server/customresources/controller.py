"""Writes the conditions of definitions, and deletes the objects of deleted ones.

Runs in every replica, as in Kubernetes: what it writes follows from the stored definitions, so
replicas agree, and of two that write the same one gets a conflict and finds nothing left to do.
"""

from contextlib import suppress
from typing import Any

from sully.api.apiextensions import GROUP
from sully.api.apiextensions.names import (
    CLEANUP,
    ESTABLISHED,
    NAMES_ACCEPTED,
    TERMINATING,
    condition,
    established_status,
    is_true,
    names_status,
    with_condition,
)
from sully.machinery.errors import ApiError, Conflict, NotFound
from sully.machinery.formats.timestamps import format_time
from sully.machinery.strategy import ResourceType
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first
from sully.server.customresources.definitions import ServedDefinitions
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef
from sully.store.base import Store
from sully.store.errors import ClosedError, StoreError

Obj = dict[str, Any]
_log = get_logger("server")

PLURAL = "customresourcedefinitions"
POLL_SECONDS = 0.05
RESYNC_SECONDS = 2.0
_BUILT_IN = (
    "False",
    "OverlappingBuiltInResource",
    "instances overlap with built-in resources in storage",
)
_IN_PROGRESS = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_COMPLETED = ("False", "InstanceDeletionCompleted", "removed all instances")
_NEVER = ("False", "NeverEstablished", "resource was never established")


class DefinitionController:
    """Brings definitions to the state that their spec wants."""

    def __init__(
        self, store: Store, served: ServedDefinitions, access: InProcess, clock: Clock
    ) -> None:
        self._store = store
        self._served = served
        self._access = access
        self._clock = clock

    async def run(self) -> None:
        """Follow the definitions until the server stops."""
        wait = POLL_SECONDS
        with suppress(ClosedError):
            while True:
                await self._served.catch_up()
                if await self.reconcile():
                    await self._clock.sleep(wait)
                    wait = min(2 * wait, RESYNC_SECONDS)
                else:
                    wait = POLL_SECONDS
                    # The watch must not fall behind the compaction of the store.
                    await wait_first(self._served.changed(), self._clock.sleep(RESYNC_SECONDS))

    async def reconcile(self) -> bool:
        """Reconcile all definitions; report whether objects of deleted ones remain."""
        busy = False
        for name in list(self._served.all):
            definition = self._served.all.get(name)
            if definition is None:
                continue
            try:
                busy |= await self._reconcile(definition)
            except (Conflict, NotFound):
                # Changed or deleted meanwhile: the next round sees that.
                continue
            except (ApiError, StoreError) as error:
                _log.warning("failed to update definition", definition=name, error=str(error))
                busy = True
        return busy

    async def _reconcile(self, definition: Obj) -> bool:
        if "deletionTimestamp" in definition["metadata"]:
            if CLEANUP in (definition["metadata"].get("finalizers") or ()):
                return await self._finalize(definition)
            return False
        definition = await self._accept_names(definition)
        if is_true(definition, NAMES_ACCEPTED) and not is_true(definition, ESTABLISHED):
            # The condition promises that the kind is served, so it comes after.
            await self._served.catch_up()
            await self._write(definition, established_status(definition, self._now()))
        return False

    async def _accept_names(self, definition: Obj) -> Obj:
        status = definition["status"]
        if definition["spec"]["names"] == status.get("acceptedNames"):
            return definition
        others = [other for other in self._served.in_group(definition) if other.get("status")]
        new = names_status(definition, others, self._now())
        if _same_state(new, status):
            return definition
        return await self._write(definition, new)

    # -- deletion ---------------------------------------------------------------------------------

    async def _finalize(self, definition: Obj) -> bool:
        """Delete the objects of a definition, then let it go; report whether any remain."""
        if condition(definition, TERMINATING).get("reason") != _IN_PROGRESS[1]:
            definition = await self._set(definition, _IN_PROGRESS)
        resource = self._served.resource(definition["metadata"]["name"])
        if self._served.is_built_in(definition):
            await self._release(definition, _BUILT_IN)
            return False
        if not is_true(definition, ESTABLISHED) or resource is None:
            await self._release(definition, _NEVER)
            return False
        if await self._delete_objects(resource):
            return True
        await self._release(definition, _COMPLETED)
        return False

    async def _delete_objects(self, resource: ResourceType) -> bool:
        """Delete all objects; report whether some remain, because of their finalizers."""
        page = await self._store.list(resource.storage_key)
        version = next((version.name for version in resource.versions if version.enabled), "")
        if not page.records or not version:
            return bool(page.records)
        live = [record for record in page.records if b'"deletionTimestamp"' not in record.value]
        for namespace in sorted({record.key.namespace for record in live}):
            ref = ResourceRef(resource.group, version, resource.plural, namespace)
            await self._access.call("deletecollection", ref)
        return bool((await self._store.list(resource.storage_key)).records)

    async def _release(self, definition: Obj, state: tuple[str, str, str]) -> None:
        finalizers = definition["metadata"].get("finalizers") or ()
        metadata = dict(definition["metadata"])
        metadata["finalizers"] = [name for name in finalizers if name != CLEANUP]
        status = with_condition(definition["status"], TERMINATING, state, self._now())
        await self._write({**definition, "metadata": metadata}, status)

    async def _set(self, definition: Obj, state: tuple[str, str, str]) -> Obj:
        status = with_condition(definition["status"], TERMINATING, state, self._now())
        return await self._write(definition, status)

    async def _write(self, definition: Obj, status: Obj) -> Obj:
        """Write a status, if the definition is still the one it was computed for."""
        name = definition["metadata"]["name"]
        ref = ResourceRef(GROUP, "v1", PLURAL, name=name)
        current = (await self._access.call("get", ref)).obj
        if current["metadata"]["uid"] != definition["metadata"]["uid"] or (
            current["spec"] != definition["spec"]
        ):
            raise Conflict("the definition changed")
        metadata = {
            **definition["metadata"],
            "resourceVersion": current["metadata"]["resourceVersion"],
        }
        changed = {**definition, "metadata": metadata, "status": status}
        ref = ResourceRef(GROUP, "v1", PLURAL, name=name, subresource="status")
        reply = await self._access.call("update", ref, body=changed)
        return reply.obj

    def _now(self) -> str:
        return format_time(self._clock.now())


def _same_state(left: Obj, right: Obj) -> bool:
    def state(status: Obj) -> Any:
        conditions = status.get("conditions") or ()
        return status.get("acceptedNames"), [
            (entry["type"], entry["status"], entry["reason"], entry["message"])
            for entry in conditions
        ]

    return bool(state(left) == state(right))
