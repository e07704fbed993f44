"""Creates the ServiceAccount `default` in every namespace, also after it was deleted.

Reads namespaces and the accounts of that name; creates accounts. Pods cannot be created in a
namespace before its account exists, so this runs on events and not on a timer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.client.informers.informer import Informer, own_key
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Key, Transport
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.kinds import SERVICE_ACCOUNTS, Namespace, PartialObjectMetadata

DEFAULT = "default"
ACCOUNTS = ObjectSelector(field_selector=f"metadata.name={DEFAULT}")
"""Which ServiceAccounts this controller needs to see."""


class ServiceAccountsController:
    """Creates the default ServiceAccounts."""

    name = "service-account-controller"

    def __init__(
        self,
        *,
        namespaces: Informer[Namespace],
        accounts: Informer[PartialObjectMetadata],
        transport: Transport,
    ) -> None:
        self._namespaces = namespaces
        self._accounts = accounts
        self._transport = transport

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for namespaces, and for the accounts in them."""
        yield Watch(self._namespaces, own_key)
        yield Watch(self._accounts, _namespace_of)

    async def reconcile(self, key: Key) -> Result:
        """Create the account of a namespace if it is missing."""
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.is_terminating:
            return DONE
        if self._accounts.get(Key(key.name, DEFAULT)) is None:
            account = {"metadata": {"name": DEFAULT, "namespace": key.name}}
            await self._transport.create(SERVICE_ACCOUNTS, account)
        return DONE


def _namespace_of(account: PartialObjectMetadata) -> Iterable[Key]:
    return (Key("", account.metadata.namespace),)
