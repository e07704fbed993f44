"""The DeviceTaintRules that are deleted to remove taints, and what prevents that."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.taint_args import TaintArgs
from sully.cli.client.session import Session
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.domain.planning.taint_removal import DeviceMatcher
    from sully.domain.planning.taintgrammar import TaintToRemove
    from sully.planning.changes import Remove
    from sully.views.snapshot.snapshot import Snapshot

_MOST = 5
"""How many remaining taints are listed."""


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
    patterns = [parse_pattern(name) for name in args.names or ("*",)]

    def selects(driver: str, pool: str, device: str) -> bool:
        return any(pattern.matches(driver, pool, device) for pattern in patterns)

    deletions: dict[str, Remove] = {}
    for taint in args.removes:
        rules = _rules(session, snapshot, selects, taint)
        if not rules:
            raise CommandError(_not_found(session, args, taint))
        for rule in rules:
            name = rule.metadata.name
            deletions[name] = Remove(RULES, Key("", name))
    return list(deletions.values())


def _rules(
    session: Session, snapshot: "Snapshot", selects: "DeviceMatcher", taint: "TaintToRemove"
) -> "Sequence[DeviceTaintRule]":
    from sully.domain.planning.taint_removal import plan_removal, remedy, same_criteria
    from sully.views.kinds import RULES

    options, rules = session.options, list(snapshot.of(RULES).values())
    if options.device_class or options.cel:
        return same_criteria(rules, selects, taint, options.device_class, options.cel)
    removal = plan_removal(rules, _devices(snapshot), selects, taint)
    if removal.remaining:
        more = len(removal.remaining) - _MOST
        texts = [remedy(remaining) for remaining in removal.remaining[:_MOST]]
        raise CommandError("\n".join([*texts, f"and {more} more"] if more > 0 else texts))
    return removal.rules


def _not_found(session: Session, args: TaintArgs, taint: "TaintToRemove") -> str:
    options = session.options
    where = ", ".join(args.names) or "devices"
    if options.device_class:
        where += f" of class {options.device_class}"
    if options.cel:
        where += f" matching {' and '.join(options.cel)}"
    text = f"no rule sets the taint {taint.taint} on {where}\n"
    if args.names[1:]:
        text += (
            "  only the last argument is a key; append a dash to each if there are several: KEY-\n"
        )
    return f"{text}  list taints and their sources with 'sully devices --tainted'"


def _devices(snapshot: "Snapshot") -> Any:
    inventory = snapshot.inventory
    for pool in sorted(inventory.pools()):
        yield from inventory.devices(pool).values()
