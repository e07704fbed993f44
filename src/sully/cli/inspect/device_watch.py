"""`sully devices --watch`: the devices, and then each one that changes.

Only pools that an event is about are looked at again; a device is printed when something other than
an age has changed.
"""

from collections.abc import Callable, Iterable
from functools import partial
from operator import is_
from typing import Any, TypeVar

from sully.api.resource.types import (
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceSlicePatch,
)
from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.printers import print_event
from sully.cli.client.session import Session
from sully.cli.client.snapshots import is_known
from sully.cli.client.tables import Table
from sully.cli.client.watching import (
    Caches,
    PendingChanges,
    eviction_here,
    exposures_of,
    watch_kinds,
)
from sully.cli.inspect.device_printer import columns, document, row
from sully.cli.inspect.devices import Choice, needed_kinds
from sully.client.transport import Kind
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.eviction.judge import Terms
from sully.views.devices.details import Sight, Sights
from sully.views.devices.inventory import Inventory
from sully.views.devices.name_index import names_in
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES
from sully.views.snapshot.kinds import DEVICES

T = TypeVar("T")
Noted = DeviceTaintRule | ResourceSlicePatch
_Same = Callable[[Any, Any], bool]
_GONE = "(gone)"


async def watch(session: Session) -> int:
    async with watch_kinds(session, DEVICES, needed=needed_kinds(session)) as caches:
        screen = _Screen(session)
        changes, choice = views_of(session, caches, await eviction_here(session))
        screen.begin(list(choice.all(session.clock.now())))
        while True:
            for pool in await changes.wait(session, caches):
                now = session.clock.now()
                screen.update(pool, list(choice.pool(pool.driver, pool.pool, now)))


def views_of(session: Session, caches: Caches, terms: Terms) -> tuple[PendingChanges, Choice]:
    """Return the pools to look at again, and the devices to print."""
    inventory = exposures_of(session, caches, terms).inventory
    # Every pod with a device, also one that is not evicted from it.
    usage = Usage(pods=caches.of(PODS), claims=caches.of(CLAIMS))
    known = is_known(caches.gap(CLAIMS))
    sights = Sights(inventory, usage, caches.of(PATCHES), terms=terms, users_known=known)
    choice = Choice(session, inventory, sights)
    changes, begun = PendingChanges(), False

    def listen(kind: Kind[T], pools: Callable[[T], Iterable[PoolId]], same: _Same = is_) -> None:
        def changed(old: T | None, new: T | None) -> None:
            for each in (old, new) if begun and not same(old, new) else ():
                if each is not None:
                    changes.add(*pools(each))

        caches.of(kind).on_change(changed)

    reach = partial(_reach, inventory, usage)
    listen(RULES, reach, _says_the_same)
    listen(PATCHES, reach, _says_the_same)
    listen(CLASSES, lambda each: inventory.pools() if _is_asked(session, each) else ())
    listen(CLAIMS, _pools)
    listen(PODS, lambda each: [id_ for one in usage.claims_of(each) for id_ in _pools(one)])
    inventory.on_change(lambda change: changes.add(*change.pools) if begun else None)
    begun = True
    return changes, choice


def _says_the_same(old: Noted | None, new: Noted | None) -> bool:
    """Report whether nothing changed that is printed.

    Annotations are, such as the expiry; the status, which changes all the time, is not.
    """
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    return old.spec == new.spec and before.annotations == after.annotations


def _is_asked(session: Session, class_: DeviceClass) -> bool:
    """Report whether this class selects the devices."""
    return bool(class_.metadata.name == session.options.device_class)


def _reach(inventory: Inventory, usage: Usage, noted: Noted) -> Iterable[PoolId]:
    """Return the pools with devices that a rule or patch selects.

    A device that no slice has any more is not in the inventory, but may still be allocated.
    """
    if isinstance(noted, DeviceTaintRule):
        selector = noted.spec.device_selector or DeviceTaintSelector()
    else:
        selector = noted.spec.devices.filter or DeviceTaintSelector()
    found = {each.pool_id: None for each in inventory.named(selector)}
    return found | {each.device.pool_id: None for each in usage.held(names_in(selector))}


def _pools(claim: ResourceClaim) -> Iterable[PoolId]:
    if claim.status.allocation is None:
        return ()
    results = claim.status.allocation.devices.results
    return {PoolId(each.driver, each.pool): None for each in results}


class _Screen:
    """Prints devices that differ from what was printed last."""

    def __init__(self, session: Session) -> None:
        self._clock = session.clock
        self._output = session.options.output
        self._wide = self._output == "wide"
        self._titled = not session.options.no_headers
        self._table = Table(columns((), wide=self._wide), grows=True)
        self._shown: dict[PoolId, dict[DeviceId, dict[str, Any]]] = {}

    def begin(self, sights: list[Sight]) -> None:
        for sight in sights:
            known = self._shown.setdefault(sight.id.pool_id, {})
            known[sight.id] = document(sight)
        if self._output in TABLES:
            now = self._clock.now()
            shape = columns(sights, wide=self._wide)
            self._table = Table(shape, grows=True, titled=self._titled)
            self._table.show([row(each, now, wide=self._wide) for each in sights])
        else:
            for sight in sights:
                self._print("ADDED", document(sight), sight)

    def update(self, pool: PoolId, sights: list[Sight]) -> None:
        before = self._shown.pop(pool, {})
        after = {sight.id: document(sight) for sight in sights}
        if after:
            self._shown[pool] = after
        for sight in sights:
            was = before.get(sight.id)
            if was != after[sight.id]:
                self._print("ADDED" if was is None else "MODIFIED", after[sight.id], sight)
        for id_, was in before.items():
            if id_ not in after:
                self._print("DELETED", was, Sight(id_, None, ""))

    def _print(self, type_: str, shown: dict[str, Any], sight: Sight) -> None:
        if self._output == NAMES:
            print(sight.id, flush=True)
            return
        if self._output not in TABLES:
            print_event({"type": type_, "device": shown}, self._output)
            return
        cells = list(row(sight, self._clock.now(), wide=self._wide))
        if type_ == "DELETED":
            # It no longer exists, or is no longer selected.
            cells[1:3] = "-", _GONE
        self._table.add([cells])
