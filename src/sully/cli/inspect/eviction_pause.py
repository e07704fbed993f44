"""`sully evictions pause` and `resume`: an annotation that Sully's eviction controller honors."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from sully.cli.client.selectors import read_selector, rule_named
from sully.cli.client.session import Session
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule


async def set_pauses(session: Session) -> int:
    options = session.options
    if not options.rules and not options.selector:
        raise CommandError(f"missing argument: sully evictions {options.action} RULE", code=2)
    found = await _selected_rules(session)
    if options.action == "pause" and not options.force:
        await _check_evictor(session, found[0].metadata.name)
    for rule in found:
        await _set_one(session, rule)
    return 0


async def _selected_rules(session: Session) -> "list[DeviceTaintRule]":
    """Return the selected rules, all of them before any is changed."""
    from sully.cli.client.text import did_you_mean
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

    labels = read_selector(session.options.selector)
    rules = await list_all(session.transport, RULES)
    known = {each.metadata.name: each for each in rules if labels.matches(each.metadata.labels)}
    if not known and session.options.selector:
        raise CommandError(f"no devicetaintrule matches -l {session.options.selector}")
    found: dict[str, DeviceTaintRule] = {}
    for text in map(rule_named, session.options.rules or ("*",)):
        matching = {name: known[name] for name in sorted(known) if fnmatchcase(name, text)}
        if not matching:
            raise CommandError(
                f'devicetaintrule "{text}" not found{did_you_mean(text, known)}\n'
                "  list them with 'sully evictions'"
            )
        found |= matching
    return list(found.values())


async def _set_one(session: Session, rule: "DeviceTaintRule") -> None:
    from sully.api.resource.annotations import PAUSED, pause_reason
    from sully.client.transport import Key
    from sully.views.kinds import RULES

    options, name = session.options, rule.metadata.name
    pause = options.action == "pause"
    now = pause_reason(rule.metadata.annotations)
    wanted = options.reason if pause else None
    if now != wanted:
        change = {"metadata": {"annotations": {PAUSED: wanted}}}
        await session.transport.patch(RULES, Key("", name), change)
    text = {"pause": "paused", "resume": "resumed"}[options.action]
    print(f"devicetaintrule {name} {text}" + (" (unchanged)" if now == wanted else ""))
    if pause and now != wanted:
        print(f"  to resume it: sully evictions resume {name}")


async def _check_evictor(session: Session, name: str) -> None:
    """Refuse what would have no effect: only Sully's controller knows pauses."""
    from sully.cli.client.evictor import sully_evicts_at

    if not await sully_evicts_at(session):
        raise CommandError(
            f"cannot pause devicetaintrule {name}: on {session.server} the eviction controller of"
            " Kubernetes evicts pods, which does not support pauses\n"
            f"  delete the rule, or change its effect: kubectl patch devicetaintrule {name}"
            """ --type=merge -p '{"spec":{"taint":{"effect":"NoSchedule"}}}'\n"""
            "  if 'sully controllers' evict there, use --force"
        )
