"""Suggestions for devices and classes that were not found."""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from sully.cli.command import CommandError
from sully.cli.output.text import did_you_mean
from sully.cli.selection.globs import ANY, glob_matches, is_glob
from sully.cli.selection.selectors import Pattern
from sully.views.kinds import CLASSES

if TYPE_CHECKING:
    from sully.views.snapshot.snapshot import Snapshot

MAX_COMPARED = 2000
"""Names that are compared; more would take too long."""


def device_not_found(snapshot: "Snapshot", pattern: Pattern) -> str:
    """Return which part of a pattern matches nothing, with a suggestion; empty if all match."""
    inventory = snapshot.inventory
    driver_pools = [pool for pool in inventory.pools() if glob_matches(pattern.driver, pool.driver)]
    if not driver_pools:
        corrected = _without_driver(snapshot, pattern)
        drivers = {pool.driver for pool in inventory.pools()}
        hint = f" (did you mean {corrected}?)" if corrected else suggest(pattern.driver, drivers)
        return _no_match("driver", pattern.driver) + hint
    pools = [pool for pool in driver_pools if glob_matches(pattern.pool, pool.pool)]
    if not pools:
        hint = suggest(pattern.pool, {pool.pool for pool in driver_pools})
        return _no_match("pool", pattern.pool) + hint
    names = {name for pool in pools for name in inventory.devices(pool)}
    if any(glob_matches(pattern.device, name) for name in names):
        return ""
    where = f' in pool "{pattern.pool}"' if pattern.pool != ANY else ""
    return _no_match("device", pattern.device) + where + suggest(pattern.device, names)


def _no_match(part: str, name: str) -> str:
    return f'no {part} matches "{name}"' if is_glob(name) else f'{part} "{name}" not found'


def _without_driver(snapshot: "Snapshot", pattern: Pattern) -> str:
    """Return a pattern that matches where the driver was left out; empty if none does."""
    inventory = snapshot.inventory
    pools = list(islice(inventory.pools(), MAX_COMPARED))
    first, second = pattern.driver, pattern.pool
    for pool in pools:
        if glob_matches(first, pool.pool) and any(
            glob_matches(second, name) for name in inventory.devices(pool)
        ):
            return f"'{ANY}/{first}/{second}'"
    only_one = (second, pattern.device) == (ANY, ANY)
    is_device = only_one and any(first in inventory.devices(pool) for pool in pools)
    return f"'{ANY}/{ANY}/{first}'" if is_device else ""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a question with the most similar name, among the first names."""
    return did_you_mean(word, islice(sorted(known), MAX_COMPARED))


def check_class(snapshot: "Snapshot", name: str) -> None:
    """Refuse a class that does not exist; where classes may not be listed, accept any."""

    if not name or snapshot.gap(CLASSES) is not None:
        return
    known = [class_.metadata.name for class_ in snapshot.of(CLASSES).values()]
    if name not in known:
        raise class_not_found(name, known)


def class_not_found(name: str, known: Iterable[str] = ()) -> CommandError:
    return CommandError(
        f'deviceclass "{name}" not found{suggest(name, known)}\n'
        "  list them with 'kubectl get deviceclasses'"
    )
