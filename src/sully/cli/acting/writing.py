"""Writes the rules of `taint` and deletes those of `untaint`, and says what was done.

Between the plan and the yes of whoever read it, others work, too: what they did meanwhile is not
overwritten unseen.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sully.cli.acting.tainting import is_there
from sully.cli.acting.telling import say
from sully.cli.client.calling import CommandError, Session
from sully.cli.client.patience import patience

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.planning.changes import Remove
    from sully.views.snapshot import Snapshot

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
    """Write rules, and return them as the server has them now."""
    made: list[Obj] = []
    try:
        for body in bodies:
            rule = await _write(session, snapshot, lasting(session, body))
            made.append(rule)
    finally:
        if 0 < len(made) < len(bodies):
            session.warn(
                f"{len(made)} of {len(bodies)} rules were written\n"
                f"  to undo them:  kubectl delete devicetaintrule {_named(made)}"
            )
    return made


def _named(rules: Sequence[Obj]) -> str:
    from sully.domain.planning.rulemaking import made_together
    from sully.domain.rules import TOGETHER

    group = made_together(rules)
    return f"-l {TOGETHER}={group}" if group else " ".join(x["metadata"]["name"] for x in rules)


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

    name = str(body["metadata"]["name"])
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
