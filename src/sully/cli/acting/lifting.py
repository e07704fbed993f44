"""Takes taints off devices: finds the rules that set them, and says what is in the way."""

from typing import TYPE_CHECKING, Any

from sully.cli.acting.tainting import Words
from sully.cli.client.calling import CommandError

if TYPE_CHECKING:
    from sully.planning.changes import Change
    from sully.views.snapshot import Snapshot


def removals(snapshot: "Snapshot", words: Words) -> "list[Change]":
    """Return the rules that go so that devices lose taints; refuse what that cannot do."""
    from sully.cli.client.patterns import parse_pattern
    from sully.client.transport import Key
    from sully.domain.planning.lifting import lifting, remedy
    from sully.domain.planning.taintgrammar import Unwanted
    from sully.planning.changes import Remove
    from sully.views.kinds import RULES

    patterns = [parse_pattern(each) for each in words.names or ("*",)]

    def meant(driver: str, pool: str, device: str) -> bool:
        return any(each.matches(driver, pool, device) for each in patterns)

    found: dict[str, Any] = {}
    for unwanted in words.taints:
        if not isinstance(unwanted, Unwanted):
            continue
        devices = _devices(snapshot)
        what = lifting(snapshot.of(RULES).values(), devices, meant, unwanted)
        if what.obstacles:
            raise CommandError("\n".join(map(remedy, what.obstacles)))
        if not what.rules:
            where = ", ".join(words.names) or "any device"
            raise CommandError(
                f"no rule sets {str(unwanted)[:-1]} on {where}\n"
                "  'sully devices --tainted' shows who sets what"
            )
        found |= {
            each.metadata.name: Remove(RULES, Key("", each.metadata.name)) for each in what.rules
        }
    return list(found.values())


def _devices(snapshot: "Snapshot") -> Any:
    inventory = snapshot.inventory
    for pool in sorted(inventory.pools()):
        yield from inventory.devices(pool).values()
