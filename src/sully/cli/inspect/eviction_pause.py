"""`sully evictions pause` and `resume`: an annotation that Sully's eviction controller honors."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from sully.cli.client.formatting import rule_name
from sully.cli.client.selectors import read_selector, rule_named
from sully.cli.client.session import Session
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule


async def set_pauses(session: Session) -> int:
    options = session.options
    if not options.rules and not options.selector:
        raise CommandError("missing argument: RULE, or -l with a label selector", code=2)
    rules = await _selected_rules(session)
    if options.action == "pause" and not options.force:
        await _check_evictor(session, rules[0].metadata.name)
    for rule in rules:
        await _set_one(session, rule)
    return 0


async def _selected_rules(session: Session) -> "list[DeviceTaintRule]":
    """Return the selected rules, all of them before any is changed."""
    from sully.cli.client.text import did_you_mean
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

    labels = read_selector(session.options.selector)
    rules = await list_all(session.transport, RULES)
    known = {rule.metadata.name: rule for rule in rules if labels.matches(rule.metadata.labels)}
    if not known and session.options.selector:
        raise CommandError(f"no devicetaintrule matches -l {session.options.selector}")
    selected: dict[str, DeviceTaintRule] = {}
    for text in map(rule_named, session.options.rules or ("*",)):
        matching = {name: known[name] for name in sorted(known) if fnmatchcase(name, text)}
        if not matching:
            raise CommandError(
                f'devicetaintrule "{text}" not found{did_you_mean(text, known)}\n'
                "  list them with 'sully evictions'"
            )
        selected |= matching
    return list(selected.values())


async def _set_one(session: Session, rule: "DeviceTaintRule") -> None:
    from sully.api.resource.annotations import PAUSED, pause_reason
    from sully.client.transport import Key
    from sully.views.kinds import RULES

    options, name = session.options, rule.metadata.name
    pause = options.action == "pause"
    reason = options.reason if pause else None
    changed = pause_reason(rule.metadata.annotations) != reason
    if changed:
        patch = {"metadata": {"annotations": {PAUSED: reason}}}
        await session.transport.patch(RULES, Key("", name), patch)
    text = "paused" if pause else "resumed"
    print(f"{rule_name(name)} {text}" if changed else f"{rule_name(name)} already {text}")
    if pause and changed:
        print(f"  to resume it: sully evictions resume {name}")


async def _check_evictor(session: Session, name: str) -> None:
    """Refuse what would have no effect: only Sully's controller knows pauses."""
    from sully.cli.client.evictor import sully_evicts_at

    if not await sully_evicts_at(session):
        raise CommandError(
            f'cannot pause devicetaintrule "{name}": on {session.server} the eviction controller of'
            " Kubernetes evicts pods, which does not support pauses\n"
            f"  delete the rule, or change its effect: kubectl patch devicetaintrule {name}"
            """ --type=merge -p '{"spec":{"taint":{"effect":"NoSchedule"}}}'\n"""
            "  if 'sully controllers' evict there, use --force"
        )
