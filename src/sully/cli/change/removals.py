"""The DeviceTaintRules that are deleted to remove taints, and what prevents that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.taint_args import TaintArgs
from sully.cli.client.session import Session
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.domain.planning.lifting import Meant
    from sully.domain.planning.taintgrammar import Unwanted
    from sully.planning.changes import Remove
    from sully.views.snapshot.snapshot import Snapshot

_MOST = 5
"""Obstacles that are listed."""


def removals(session: Session, snapshot: "Snapshot", args: TaintArgs) -> "list[Remove]":
    """Return the rules to delete; refuse if that does not remove the taints."""
    from sully.cli.client.selectors import parse_pattern
    from sully.client.transport import Key
    from sully.planning.changes import Remove
    from sully.views.kinds import RULES

    options = session.options
    if args.removes and not args.names and not (options.device_class or options.cel):
        raise CommandError(
            "no devices specified: DRIVER/POOL/DEVICE, --class or --cel ('*' for all)", code=2
        )
    patterns = [parse_pattern(each) for each in args.names or ("*",)]

    def selects(driver: str, pool: str, device: str) -> bool:
        return any(each.matches(driver, pool, device) for each in patterns)

    found: dict[str, Remove] = {}
    for unwanted in args.removes:
        rules = _rules(session, snapshot, selects, unwanted)
        if not rules:
            raise CommandError(_not_found(session, args, unwanted))
        for each in rules:
            name = each.metadata.name
            found[name] = Remove(RULES, Key("", name))
    return list(found.values())


def _rules(
    session: Session, snapshot: "Snapshot", selects: "Meant", unwanted: "Unwanted"
) -> "Sequence[DeviceTaintRule]":
    from sully.domain.planning.lifting import lifting, remedy, same_criteria
    from sully.views.kinds import RULES

    options, rules = session.options, list(snapshot.of(RULES).values())
    if options.device_class or options.cel:
        return same_criteria(rules, selects, unwanted, options.device_class, options.cel)
    what = lifting(rules, _devices(snapshot), selects, unwanted)
    if what.obstacles:
        more = len(what.obstacles) - _MOST
        texts = [remedy(each) for each in what.obstacles[:_MOST]]
        raise CommandError("\n".join([*texts, f"and {more} more"] if more > 0 else texts))
    return what.rules


def _not_found(session: Session, args: TaintArgs, unwanted: "Unwanted") -> str:
    options = session.options
    where = ", ".join(args.names) or "devices"
    if options.device_class:
        where += f" of class {options.device_class}"
    if options.cel:
        where += f" matching {' and '.join(options.cel)}"
    text = f"no rule sets the taint {unwanted.taint} on {where}\n"
    if args.names[1:]:
        text += (
            "  only the last argument is a key; append a dash to each if there are several: KEY-\n"
        )
    return f"{text}  list taints and their sources with 'sully devices --tainted'"


def _devices(snapshot: "Snapshot") -> Any:
    inventory = snapshot.inventory
    for pool in sorted(inventory.pools()):
        yield from inventory.devices(pool).values()
