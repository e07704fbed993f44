"""The DeviceTaintRules that are deleted to remove taints, and what prevents that."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sully.api.resource.annotations import creator_of
from sully.cli.change.taint.args import TaintArgs
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.selection.args import DEVICE, SelectionArgs
from sully.cli.selection.device_names import DeviceNames, MissingNameError
from sully.cli.selection.device_selection import resolve
from sully.cli.selection.selectors import Pattern, parse_pattern
from sully.client.transport import Key
from sully.machinery.errors import Forbidden, NotFound
from sully.planning.dryrun.changes import Remove
from sully.views.kinds import DEVICE_POLICIES, MAINTENANCES, RULES

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.client.transport import Kind
    from sully.domain.planning.rules.selectors import RuleSelector
    from sully.domain.planning.rules.taint_grammar import TaintToRemove
    from sully.domain.planning.rules.taint_removal import (
        DeviceMatcher,
        RemainingTaint,
        TaintRemoval,
    )
    from sully.views.snapshot.snapshot import Snapshot

_MOST = 5
"""How many remaining taints are listed."""


async def removals(session: Session, snapshot: "Snapshot", args: TaintArgs) -> "list[Remove]":
    """Return the rules to delete; refuse if that does not remove the taints."""

    if not args.removes:
        return []
    selection = args.selection(session.options)
    deleted: dict[str, DeviceTaintRule] = {}
    for taint in args.removes:
        rules = _rules(snapshot, selection, taint)
        if not rules:
            raise CommandError(_not_found(args, selection, taint))
        deleted |= {rule.metadata.name: rule for rule in rules}
    await warn_of_creators(session, snapshot, deleted.values())
    return [Remove(RULES, Key("", name)) for name in deleted]


async def warn_of_creators(
    session: Session, snapshot: "Snapshot", rules: "Iterable[DeviceTaintRule]"
) -> None:
    """Warn about rules that a policy or a maintenance would create again."""

    creators: dict[str, tuple[Kind[Any], str]] = {
        "policy": (DEVICE_POLICIES, "set its mode to DryRun before, or delete it"),
        "maintenance": (MAINTENANCES, "to end it: sully maintenance cancel {name}"),
    }
    for rule in rules:
        noun, _, name = creator_of(rule.metadata.annotations).partition(" ")
        if noun not in creators or not name:
            continue
        kind, remedy = creators[noun]
        if await _may_exist(session, snapshot, kind, name):
            again = f"rule {rule.metadata.name} is of {noun} {name}, which may create it again"
            session.warn(f"warning: {again}; {remedy.format(name=name)}")


async def _may_exist(session: Session, snapshot: "Snapshot", kind: "Kind[Any]", name: str) -> bool:
    """Report whether an object exists; one that the user may not read counts."""

    if session.connection is None:
        return snapshot.get(kind, Key("", name)) is not None
    try:
        await session.transport.get(kind, Key("", name))
    except NotFound:
        # Its rules were kept when it was deleted.
        return False
    except Forbidden:
        pass
    return True


class WiderRulesError(CommandError):
    """Rules taint other devices, too; nothing else prevents that the taint is removed."""


def _rules(
    snapshot: "Snapshot", args: SelectionArgs, taint: "TaintToRemove"
) -> "Sequence[DeviceTaintRule]":
    removal, _ = removal_of(snapshot, args, taint)
    if text := other_sources(removal):
        raise CommandError(text)
    if removal.remaining:
        raise WiderRulesError(_remedies(removal.remaining))
    return removal.rules


def removal_of(
    snapshot: "Snapshot", args: SelectionArgs, taint: "TaintToRemove"
) -> "tuple[TaintRemoval, DeviceMatcher]":
    """Return which rules to delete, which taints would remain, and what is selected."""
    from sully.domain.planning.rules.taint_removal import TaintRemoval, plan_removal, same_criteria

    rules = list(snapshot.of(RULES).values())
    selects = _by_name(snapshot, args)
    native = [
        rule
        for name in args.classes or ("",)
        for rule in same_criteria(rules, selects, taint, name, args.expressions)
    ]
    if native and (args.classes or args.expressions):
        return TaintRemoval(tuple(native), ()), selects
    if not args.is_only_names:
        # Rules that were written for what it selects.
        selects = _any_of(resolve(snapshot, args, ()).selectors)
    return plan_removal(rules, snapshot.devices(), selects, taint), selects


def other_sources(removal: "TaintRemoval") -> str:
    """Return which taints remain that no rule sets, and how to remove them."""
    return _remedies([x for x in removal.remaining if x.origin.kind != "DeviceTaintRule"])


def _remedies(remaining: "Sequence[RemainingTaint]") -> str:
    from sully.domain.planning.rules.taint_removal import remedy

    more = len(remaining) - _MOST
    texts = [remedy(taint) for taint in remaining[:_MOST]]
    return "\n".join([*texts, f"and {more} more"] if more > 0 else texts)


def _by_name(snapshot: "Snapshot", args: SelectionArgs) -> "DeviceMatcher":
    """Return what matches the names, also of rules for devices that do not exist any more."""

    names = DeviceNames(snapshot)
    patterns: list[Pattern] = []
    selectors: list[RuleSelector] = []
    for text in args.names or ("*",):
        pattern = parse_pattern(text) if args.kind == DEVICE else None
        if pattern is not None and names.matching(pattern):
            patterns.append(pattern)
            continue
        try:
            selectors += names.find(text, args.kind).selectors
        except MissingNameError as error:
            if pattern is None:
                raise CommandError(str(error)) from error
            patterns.append(pattern)
    short = _any_of(selectors)

    def selects(driver: str, pool: str, device: str) -> bool:
        named = any(pattern.matches(driver, pool, device) for pattern in patterns)
        return named or short(driver, pool, device)

    return selects


def _any_of(selectors: "Sequence[RuleSelector]") -> "DeviceMatcher":
    return lambda *names: any(
        all(selected in ("", name) for selected, name in zip(selector.names, names, strict=True))
        for selector in selectors
    )


def _not_found(args: TaintArgs, selection: SelectionArgs, taint: "TaintToRemove") -> str:
    text = f"no rule sets the taint {taint.taint} on {selection.describe()}\n"
    if args.names[1:]:
        text += (
            "  only the last argument is a key; append a dash to each if there are several: KEY-\n"
        )
    return f"{text}  list taints and their sources with 'sully devices --tainted'"
