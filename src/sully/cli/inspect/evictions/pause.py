"""`sully evictions pause` and `resume`: an annotation that Sully's eviction controller honors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sully.api.resource.annotations import PAUSED, pause_reason
from sully.cli.client.inaction import inaction_text, warn_of_inactions
from sully.cli.client.options import server_flags
from sully.cli.client.session import Session
from sully.cli.client.snapshots import missing_kind
from sully.cli.command import CommandError
from sully.cli.output.formatting import rule_name
from sully.cli.output.text import did_you_mean
from sully.cli.selection.files import files_hint
from sully.cli.selection.globs import glob_matches
from sully.cli.selection.selectors import read_selector, rule_named
from sully.client.transport import Key
from sully.domain.capabilities.inaction import Subject, inaction_of
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.machinery.errors import NotFound
from sully.views.kinds import RULES
from sully.views.snapshot.loading import list_all
from sully.views.snapshot.snapshot import Gap

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule


async def set_pauses(session: Session) -> int:
    options = session.options
    if not options.rules and not options.selector:
        raise CommandError("missing argument: RULE, or -l with a label selector", code=2)
    rules = await _selected_rules(session)
    await _check_effect(session, rules[0].metadata.name)
    if options.action == "pause" and not options.force:
        rules = _evicting(session, rules)
        await _check_evictor(session, rules[0].metadata.name)
    for rule in rules:
        await _set_one(session, rule)
    return 0


async def _selected_rules(session: Session) -> "list[DeviceTaintRule]":
    """Return the selected rules, all of them before any is changed."""

    labels = read_selector(session.options.selector)
    try:
        rules = await list_all(session.transport, RULES)
    except NotFound as error:
        text = f"the server has no {RULES.plural}.{RULES.group}"
        raise missing_kind(Gap(RULES, "not served", text)) from error
    known = {rule.metadata.name: rule for rule in rules if labels.matches(rule.metadata.labels)}
    if not known and session.options.selector:
        raise CommandError(f"no devicetaintrule matches -l {session.options.selector}")
    selected: dict[str, DeviceTaintRule] = {}
    for text in map(rule_named, session.options.rules or ("*",)):
        matching = {name: known[name] for name in sorted(known) if glob_matches(text, name)}
        if not matching:
            raise CommandError(
                f'devicetaintrule "{text}" not found{did_you_mean(text, known)}'
                f"{files_hint(session.options.rules)}\n"
                "  list them with 'sully evictions'"
            )
        selected |= matching
    return list(selected.values())


async def _set_one(session: Session, rule: "DeviceTaintRule") -> None:

    options, name = session.options, rule.metadata.name
    pause, before = options.action == "pause", pause_reason(rule.metadata.annotations)
    # Without --reason, the previous reason stays.
    reason = (options.reason or before or "true") if pause else None
    changed = before != reason
    if changed:
        patch = {"metadata": {"annotations": {PAUSED: reason}}}
        await session.transport.patch(RULES, Key("", name), patch)
    text = "paused" if pause else "resumed"
    session.show(f"{rule_name(name)} {text}" if changed else f"{rule_name(name)} already {text}")
    if pause and changed:
        flags = server_flags(session.options)
        session.show(f"  to resume it: sully evictions resume {name}{flags}")


def _evicting(session: Session, rules: "Sequence[DeviceTaintRule]") -> "list[DeviceTaintRule]":
    """Return the rules that evict pods, for others there is nothing to pause.

    Others that globs or labels select are skipped, one that is named is refused.
    """

    named = set(map(rule_named, session.options.rules))
    evicting = [rule for rule in rules if rule.spec.taint.effect in EVICTING_EFFECTS]
    for rule in rules:
        name, effect = rule.metadata.name, rule.spec.taint.effect
        if effect in EVICTING_EFFECTS:
            continue
        text = f'devicetaintrule "{name}": its effect is {effect}, which evicts no pod'
        if name in named or not evicting:
            raise CommandError(
                f"cannot pause {text}\n"
                "  list the rules that evict pods with 'sully evictions'; to pause it before its"
                " effect is changed, use --force"
            )
        session.warn(f"warning: not paused: {text}")
    return evicting


async def _check_effect(session: Session, name: str) -> None:
    """Refuse to pause, and warn before resuming, where rules have no effect at all."""

    inaction = inaction_of(await session.transport.control_plane(), Subject.RULES)
    if inaction is None or inaction.evicts:
        return
    if session.options.action == "resume" or session.options.force:
        warn_of_inactions(session, (inaction,))
        return
    raise CommandError(
        f'cannot pause devicetaintrule "{name}": {inaction_text(inaction)}\n'
        "  to set the annotation anyway, use --force"
    )


async def _check_evictor(session: Session, name: str) -> None:
    """Refuse what would have no effect: only Sully's controller knows pauses."""
    from sully.cli.client.evictor import sully_evicts_at

    second = inaction_of(await session.transport.control_plane(gates=False), Subject.RATES)
    if second is not None:
        raise CommandError(
            f'cannot pause devicetaintrule "{name}": {inaction_text(second)}\n'
            "  to set the annotation anyway, use --force"
        )
    if not await sully_evicts_at(session):
        raise CommandError(
            f'cannot pause devicetaintrule "{name}": on {session.server} the eviction controller of'
            " Kubernetes evicts pods, which does not support pauses\n"
            "  delete the rule, or change its effect: kubectl patch devicetaintrule"
            f" {name}{server_flags(session.options)}"
            """ --type=merge -p '{"spec":{"taint":{"effect":"NoSchedule"}}}'\n"""
            "  if 'sully controllers' evict there, use --force"
        )
