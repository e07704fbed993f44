"""Writes the rules of `taint` and deletes those of `untaint`.

Others may have changed a rule between the plan and its confirmation; such changes are not
overwritten.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sully.api.resource.annotations import CREATED_BY
from sully.cli.change.aftermath import delete_command
from sully.cli.change.output import report
from sully.cli.change.taint.rules import already_exists, own_label
from sully.cli.change.taint.second_evictor import may_have_second, refuse_second_evictor
from sully.cli.client.options import server_flags
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.formatting import rule_name
from sully.cli.output.spinner import spinner
from sully.client.objects import key_of
from sully.client.reviews import own_user
from sully.client.transport import Key
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.planning.rules.taint_rules import body_rate
from sully.machinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from sully.views.kinds import RULES

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.planning.dryrun.changes import Remove
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
Keep = Callable[[Obj], Awaitable[Obj]]
_RETRIES = 10
"""How often a write is retried after a conflict; the status changes once a second at most."""


async def user_name(session: Session) -> str:
    """Return the user name that the server has for the user; empty if unknown."""
    try:
        return (await own_user(session.transport)).username
    except ApiError:
        return ""


async def delete_rules(session: Session, deletions: "Sequence[Remove]") -> None:

    for deletion in deletions:
        try:
            await session.transport.delete(deletion.kind, deletion.key)
            _report_write(session, f"{rule_name(deletion.key.name)} deleted")
        except NotFound:
            _report_write(session, f"{rule_name(deletion.key.name)} was already deleted")


def _report_write(session: Session, text: str) -> None:
    """Report one of several writes; if the reader is gone, whatever is printed next fails."""
    with suppress(BrokenPipeError):
        report(session, text)


async def write_rules(
    session: Session, snapshot: "Snapshot", bodies: Sequence[Obj], *, keep: Keep | None = None
) -> list[Obj]:
    """Write rules, and return them as the server stored them.

    Several rules that evict pods first only prevent scheduling, until all exist. Otherwise pods
    evicted because of the first would be rescheduled to devices of the next, and evicted again. So
    do those with a rate where Kubernetes may evict, too, until it is known that it does not.
    A rule that was created after the snapshot was taken is an error, or what `keep` makes of it.
    """
    evicting_later = [body for body in bodies if _starts_evicting(snapshot, body)]
    probed = may_have_second(snapshot.control_plane) and any(map(body_rate, evicting_later))
    delayed = {_name(body): body for body in evicting_later if probed or len(bodies) > 1}
    # Sully's server records who creates a rule.
    foreign = bool(bodies) and snapshot.control_plane.scheduler != "Sully"
    user = await user_name(session) if foreign else ""
    written: dict[str, Obj] = {}
    evicting = 0
    try:
        for body in bodies:
            rule = _without_eviction(body) if _name(body) in delayed else body
            try:
                written[_name(body)] = await _write(
                    session, snapshot, with_expiry_from_now(session, rule), user
                )
            except AlreadyExists as error:
                if keep is None:
                    raise CommandError(already_exists(_name(body))) from error
                written[_name(body)] = await keep(body)
        if probed:
            await refuse_second_evictor(session, next(iter(delayed)))
        for name, body in delayed.items():
            written[name] = await _let_evict(session, body)
            evicting += 1
    finally:
        if written and (len(written) < len(bodies) or evicting < len(delayed)):
            _warn_of_partial(session, snapshot, bodies, list(written.values()), evicting)
    return list(written.values())


def _warn_of_partial(
    session: Session,
    snapshot: "Snapshot",
    bodies: Sequence[Obj],
    written: Sequence[Obj],
    evicting: int,
) -> None:
    text = f"{len(written)} of {len(bodies)} rules were written"
    if len(written) == len(bodies):
        text = f"all rules prevent scheduling, and {evicting} of {len(bodies)} evict pods"
    undo = delete_command(list(map(_name, written)), own_label(snapshot, written))
    session.warn(f"warning: {text}\n  to undo:  {undo}{server_flags(session.options)}")


def _starts_evicting(snapshot: "Snapshot", body: Obj) -> bool:
    """Report whether a rule evicts pods, and did not before."""

    existing = snapshot.get(RULES, Key("", _name(body)))
    if existing is not None and existing.spec.taint.effect in EVICTING_EFFECTS:
        return False
    return body["spec"]["taint"]["effect"] in EVICTING_EFFECTS


def _without_eviction(body: Obj) -> Obj:
    spec = body["spec"]
    return {**body, "spec": {**spec, "taint": {**spec["taint"], "effect": "NoSchedule"}}}


async def _let_evict(session: Session, body: Obj) -> Obj:
    """Give a rule that was just written its final effect."""

    name, effect = _name(body), body["spec"]["taint"]["effect"]
    with spinner(lambda: f"Writing devicetaintrule {name}"):
        change = {"spec": {"taint": {"effect": effect}}}
        return await session.transport.patch(RULES.read_as(dict), Key("", name), change)


def _with_author(body: Obj, user: str) -> Obj:
    """Return a new rule with who creates it, if that is known."""

    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), CREATED_BY: user}
    return {**body, "metadata": {**metadata, "annotations": annotations}} if user else body


def _name(rule: Obj) -> str:
    return str(rule["metadata"]["name"])


def with_expiry_from_now(session: Session, body: Obj) -> Obj:
    """Return a rule with --for counted from now, not from when the plan was made."""
    from sully.domain.planning.rules.taint_rules import with_expiry

    if session.options.lasts is None:
        return body
    return with_expiry(body, session.clock.now() + timedelta(seconds=session.options.lasts))


async def _write(session: Session, snapshot: "Snapshot", body: Obj, user: str) -> Obj:

    name = _name(body)
    existing = snapshot.get(RULES, Key("", name))
    try:
        with spinner(lambda: f"Writing devicetaintrule {name}"):
            if existing is not None:
                written = await _overwrite(session, existing, body)
            else:
                new = _with_author(body, user)
                written = await session.transport.create(RULES.read_as(dict), new)
    except asyncio.CancelledError:
        rule = f"devicetaintrule {name}{server_flags(session.options)}"
        undo = f"\n  to undo it:   kubectl delete {rule}" if existing is None else ""
        session.warn(
            f"warning: the server did not answer, devicetaintrule {name} may have been written"
            f"\n  to check it:  kubectl get {rule}{undo}"
        )
        raise
    _report_write(session, f"{rule_name(name)} {'created' if existing is None else 'configured'}")
    return written


async def _overwrite(session: Session, planned: "DeviceTaintRule", body: Obj) -> Obj:
    """Change a rule that is still as in the plan; its status may have changed."""

    plain, key = RULES.read_as(dict), key_of(planned)
    for _ in range(_RETRIES):
        try:
            current = await session.transport.get(RULES, key)
            if (current.metadata.uid, current.spec) != (planned.metadata.uid, planned.spec):
                break
            version = {"resourceVersion": current.metadata.resource_version}
            change = {**body, "metadata": body["metadata"] | version}
            return await session.transport.patch(plain, key, change)
        except Conflict:
            continue
        except NotFound:
            break
    raise CommandError(
        f'devicetaintrule "{key.name}" was changed or deleted after the plan was made\n'
        "  it was not overwritten; run the command again for a new plan"
    )
