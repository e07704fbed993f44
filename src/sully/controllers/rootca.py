"""Publishes the CA certificate in every namespace, as ConfigMap `kube-root-ca.crt`.

Reads namespaces and the ConfigMaps of that name; creates them, and restores them after changes.
Pods mount this ConfigMap with their token, to verify the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from sully.client.informers.informer import Informer, own_key
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.kinds import Metadata, Namespace
from sully.machinery.meta import Wire

NAME = "kube-root-ca.crt"
FILE = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
TEXT = (
    "The certificate of the authority that vouches for this cluster's API server. Use it to check"
    " addresses inside the cluster, such as kubernetes.default.svc, and nothing else."
)


class AnnotatedMetadata(Metadata, frozen=True, kw_only=True):
    """Metadata with annotations."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class ConfigMap(Wire, frozen=True, kw_only=True):
    """A ConfigMap without its binary data."""

    metadata: AnnotatedMetadata = msgspec.field(default_factory=AnnotatedMetadata)
    data: dict[str, str] = msgspec.field(default_factory=dict)


CONFIG_MAPS: Kind[ConfigMap] = Kind("", "v1", "configmaps", "ConfigMap", ConfigMap)
WHOLE_CONFIG_MAPS: Kind[dict[str, Any]] = CONFIG_MAPS.read_as(dict)
PUBLISHED = ObjectSelector(field_selector=f"metadata.name={NAME}")
"""Which ConfigMaps this controller needs to see."""


class RootCaController:
    """Keeps the CA certificate in all namespaces."""

    name = "root-ca-cert-publisher"

    def __init__(
        self,
        *,
        namespaces: Informer[Namespace],
        maps: Informer[ConfigMap],
        transport: Transport,
        certificate: str,
    ) -> None:
        self._namespaces = namespaces
        self._maps = maps
        self._transport = transport
        self._data = {FILE: certificate}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for namespaces, and for the ConfigMaps in them."""
        yield Watch(self._namespaces, own_key)
        yield Watch(self._maps, _namespace_of)

    async def reconcile(self, key: Key) -> Result:
        """Create or restore the ConfigMap of a namespace."""
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.is_terminating:
            return DONE
        map_key = Key(key.name, NAME)
        config_map = self._maps.get(map_key)
        if config_map is None:
            body: dict[str, Any] = {"metadata": {"name": NAME, "namespace": key.name}}
            await self._transport.create(CONFIG_MAPS, self._with_data(body))
        elif config_map.data != self._data or DESCRIPTION not in config_map.metadata.annotations:
            # From the server, because an update replaces all fields, and the cache has only some.
            whole = await self._transport.get(WHOLE_CONFIG_MAPS, map_key)
            await self._transport.update(WHOLE_CONFIG_MAPS, self._with_data(whole))
        return DONE

    def _with_data(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return a ConfigMap with our data; labels and other annotations are unchanged."""
        annotations = {DESCRIPTION: TEXT} | (obj["metadata"].get("annotations") or {})
        metadata = obj["metadata"] | {"annotations": annotations}
        return obj | {"metadata": metadata, "data": dict(self._data)}


def _namespace_of(config_map: ConfigMap) -> Iterable[Key]:
    return (Key("", config_map.metadata.namespace),)
