"""Which devices `sully devices` lists: patterns, short names, and flags."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sully.cli.client.selection_args import SelectionArgs
from sully.cli.client.session import Session

if TYPE_CHECKING:
    from datetime import datetime

    from sully.domain.devices.pools import DeviceId
    from sully.views.devices.device_views import DeviceView, DeviceViews
    from sully.views.devices.inventory import Inventory
    from sully.views.snapshot.snapshot import Snapshot


class Narrowed(NamedTuple):
    """What names and flags select that need all devices to be known."""

    patterns: tuple[str, ...] = ()
    """With short names replaced by the devices that they stand for."""
    devices: "frozenset[DeviceId] | None" = None
    """Those that the flags select; None: all."""


def narrowed(session: Session, snapshot: "Snapshot") -> Narrowed:
    """Evaluate short names, --cel, -l, --uuid and --pci."""
    from sully.cli.client.device_selection import resolve

    options = session.options
    patterns = tuple(x for text in options.patterns for x in _full_names(snapshot, text))
    args = SelectionArgs(
        expressions=tuple(options.cel),
        labels=options.selector,
        uuids=tuple(options.uuid),
        pci=tuple(options.pci),
    )
    if args.is_only_names:
        return Narrowed(patterns)
    return Narrowed(patterns, frozenset(resolve(snapshot, args).devices))


def _full_names(snapshot: "Snapshot", text: str) -> "Iterator[str]":
    """Yield a pattern that matches devices as it is, or the devices that a short name has."""
    from sully.cli.client.device_names import DeviceNames, MissingNameError
    from sully.cli.client.selection_args import DEVICE
    from sully.cli.client.selectors import parse_pattern
    from sully.views.devices.usage import allocated_devices
    from sully.views.kinds import CLAIMS

    pattern, inventory = parse_pattern(text), snapshot.inventory
    published = (x.id for pool in inventory.pools() for x in inventory.devices(pool).values())
    allocated = allocated_devices(snapshot.of(CLAIMS).values())
    if any(pattern.matches(*id_) for id_ in (*published, *allocated)):
        yield text
        return
    try:
        yield from map(str, DeviceNames(snapshot).find(text, DEVICE).devices)
    except MissingNameError:
        yield text


class Selection:
    """The devices that the flags select."""

    def __init__(
        self,
        session: Session,
        inventory: "Inventory",
        views: "DeviceViews",
        narrow: Narrowed | None = None,
    ) -> None:
        from sully.cli.client.selectors import parse_patterns
        from sully.cli.client.suggestions import class_not_found

        options = session.options
        self._views = views
        self._patterns = parse_patterns(narrow.patterns if narrow else options.patterns)
        self.unmatched = dict.fromkeys(self._patterns)
        """The patterns that have matched no device yet."""
        self._predicates = list(_predicates(session, views, narrow.devices if narrow else None))
        for name in options.classes:
            if inventory.class_(name) is None:
                raise class_not_found(name)

    def all(self, now: "datetime") -> "Iterator[DeviceView]":
        for pool in self._views.pools():
            yield from self.pool(pool.driver, pool.pool, now)

    def pool(self, driver: str, pool: str, now: "datetime") -> "Iterator[DeviceView]":
        from sully.domain.devices.pools import PoolId

        patterns = [x for x in self._patterns if x.matches_pool(driver, pool)]
        for view in self._views.pool(PoolId(driver, pool), now) if patterns else ():
            matching = [pattern for pattern in patterns if pattern.matches(*view.id)]
            for pattern in matching:
                self.unmatched.pop(pattern, None)
            if matching and all(predicate(view) for predicate in self._predicates):
                yield view


def _predicates(
    session: Session, views: "DeviceViews", devices: "frozenset[DeviceId] | None"
) -> "Iterator[Callable[[DeviceView], bool]]":
    options = session.options
    if devices is not None:
        yield lambda view: view.id in devices
    if options.tainted:
        yield lambda view: bool(view.taints)
    if options.free:
        yield lambda view: view.free
    if options.node:
        yield lambda view: view.node == options.node
    if session.namespace:
        yield lambda view: any(x.claim.namespace == session.namespace for x in view.claims)
    if options.classes:
        yield lambda view: any(views.in_class(view, name) for name in options.classes)
