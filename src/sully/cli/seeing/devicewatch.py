"""`sully devices --watch`: the devices, and then each one that changes, as it is then.

Only pools that an event touched are looked at again; a device is printed when something about it is
different that does not merely come with time.
"""

from collections.abc import Iterable
from typing import Any

from sully.api.resource.claim_types import ResourceClaim
from sully.api.resource.types import DeviceTaintRule, DeviceTaintSelector, ResourceSlicePatch
from sully.cli.client.calling import Session
from sully.cli.client.documents import show_line
from sully.cli.client.flags import TABLES
from sully.cli.client.following import Caches, News, following
from sully.cli.client.tables import Table
from sully.cli.seeing.devicerows import columns, document, row
from sully.cli.seeing.devices import Choice
from sully.domain.pools import DeviceId, PoolId
from sully.views.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES, PATCHES, PODS, RULES, SLICES, Pod
from sully.views.sights import Sight, Sights
from sully.views.snapshotkinds import DEVICES
from sully.views.usage import Usage

Noted = DeviceTaintRule | ResourceSlicePatch
_LEFT = "(left)"


async def watch(session: Session) -> int:
    """Show devices until interrupted."""
    async with following(session, DEVICES, needed=(SLICES,)) as caches:
        screen = _Screen(session)
        news, choice = _views(session, caches)
        screen.begin(list(choice.all(session.clock.now())))
        while True:
            for pool in await news.take(session):
                now = session.clock.now()
                screen.update(pool, list(choice.pool(pool.driver, pool.pool, now)))


def _views(session: Session, caches: Caches) -> tuple[News, Choice]:
    inventory = Inventory(
        slices=caches.of(SLICES),
        classes=caches.of(CLASSES),
        rules=caches.of(RULES),
        patches=caches.of(PATCHES),
    )
    usage = Usage(pods=caches.of(PODS), claims=caches.of(CLAIMS))
    choice = Choice(session, inventory, Sights(inventory, usage, caches.of(PATCHES)))
    news, begun = News(), False

    def pods_changed(old: Pod | None, new: Pod | None) -> None:
        if begun:
            for pod in (old, new):
                for claim in usage.claims_of(pod) if pod is not None else ():
                    news.add(*_pools(claim))

    def claims_changed(old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if begun:
            for claim in (old, new):
                news.add(*_pools(claim))

    def notes_changed(old: Noted | None, new: Noted | None) -> None:
        """Look again where only annotations say something else, such as another end."""
        if old is not None and new is not None and old.metadata != new.metadata:
            news.add(*{each.pool_id: None for each in inventory.named(_selector(new))})

    caches.of(RULES).on_change(notes_changed)
    caches.of(PATCHES).on_change(notes_changed)
    inventory.on_change(lambda change: news.add(*change.pools) if begun else None)
    caches.of(CLAIMS).on_change(claims_changed)
    caches.of(PODS).on_change(pods_changed)
    begun = True
    return news, choice


def _selector(noted: Noted) -> DeviceTaintSelector:
    if isinstance(noted, DeviceTaintRule):
        return noted.spec.device_selector or DeviceTaintSelector()
    return noted.spec.devices.filter or DeviceTaintSelector()


def _pools(claim: ResourceClaim | None) -> Iterable[PoolId]:
    if claim is None or claim.status.allocation is None:
        return ()
    results = claim.status.allocation.devices.results
    return {PoolId(each.driver, each.pool): None for each in results}


class _Screen:
    """Prints devices, and remembers how each was printed last."""

    def __init__(self, session: Session) -> None:
        self._clock = session.clock
        self._output = session.options.output
        self._wide = self._output == "wide"
        self._table = Table(columns((), wide=self._wide), grows=True)
        self._shown: dict[PoolId, dict[DeviceId, dict[str, Any]]] = {}

    def begin(self, sights: list[Sight]) -> None:
        for sight in sights:
            known = self._shown.setdefault(sight.id.pool_id, {})
            known[sight.id] = document(sight)
        if self._output in TABLES:
            now = self._clock.now()
            self._table = Table(columns(sights, wide=self._wide), grows=True)
            self._table.show([row(each, now, wide=self._wide) for each in sights])
        else:
            for sight in sights:
                show_line({"type": "ADDED", "device": document(sight)}, self._output)

    def update(self, pool: PoolId, sights: list[Sight]) -> None:
        before = self._shown.get(pool, {})
        after = {sight.id: document(sight) for sight in sights}
        self._shown[pool] = after
        for sight in sights:
            was = before.get(sight.id)
            if was != after[sight.id]:
                self._print("ADDED" if was is None else "MODIFIED", after[sight.id], sight)
        for id_, was in before.items():
            if id_ not in after:
                self._print("DELETED", was, Sight(id_, None, ""))

    def _print(self, type_: str, shown: dict[str, Any], sight: Sight) -> None:
        if self._output not in TABLES:
            show_line({"type": type_, "device": shown}, self._output)
            return
        cells = list(row(sight, self._clock.now(), wide=self._wide))
        if type_ == "DELETED":
            # No longer there, or no longer one of those that were asked for.
            cells[1] = _LEFT
        self._table.add([cells])
