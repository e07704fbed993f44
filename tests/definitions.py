"""CustomResourceDefinitions for tests, and a server that serves what they define."""

from __future__ import annotations

from typing import Any

from serving import Asgi
from sully.app import APISERVER
from sully.server.customresources.controller import DefinitionController
from sully.server.inprocess import InProcess

Obj = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "stable.example.com"
STRING: Obj = {"type": "string"}
INTEGER: Obj = {"type": "integer"}


def fields(**properties: Obj) -> Obj:
    """Return the schema of an object with fields."""
    return {"type": "object", "properties": properties}


def version(spec: Obj, name: str = "v1", **more: Any) -> Obj:
    """Return a version whose objects have a spec."""
    schema = fields(spec=spec, status=fields(replicas=INTEGER, selector=STRING, phase=STRING))
    return {
        "name": name,
        "served": True,
        "storage": name == "v1",
        "schema": {"openAPIV3Schema": schema},
        **more,
    }


def definition(
    spec: Obj | None = None, *versions: Obj, plural: str = "crontabs", scope: str = "Namespaced"
) -> Obj:
    """Return a definition; `spec` is the schema of the spec in its one version."""
    singular = plural.removesuffix("s")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "plural": plural,
                "singular": singular,
                "kind": singular.capitalize(),
                "shortNames": [plural[:2]],
            },
            "versions": [*versions] or [version(spec or fields(a=STRING))],
        },
    }


def custom(name: str = "a", spec: Obj | None = None, version: str = "v1", **more: Any) -> Obj:
    """Return an object of the defined kind."""
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Crontab",
        "metadata": {"name": name},
        "spec": spec or {},
        **more,
    }


class Defining:
    """A server with definitions; `settle` does what its controller does in the background."""

    def __init__(self, server: Asgi) -> None:
        self.server = server
        access = InProcess(server.api, APISERVER, agent="kube-apiserver")
        self._controller = DefinitionController(
            server.store, server.api.definitions, access, server.api.clock
        )

    async def settle(self) -> None:
        """Reconcile until nothing changes any more."""
        before = -1
        while before != self.server.store.revision:
            before = self.server.store.revision
            await self.server.api.definitions.catch_up()
            await self._controller.reconcile()
        await self.server.api.definitions.catch_up()

    async def define(self, defined: Obj) -> Obj:
        """Create or replace a definition and wait until it is served."""
        path = f"{DEFINITIONS}/{defined['metadata']['name']}"
        current = await self.server.get(path)
        if current.code == 200:
            resource_version = current.json["metadata"]["resourceVersion"]
            metadata = {**defined["metadata"], "resourceVersion": resource_version}
            (await self.server.put(path, {**defined, "metadata": metadata})).ok(200)
        else:
            (await self.server.post(DEFINITIONS, defined)).ok(201)
        await self.settle()
        body: Obj = (await self.server.get(path)).ok(200)
        return body
