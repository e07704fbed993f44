"""Which devices `sully devices` lists: patterns, short names, and flags."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sully.cli.client.session import Session
from sully.cli.selection.args import DEVICE, SelectionArgs
from sully.cli.selection.device_selection import resolve
from sully.cli.selection.selectors import parse_pattern, parse_patterns
from sully.cli.selection.suggestions import class_not_found
from sully.domain.devices.pools import PoolId
from sully.views.devices.device_views import node_of
from sully.views.devices.usage import allocated_devices
from sully.views.kinds import CLAIMS

if TYPE_CHECKING:
    from datetime import datetime

    from sully.cli.selection.selectors import Pattern
    from sully.domain.devices.device import EffectiveDevice
    from sully.domain.devices.pools import DeviceId
    from sully.views.devices.device_views import DevicePredicate, DeviceView, DeviceViews
    from sully.views.devices.inventory import Inventory
    from sully.views.snapshot.snapshot import Snapshot


class Narrowed(NamedTuple):
    """What names and flags select that need all devices to be known."""

    patterns: tuple[str, ...]
    """With short names replaced by the devices that they stand for."""
    missing: "Mapping[Pattern, str]"
    """Why a pattern that is not a name of a device matches nothing."""
    devices: "frozenset[DeviceId] | None" = None
    """Those that the flags select; None: all."""


def narrowed(session: Session, snapshot: "Snapshot") -> Narrowed:
    """Evaluate short names, --cel, -l, --uuid and --pci."""

    options = session.options
    missing: dict[Pattern, str] = {}
    patterns = tuple(x for text in options.patterns for x in _full_names(snapshot, text, missing))
    args = SelectionArgs(
        expressions=tuple(options.cel),
        labels=options.selector,
        uuids=tuple(options.uuid),
        pci=tuple(options.pci),
    )
    if args.is_only_names:
        return Narrowed(patterns, missing)
    return Narrowed(patterns, missing, frozenset(resolve(snapshot, args).devices))


def _full_names(snapshot: "Snapshot", text: str, missing: "dict[Pattern, str]") -> "Iterator[str]":
    """Yield a pattern that matches devices as it is, or the devices that a short name has.

    What is neither is added to `missing`.
    """
    from sully.cli.selection.device_names import DeviceNames, MissingNameError

    pattern, inventory = parse_pattern(text), snapshot.inventory
    published = (x.id for pool in inventory.pools() for x in inventory.devices(pool).values())
    allocated = allocated_devices(snapshot.of(CLAIMS).values())
    if any(pattern.matches(*id_) for id_ in (*published, *allocated)):
        yield text
        return
    try:
        yield from map(str, DeviceNames(snapshot).find(text, DEVICE).devices)
    except MissingNameError as error:
        missing[pattern] = str(error)
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

        options = session.options
        self._views = views
        names = narrow.patterns if narrow else options.patterns
        self._patterns = parse_patterns(names)
        self.unmatched = dict.fromkeys(self._patterns)
        """The patterns that have matched no device yet."""
        self._of_devices = list(_of_devices(session, views, narrow.devices if narrow else None))
        self._of_views = list(_of_views(session))
        self._has_all_devices = not names and not self._of_devices
        for name in options.classes:
            if inventory.class_(name) is None:
                raise class_not_found(name)

    def all(self, now: "datetime") -> "Iterator[DeviceView]":
        for pool in self._views.pools():
            yield from self.pool(pool.driver, pool.pool, now)

    def pool(self, driver: str, pool: str, now: "datetime") -> "Iterator[DeviceView]":

        patterns = [x for x in self._patterns if x.matches_pool(driver, pool)]
        if not patterns:
            return
        selects = None if self._has_all_devices else partial(self._selects, patterns)
        views = self._views.pool(PoolId(driver, pool), now, selects)
        for predicate in self._of_views:
            views = filter(predicate, views)
        yield from views

    def _selects(
        self, patterns: "Iterable[Pattern]", id_: "DeviceId", device: "EffectiveDevice | None"
    ) -> bool:
        """Report whether a device may be listed, by what is known without its claims."""
        matching = [pattern for pattern in patterns if pattern.matches(*id_)]
        for pattern in matching:
            self.unmatched.pop(pattern, None)
        return bool(matching) and all(selects(id_, device) for selects in self._of_devices)


def _of_devices(
    session: Session, views: "DeviceViews", devices: "frozenset[DeviceId] | None"
) -> "Iterator[DevicePredicate]":

    options = session.options
    if devices is not None:
        yield lambda id_, _: id_ in devices
    if options.tainted:
        # Which taints a device has that is no longer published, depends on its claims.
        yield lambda _, device: device is None or bool(device.taints)
    if options.free:
        yield lambda _, device: device is not None
    if options.node:
        yield lambda _, device: device is not None and node_of(device.published) == options.node
    if options.classes:
        yield (
            lambda _, device: (
                device is not None and any(views.in_class(device, name) for name in options.classes)
            )
        )


def _of_views(session: Session) -> "Iterator[Callable[[DeviceView], bool]]":
    if session.options.tainted:
        yield lambda view: bool(view.taints)
    if session.options.free:
        yield lambda view: view.free
    if session.namespace:
        yield lambda view: any(x.claim.namespace == session.namespace for x in view.claims)
