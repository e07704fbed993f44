"""Writes the rules of `taint` and deletes those of `untaint`, and says what was done.

Between the plan and the yes of whoever read it, others work, too: what they did meanwhile is not
overwritten unseen.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sully.cli.change.tainting import is_there, own_label
from sully.cli.change.telling import say
from sully.cli.client.calling import CommandError, Session
from sully.cli.client.patience import patience

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.planning.changes import Remove
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_TRIES = 10
"""How often a rule is written anew whose status changes meanwhile, once a second at most."""


async def lift_rules(session: Session, lifts: "Sequence[Remove]") -> None:
    """Delete rules."""
    from sully.machinery.errors import NotFound

    for each in lifts:
        try:
            await session.transport.delete(each.kind, each.key)
            say(session, f"devicetaintrule {each.key} deleted")
        except NotFound:
            say(session, f"devicetaintrule {each.key} was gone already")


async def write_rules(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> list[Obj]:
    """Write rules, and return them as the server has them now.

    Several that make pods leave only keep new ones away until all are there. Else pods that leave
    because of the first would land on devices of the next, and leave again.
    """
    several = len(bodies) > 1
    held = {_name(each): each for each in bodies if several and _evicts_anew(snapshot, each)}
    made: dict[str, Obj] = {}
    evicting = 0
    try:
        for body in bodies:
            rule = _gently(body) if _name(body) in held else body
            made[_name(body)] = await _write(session, snapshot, lasting(session, rule))
        for name, body in held.items():
            made[name] = await _let_evict(session, body)
            evicting += 1
    finally:
        if made and (len(made) < len(bodies) or evicting < len(held)):
            _tell_half(session, snapshot, bodies, list(made.values()), evicting)
    return list(made.values())


def _tell_half(
    session: Session,
    snapshot: "Snapshot",
    bodies: Sequence[Obj],
    made: Sequence[Obj],
    evicting: int,
) -> None:
    said = f"{len(made)} of {len(bodies)} rules were written"
    if len(made) == len(bodies):
        said = f"all rules keep new pods away, and {evicting} of {len(bodies)} make pods leave yet"
    undo = f"kubectl delete devicetaintrule {_named(snapshot, made)}"
    session.warn(f"{said}\n  to undo them:  {undo}")


def _evicts_anew(snapshot: "Snapshot", body: Obj) -> bool:
    """Say whether a rule makes pods leave, and did not before."""
    from sully.client.transport import Key
    from sully.domain.eviction.judge import EVICTING_WITH_BUDGETS
    from sully.views.kinds import RULES

    known = snapshot.get(RULES, Key("", _name(body)))
    if known is not None and known.spec.taint.effect in EVICTING_WITH_BUDGETS:
        return False
    return body["spec"]["taint"]["effect"] in EVICTING_WITH_BUDGETS


def _gently(body: Obj) -> Obj:
    spec = body["spec"]
    return {**body, "spec": {**spec, "taint": {**spec["taint"], "effect": "NoSchedule"}}}


async def _let_evict(session: Session, body: Obj) -> Obj:
    """Give a rule that was just written the effect that was meant"""
    from sully.client.transport import Key
    from sully.views.kinds import RULES

    name, effect = _name(body), body["spec"]["taint"]["effect"]
    with patience(lambda: f"taint: writing devicetaintrule {name}"):
        change = {"spec": {"taint": {"effect": effect}}}
        return await session.transport.patch(RULES.read_as(dict), Key("", name), change)


def _name(rule: Obj) -> str:
    return str(rule["metadata"]["name"])


def _named(snapshot: "Snapshot", rules: Sequence[Obj]) -> str:
    from sully.domain.devices.rules import TOGETHER

    group = own_label(snapshot, rules)
    return f"-l {TOGETHER}={group}" if group else " ".join(map(_name, rules))


def lasting(session: Session, body: Obj) -> Obj:
    """Return a rule that lasts from now on: somebody may have read the plan for long."""
    from sully.domain.planning.rulemaking import expiring

    if session.options.lasts is None:
        return body
    return expiring(body, session.clock.now() + timedelta(seconds=session.options.lasts))


async def _write(session: Session, snapshot: "Snapshot", body: Obj) -> Obj:
    from sully.client.transport import Key
    from sully.machinery.errors import AlreadyExists
    from sully.views.kinds import RULES

    name = _name(body)
    known = snapshot.get(RULES, Key("", name))
    try:
        with patience(lambda: f"taint: writing devicetaintrule {name}"):
            if known is not None:
                made = await _overwrite(session, known, body)
            else:
                made = await session.transport.create(RULES.read_as(dict), body)
    except AlreadyExists as error:
        # Somebody else was faster than whoever read the plan.
        raise CommandError(is_there(name)) from error
    except asyncio.CancelledError:
        undo = f"\n  to undo it:  kubectl delete devicetaintrule {name}" if known is None else ""
        session.warn(
            f"whether devicetaintrule {name} was written is not known: the server had not answered"
            f"\n  to see it:   kubectl get devicetaintrule {name}{undo}"
        )
        raise
    say(session, f"devicetaintrule {name} {'created' if known is None else 'changed'}")
    return made


async def _overwrite(session: Session, known: "DeviceTaintRule", body: Obj) -> Obj:
    """Change a rule that is still as it was planned with; its status may be another."""
    from sully.client.objects import key_of
    from sully.machinery.errors import Conflict, NotFound
    from sully.views.kinds import RULES

    plain, key = RULES.read_as(dict), key_of(known)
    for _ in range(_TRIES):
        try:
            now = await session.transport.get(RULES, key)
            if (now.metadata.uid, now.spec) != (known.metadata.uid, known.spec):
                break
            version = {"resourceVersion": now.metadata.resource_version}
            change = {**body, "metadata": body["metadata"] | version}
            return await session.transport.patch(plain, key, change)
        except Conflict:
            continue
        except NotFound:
            break
    raise CommandError(
        f"devicetaintrule {key.name} is not what it was when the plan was made: somebody changed"
        " it meanwhile\n  nothing was done to it; to see a new plan, say the same again"
    )
