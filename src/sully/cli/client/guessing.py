"""What somebody may have meant who named a device or a class that there is not."""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from sully.cli.client.calling import CommandError
from sully.cli.client.patterns import ANY, Pattern, fits
from sully.cli.parsing import meant

if TYPE_CHECKING:
    from sully.views.snapshot.snapshot import Snapshot

MOST = 2000
"""Names that are compared; with more of them nobody waits for a guess."""


def nearest(snapshot: "Snapshot", pattern: Pattern) -> str:
    """Ask whether another driver, pool or device was meant: the first part that nothing has."""
    inventory = snapshot.inventory
    pools = [each for each in inventory.pools() if fits(pattern.driver, each.driver)]
    if not pools:
        moved = _without_driver(snapshot, pattern)
        drivers = {each.driver for each in inventory.pools()}
        return f"; did you mean {moved}?" if moved else _meant(pattern.driver, drivers)
    near = [each for each in pools if fits(pattern.pool, each.pool)]
    if not near:
        return _meant(pattern.pool, {each.pool for each in pools})
    names = {name for pool in near for name in inventory.devices(pool)}
    return (
        "" if any(fits(pattern.device, each) for each in names) else _meant(pattern.device, names)
    )


def _without_driver(snapshot: "Snapshot", pattern: Pattern) -> str:
    """Return what finds something where the driver was left out; empty if nothing does."""
    inventory = snapshot.inventory
    pools = list(islice(inventory.pools(), MOST))
    one, two = pattern.driver, pattern.pool
    for each in pools:
        if fits(one, each.pool) and any(fits(two, name) for name in inventory.devices(each)):
            return f"'{ANY}/{one}/{two}'"
    alone = (two, pattern.device) == (ANY, ANY)
    named = alone and any(one in inventory.devices(each) for each in pools)
    return f"'{ANY}/{ANY}/{one}'" if named else ""


def _meant(word: str, known: Iterable[str]) -> str:
    return meant(word, list(islice(sorted(known), MOST)))


def check_class(snapshot: "Snapshot", name: str) -> None:
    """Refuse a class that there is not; where classes may not be seen, nobody knows."""
    from sully.views.kinds import CLASSES

    if not name or snapshot.gap(CLASSES) is not None:
        return
    known = [each.metadata.name for each in snapshot.of(CLASSES).values()]
    if name not in known:
        raise no_class(name, known)


def no_class(name: str, known: Iterable[str] = ()) -> CommandError:
    """Say that there is no such class, and which may be meant."""
    return CommandError(
        f'there is no DeviceClass "{name}"{_meant(name, known)}\n'
        "  'kubectl get deviceclasses' lists them"
    )
