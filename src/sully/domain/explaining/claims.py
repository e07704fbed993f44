"""Why a claim waits for devices, keeps them, or cannot be used any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sully.api.resource.claim_types import ResourceClaim
from sully.domain.allocation.requests import claim_key
from sully.domain.claims.lifecycle import is_leaving, owning_pod
from sully.domain.devices.taints import SourcedTaint
from sully.domain.eviction.judge import USUAL, Terms, leaves_at
from sully.domain.explaining.holdings import Holding, device_table, evicting, toleration_text
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import are, listed, moment, since


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """What is known of a claim."""

    claim: ResourceClaim
    now: datetime
    sources: Sources
    holdings: tuple[Holding, ...] = ()
    users: tuple[str, ...] = ()
    """Pods that name it, and neither finished nor are on their way out."""
    gone: tuple[str, ...] = ()
    """Pods it is reserved for that do not exist any more."""
    waiting: Explanation | None = None
    """Why the first of the pods that need it waits."""
    blind: bool = False
    """Who asks may not see the taints of devices."""
    terms: Terms = USUAL


def explain_claim(facts: ClaimFacts) -> Explanation:
    """Say how a claim is, and why."""
    if is_leaving(facts.claim):
        return _leaving(facts)
    if facts.claim.status.allocation is None:
        return _pending(facts)
    return _allocated(facts)


def _story(facts: ClaimFacts, state: str, cause: str, *summary: str, **more: Any) -> Explanation:
    claim = facts.claim
    return Explanation(
        kind="ResourceClaim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        state=state,
        cause=cause,
        summary=summary,
        details=tables(
            device_table(facts.holdings, facts.sources, now=facts.now, terms=facts.terms),
            _requests(claim),
        ),
        **more,
    )


def _leaving(facts: ClaimFacts) -> Explanation:
    at = facts.claim.metadata.deletion_timestamp
    text = f"Claim {claim_key(facts.claim)} is being deleted{since(at, facts.now)}"
    reserved = [each.name for each in facts.claim.status.reserved_for]
    if reserved:
        return _story(
            facts,
            "Deleting",
            "StillInUse",
            f"{text}, and stays until it is used no more by {listed(reserved)}.",
            because=tuple(f"Pod/{each}" for each in reserved),
        )
    finalizers = listed(facts.claim.metadata.finalizers) or "nobody"
    return _story(facts, "Deleting", "WaitsForFinalizers", f"{text}; it waits for {finalizers}.")


def _pending(facts: ClaimFacts) -> Explanation:
    # It may have had some, so it is not known since when; the pod that waits says it.
    text = f"Claim {claim_key(facts.claim)} has no devices"
    waiting = facts.waiting
    if waiting is not None:
        pod = f"{waiting.namespace}/{waiting.name}"
        return _story(
            facts,
            "Pending",
            waiting.cause,
            f"{text}: they are chosen together with a node for pod {pod}.",
            *waiting.summary,
            because=(f"Pod/{pod}", *waiting.because),
            remedies=waiting.remedies,
        )
    if facts.users:
        names = listed(facts.users)
        return _story(
            facts,
            "Pending",
            "PodPastScheduler",
            f"{text}, though pod {names} has a node: a pod that got it past the scheduler gets"
            " no devices.",
            because=tuple(f"Pod/{each}" for each in facts.users),
            remedies=("Create the pod without spec.nodeName.",),
        )
    owner = owning_pod(facts.claim)
    made = f" It was made for pod {owner.name}." if owner is not None else ""
    return _story(
        facts,
        "Pending",
        "NobodyUsesIt",
        f"{text} because no pod uses it: devices are chosen when one does.{made}",
    )


def _allocated(facts: ClaimFacts) -> Explanation:
    devices = [str(each.device) for each in facts.holdings]
    text = f"Claim {claim_key(facts.claim)} has {listed(devices)}"
    away = [str(each.device) for each in facts.holdings if not each.published]
    cause, because, more, help_ = _trouble(facts, away)
    users = [each.name for each in facts.claim.status.reserved_for]
    if not users:
        text += " and is reserved for nobody: it keeps them until a pod uses and then leaves it"
    else:
        text += f", reserved for {listed(users)}"
    return _story(
        facts,
        "Reserved" if users else "Allocated",
        cause or ("Unused" if not users else "InUse"),
        f"{text}.",
        *more,
        because=because,
        remedies=help_,
    )


Trouble = tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _trouble(facts: ClaimFacts, away: list[str]) -> Trouble:
    """Return what is wrong with the devices, the worst first: cause, objects, sentences, help."""
    due = list(_due(facts))
    if due:
        origins = tuple(dict.fromkeys(origin for origin, _, _ in due))
        at = min(when for _, when, _ in due)
        when = "now" if at <= facts.now else f"at {moment(at, facts.now)}"
        texts = tuple(text for _, _, text in due[:3])
        names = listed([facts.sources.of(each).told() for each in origins], 2)
        lead = f"Its users must leave {when} because of {names}."
        help_ = ("Pods stay if the taint is lifted in time; tolerations cannot be added now.",)
        return "UsersMustLeave", origins, (lead, *texts), help_
    if facts.gone:
        names = listed(facts.gone)
        text = f"{names} {are(len(facts.gone))} gone or done; the claim controller releases it."
        return "UsersGone", tuple(f"Pod/{each}" for each in facts.gone), (text,), ()
    if facts.blind:
        text = "Whether they are tainted, and so whether its users may stay, you may not see."
        return "TaintsNotVisible", (), (text,), ("Ask an admin.",)
    if away:
        text = f"{listed(away)} {are(len(away))} published no more; the allocation stays."
        return "DeviceUnpublished", (), (text,), ("See that the driver of the device runs.",)
    marks = [(held, each) for held in facts.holdings for each in held.taints]
    if marks:
        texts = tuple(
            f"Device {held.device} carries {facts.sources.told_of(each, facts.now)};"
            f" {_why_not(facts, held, each)}."
            for held, each in marks[:3]
        )
        origins = tuple(dict.fromkeys(str(each.origin) for _, each in marks))
        paused = any(_is_paused(facts, held, each) for held, each in marks)
        return "EvictionPaused" if paused else "TaintsDoNotEvict", origins, texts, ()
    return "", (), (), ()


def _why_not(facts: ClaimFacts, held: Holding, found: SourcedTaint) -> str:
    if _is_paused(facts, held, found):
        return "eviction by it is paused"
    return "nobody has to leave for it"


def _is_paused(facts: ClaimFacts, held: Holding, found: SourcedTaint) -> bool:
    """Say whether somebody would have to leave for a taint were it not paused."""
    paused = facts.sources.of(str(found.origin)).paused is not None
    at = leaves_at(found.taint, held.tolerations, now=facts.now, terms=facts.terms)
    return paused and at is not None and bool(held.pods)


def _due(facts: ClaimFacts) -> Iterator[tuple[str, datetime, str]]:
    for held in facts.holdings:
        for at, each in evicting(held, facts.sources, now=facts.now, terms=facts.terms):
            told = facts.sources.told_of(each, facts.now)
            yield str(each.origin), at, f"Device {held.device} carries {told}."


def _requests(claim: ResourceClaim) -> Table:
    rows = []
    for request in claim.spec.devices.requests or ():
        given = (request.exactly,) if request.exactly is not None else request.first_available
        for each in given:
            name = getattr(each, "name", "")
            wanted = "all" if each.allocation_mode == "All" else str(each.count or 1)
            tolerations = ", ".join(map(toleration_text, each.tolerations))
            full = f"{request.name}/{name}" if name else request.name
            rows.append((full, each.device_class_name, wanted, tolerations))
    return Table("Requests", ("request", "class", "wanted", "tolerations"), tuple(rows))
