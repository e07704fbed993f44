"""Follows the stored definitions and keeps the scheme in step, on every replica.

A definition is served once its names are accepted, which controller.py decides and writes. What
another replica wrote arrives here by the store, so all replicas serve the same kinds.
"""

from collections.abc import Iterator
from typing import Any

from sully.api.apiextensions import GROUP
from sully.api.apiextensions.custom import head_table, resource_of
from sully.api.apiextensions.names import NAMES_ACCEPTED, is_true
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType
from sully.runtime.log import get_logger
from sully.server.storage.informer import StoreInformer
from sully.server.storage.objects import Objects
from sully.server.storage.watching import Watcher
from sully.store.base import Store

Obj = dict[str, Any]
_log = get_logger("server")

DEFINITIONS = f"{GROUP}/customresourcedefinitions"
"""Where definitions are stored."""


class ServedDefinitions:
    """The definitions of a store and the resources that they are served as."""

    def __init__(self, store: Store, objects: Objects, watcher: Watcher) -> None:
        self._store = store
        self._objects = objects
        self._scheme: Scheme = objects.scheme
        self._watcher = watcher
        self._head = head_table(self._scheme.tables)
        self._informer = StoreInformer(store, objects, {DEFINITIONS: self})
        self.all: dict[str, Obj] = {}
        self._served: dict[str, tuple[Any, ResourceType]] = {}
        self.outdated: set[str] = set()
        """Storage keys of resources whose objects look different now."""

    async def start(self) -> None:
        """Serve the stored definitions."""
        await self._informer.open()

    async def catch_up(self) -> None:
        """Serve what was written since the last call, here or by another replica."""
        await self._informer.catch_up()
        for resource in list(self.outdated):
            self.outdated.discard(resource)
            page = await self._store.list(resource)
            for record in page.records:
                record.derived.clear()

    async def changed(self) -> None:
        """Wait until a definition changes."""
        await self._informer.wait()

    def pull(self) -> None:
        """Serve what is already visible here, without waiting."""
        self._informer.pull()

    # -- handler of the informer ----------------------------------------------------------------

    def put(self, obj: Obj) -> None:
        """Serve a definition, or serve it differently."""
        name = obj["metadata"]["name"]
        self.all[name] = obj
        # One whose new names are in use is served under the ones that it has.
        if is_true(obj, NAMES_ACCEPTED) or name in self._served:
            self._serve(name, obj)

    def drop(self, namespace: str, name: str) -> None:  # noqa: ARG002 - cluster-scoped
        """Stop serving a deleted definition."""
        self.all.pop(name, None)
        known = self._served.pop(name, None)
        if known is not None:
            self._scheme.remove(known[1])
            self._watcher.end(known[1].storage_key)
            _log.info("custom resource no longer served", definition=name)

    def _serve(self, name: str, obj: Obj) -> None:
        content = (obj["spec"], obj["status"]["acceptedNames"])
        known = self._served.get(name)
        if (known is not None and known[0] == content) or self.is_built_in(obj):
            return
        resource = resource_of(obj, self._head)
        if known is not None:
            self._scheme.remove(known[1])
            self.outdated.add(resource.storage_key)
        self._scheme.add(resource)
        self._served[name] = (content, resource)
        _log.info("custom resource served", definition=name)

    # -- questions ------------------------------------------------------------------------------

    def is_built_in(self, definition: Obj) -> bool:
        """Report whether the server has the resource of a definition without it."""
        spec = definition["spec"]
        key = f"{spec['group']}/{spec['names']['plural']}"
        resource = self._scheme.stored(key)
        return resource is not None and resource.storage_version.custom is None

    def of(self, storage_key: str) -> Obj | None:
        """Return the definition of a stored resource."""
        group, _, plural = storage_key.partition("/")
        return self.all.get(f"{plural}.{group}")

    def resource(self, name: str) -> ResourceType | None:
        """Return the resource of a definition, if it is served."""
        known = self._served.get(name)
        return None if known is None else known[1]

    def in_group(self, definition: Obj) -> Iterator[Obj]:
        """Yield the other definitions of a group."""
        name, group = definition["metadata"]["name"], definition["spec"]["group"]
        for other_name, other in self.all.items():
            if other_name != name and other["spec"]["group"] == group:
                yield other
