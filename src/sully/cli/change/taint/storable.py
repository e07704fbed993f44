"""DeviceTaintRules as a server can store them: what it would drop is replaced or refused.

Kubernetes drops fields of rules that only Sully's server has. `taint`, `cordon`, `drain` and `plan`
ask the server with a dry run before they write or plan anything.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.taint.second_evictor import refusal_of_rate
from sully.cli.client.evictor import sully_ends_rules_at, sully_evicts_at
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.domain.capabilities.inaction import Subject, inaction_of

if TYPE_CHECKING:
    from sully.machinery.errors import Invalid
    from sully.views.snapshot.snapshot import Snapshot

Obj = dict[str, Any]
_RATE_FIELD = "taint.evictionsPerSecond"


async def as_storable(session: Session, snapshot: "Snapshot", bodies: Sequence[Obj]) -> list[Obj]:
    """Return rules as this server can store them, or refuse fields that it would drop.

    The rules of one taint differ only in the devices they select, so one of each is tried.
    """
    from sully.domain.planning.rules.taint_rules import (
        dropped_fields,
        with_description_annotation,
        with_rate_annotation,
        without_rate,
    )
    from sully.machinery.errors import Invalid

    if getattr(session.options, "dry_run", "") == "client":
        return list(bodies)
    if bodies:
        await warn_of_expiry(session, "rules", "the rule stays until you delete it")
    ours = False
    dropped: dict[str, set[str]] = {}
    storable = []
    for body in bodies:
        taint = str(body["spec"]["taint"])
        if taint not in dropped:
            try:
                stored = await dry_run(session, snapshot, body)
            except Invalid as error:
                raise _with_gate(error, body) from error
            dropped[taint] = set(dropped_fields(body["spec"], stored["spec"]))
            if _RATE_FIELD in dropped[taint]:
                # Only here: it takes several requests to find out.
                ours = await sully_evicts_at(session)
            _refuse_dropped(session, snapshot, dropped[taint] - ({_RATE_FIELD} if ours else set()))
        if "taint.description" in dropped[taint]:
            body = with_description_annotation(body)
        if _RATE_FIELD in dropped[taint]:
            # Our evictor reads annotations, which every server keeps.
            body = with_rate_annotation(body) if ours else without_rate(body)
        storable.append(body)
    return storable


def _with_gate(error: "Invalid", body: Obj) -> "Invalid | CommandError":
    """Return the error of a server, with the feature gate that the effect requires."""
    from sully.cli.client.errors import api_error_text
    from sully.domain.devices.taints import EFFECTS

    effect = body["spec"]["taint"]["effect"]
    refused = {cause.get("field") for cause in (error.details or {}).get("causes") or ()}
    if "spec.taint.effect" not in refused or not EFFECTS[effect].feature_gate:
        return error
    return CommandError(
        f"{api_error_text(error)}\n"
        f"  {effect} requires the feature gate {EFFECTS[effect].feature_gate} of Sully's server;"
        " Kubernetes does not have it"
    )


async def warn_of_expiry(session: Session, what: str, otherwise: str) -> None:
    """Warn that nothing may remove what expires."""

    if session.options.lasts is not None and not await sully_ends_rules_at(session):
        session.warn(
            f"warning: {session.server} does not delete expired {what}\n"
            f"  unless 'sully controllers' run there, {otherwise}"
        )


def _refuse_dropped(session: Session, snapshot: "Snapshot", dropped: set[str]) -> None:
    """Refuse fields that a server would drop, unless they have another place or are defaults."""
    accepted = {"taint.description"}
    if _RATE_FIELD in dropped and session.options.rate is None:
        accepted.add(_RATE_FIELD)
        if snapshot.control_plane.honors_rules:
            session.warn(
                "warning: this server supports no eviction rate; all pods are evicted immediately"
            )
    second = inaction_of(snapshot.control_plane, Subject.RATES)
    if second is not None and _RATE_FIELD in dropped - accepted:
        raise refusal_of_rate(second)
    if dropped - accepted:
        raise CommandError(
            f"{session.server} does not support {', '.join(sorted(dropped - accepted))} of a"
            f" DeviceTaintRule\n  {_instead(dropped)}"
        )


def _instead(dropped: set[str]) -> str:
    if _RATE_FIELD in dropped:
        return "omit --rate, or use 'sully drain --rate', which evicts the pods itself"
    return "omit the flag that sets it"


async def dry_run(session: Session, snapshot: "Snapshot", body: Obj) -> Obj:
    """Return a rule as the server would store it."""
    from sully.client.objects import key_of
    from sully.client.options import WriteOptions
    from sully.views.kinds import RULES

    dry, plain, key = WriteOptions(dry_run=True), RULES.read_as(dict), key_of(body)
    if snapshot.get(RULES, key) is None:
        return await session.transport.create(plain, body, "", dry)
    return await session.transport.patch(plain, key, body, options=dry)
