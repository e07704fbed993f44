"""`sully evictions pause` and `resume`: an annotation that Sully's evictor heeds."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.labels import read_selector
from sully.cli.client.subjects import rule_named

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule


async def set_pauses(session: Session) -> int:
    """Pause or resume the rules that were named."""
    options = session.options
    if not options.rules and not options.selector:
        raise CommandError(f"which rule? write: sully evictions {options.action} RULE", code=2)
    found = await _meant_rules(session)
    if options.action == "pause" and not options.force:
        await _check_evictor(session, found[0].metadata.name)
    for rule in found:
        await _set_one(session, rule)
    return 0


async def _meant_rules(session: Session) -> "list[DeviceTaintRule]":
    """Return the rules that were named, all of them before any is changed."""
    from sully.cli.parsing import meant
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

    labels = read_selector(session.options.selector)
    rules = await list_all(session.transport, RULES)
    known = {each.metadata.name: each for each in rules if labels.matches(each.metadata.labels)}
    if not known and session.options.selector:
        raise CommandError(f"there is no DeviceTaintRule with {session.options.selector}")
    found: dict[str, DeviceTaintRule] = {}
    for text in map(rule_named, session.options.rules or ("*",)):
        matching = {name: known[name] for name in sorted(known) if fnmatchcase(name, text)}
        if not matching:
            raise CommandError(
                f'there is no DeviceTaintRule "{text}"{meant(text, known)}\n'
                "  'sully evictions' lists those at work"
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
    print(f"devicetaintrule {name} {text}" + (" (it was already)" if now == wanted else ""))
    if pause and now != wanted:
        print(f"  'sully evictions resume {name}' lets it go on")


async def _check_evictor(session: Session, name: str) -> None:
    """Refuse what would have no effect: only our controller knows of pauses."""
    from sully.cli.client.evictor import sully_evicts_at

    if not await sully_evicts_at(session):
        raise CommandError(
            f"devicetaintrule {name} cannot be paused: on {session.server} it is Kubernetes'"
            " controller that evicts, and it would go on\n"
            f"  delete the rule, or weaken it: kubectl patch devicetaintrule {name} --type=merge"
            """ -p '{"spec":{"taint":{"effect":"NoSchedule"}}}'\n"""
            "  if 'sully controllers' evict there, say --force"
        )
