"""Takes taints off devices: finds the rules that set them, and says what is in the way."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.words import Words
from sully.cli.client.calling import CommandError, Session

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.domain.planning.lifting import Meant
    from sully.domain.planning.taintgrammar import Unwanted
    from sully.planning.changes import Remove
    from sully.views.snapshot.snapshot import Snapshot

_MOST = 5
"""Obstacles that are named; who lifts a taint from thousands of devices need not read them all."""


def removals(session: Session, snapshot: "Snapshot", words: Words) -> "list[Remove]":
    """Return the rules that go so that devices lose taints; refuse what that cannot do."""
    from sully.cli.client.patterns import parse_pattern
    from sully.client.transport import Key
    from sully.planning.changes import Remove
    from sully.views.kinds import RULES

    options = session.options
    if words.lifts and not words.names and not (options.device_class or options.cel):
        raise CommandError(
            "say which devices: DRIVER/POOL/DEVICE, --class or --cel; '*' is every device", code=2
        )
    patterns = [parse_pattern(each) for each in words.names or ("*",)]

    def meant(driver: str, pool: str, device: str) -> bool:
        return any(each.matches(driver, pool, device) for each in patterns)

    found: dict[str, Remove] = {}
    for unwanted in words.lifts:
        rules = _rules(session, snapshot, meant, unwanted)
        if not rules:
            raise CommandError(_nothing(session, words, unwanted))
        for each in rules:
            name = each.metadata.name
            found[name] = Remove(RULES, Key("", name))
    return list(found.values())


def _rules(
    session: Session, snapshot: "Snapshot", meant: "Meant", unwanted: "Unwanted"
) -> "Sequence[DeviceTaintRule]":
    from sully.domain.planning.lifting import lifting, remedy, same_criteria
    from sully.views.kinds import RULES

    options, rules = session.options, list(snapshot.of(RULES).values())
    if options.device_class or options.cel:
        return same_criteria(rules, meant, unwanted, options.device_class, options.cel)
    what = lifting(rules, _devices(snapshot), meant, unwanted)
    if what.obstacles:
        more = len(what.obstacles) - _MOST
        texts = [remedy(each) for each in what.obstacles[:_MOST]]
        raise CommandError("\n".join([*texts, f"and {more} more"] if more > 0 else texts))
    return what.rules


def _nothing(session: Session, words: Words, unwanted: "Unwanted") -> str:
    options = session.options
    where = ", ".join(words.names) or "devices"
    if options.device_class:
        where += f" of class {options.device_class}"
    if options.cel:
        where += f" for which {' and '.join(options.cel)}"
    text = f"no rule sets {unwanted.taint} on {where}\n"
    if words.names[1:]:
        text += "  only the last word is a key; write several with an effect or a dash: KEY-\n"
    return f"{text}  'sully devices --tainted' shows who sets what"


def _devices(snapshot: "Snapshot") -> Any:
    inventory = snapshot.inventory
    for pool in sorted(inventory.pools()):
        yield from inventory.devices(pool).values()
