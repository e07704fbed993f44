"""What would make a pod fit, found by trying: tolerations, then devices that others give back.

A trial runs the scheduler once more on a copy of the world with one thing changed, so what is
advised here would really work, now. Where nothing was tried, or nothing helped, the reason for the
refusal says what to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from sully.domain.explaining.shortages import (
    NOT_KNOWN,
    Asking,
    Askings,
    constraint_text,
    lacking,
    merged_taints,
    selector_text,
)
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.wording import code, joined, listed, mark, moment, noun, number
from sully.domain.scheduling.account import Account, Asked, Holder, Taint
from sully.domain.scheduling.extended import NAMELESS

_MOST_ALONE: Final = 2
"""Things of which it is tried on all nodes whether one of them is enough."""
_MOST_DROPPED: Final = 32
"""Things of which it is tried on one node whether they are needed; there a trial costs little."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that may help: taints are tolerated, claims give their devices back."""

    tolerate: tuple[Taint, ...] = ()
    free: tuple[str, ...] = ()


class Largest(NamedTuple):
    """The node with the most devices of a kind, were they all free and untainted."""

    devices: int
    node: str


class Tries(Protocol):
    """A scheduler to try things with."""

    def node_for(self, trial: Trial, only: str = "") -> str:
        """Return the node that the pod would get, of all or only of one; nothing if none."""

    def account_after(self, trial: Trial) -> Account | None:
        """Return what speaks against devices then; nothing if the pod gets a node."""

    def holders_near(self, node: str) -> Container[str]:
        """Return the claims with devices that a node can use."""

    def largest(self) -> Mapping[tuple[str, str], Largest]:
        """Return for each claim and request the node with the most devices that could serve it."""


@dataclass(frozen=True, slots=True)
class Help:
    """A trial that worked."""

    trial: Trial
    node: str


def helps(account: Account, tries: Tries) -> tuple[Help, ...]:
    """Return what would make a pod fit: by tolerations alone, by waiting alone, or by both."""
    short = lacking(account) or account.requests
    taints = tuple(merged_taints(short))
    holders = tuple(each.claim for each in _holders(short))
    found = [
        _least(tries, Trial(tolerate=taints)) if taints else None,
        _least(tries, Trial(free=holders)) if holders else None,
    ]
    if not any(found) and holders:
        every = _revealed(tries, taints, holders)
        found.append(_least(tries, Trial(every, holders)) if every else None)
    return tuple(each for each in found if each is not None)


def _revealed(
    tries: Tries, taints: tuple[Taint, ...], holders: tuple[str, ...]
) -> tuple[Taint, ...]:
    """Return all taints in the way, also those of devices that count as in use as yet."""
    then = tries.account_after(Trial(free=holders))
    more = merged_taints(then.requests) if then is not None else ()
    known = {(each.origin, mark(each)) for each in taints}
    return (*taints, *(each for each in more if (each.origin, mark(each)) not in known))


def too_large(account: Account, tries: Tries) -> tuple[tuple[Asked, Largest], ...]:
    """Return requests for more devices than any node has, if a pod cannot do without them.

    A request with alternatives is too large only if all of them are.
    """
    known = tries.largest()
    large: list[tuple[Asked, Largest]] = []
    served: set[tuple[str, str]] = set()
    for each in account.requests:
        most = known.get((each.claim, each.request), Largest(0, ""))
        if 0 < most.devices < each.wanted:
            large.append((each, most))
        else:
            served.add(_whole(each))
    return tuple((each, most) for each, most in large if _whole(each) not in served)


def _whole(asked: Asked) -> tuple[str, str]:
    """Return the request that an alternative belongs to."""
    return asked.claim, asked.request.partition("/")[0]


def _least(tries: Tries, most: Trial) -> Help | None:
    """Try all of something, then find out how little of it is enough."""
    node = tries.node_for(most)
    if not node:
        return None
    for each in _alone(most):
        if alone := tries.node_for(each):
            return Help(each, alone)
    return Help(_needed(tries, most, node), node)


def _alone(most: Trial) -> Iterator[Trial]:
    if len(most.tolerate) + len(most.free) > 1 and not (most.tolerate and most.free):
        yield from (Trial(tolerate=(each,)) for each in most.tolerate[:_MOST_ALONE])
        yield from (Trial(free=(each,)) for each in most.free[:_MOST_ALONE])


def _needed(tries: Tries, most: Trial, node: str) -> Trial:
    """Leave out, one by one, what the pod gets its node without."""
    near = tries.holders_near(node)
    found = Trial(most.tolerate, tuple(each for each in most.free if each in near))
    # The largest come first, so the smallest are the first to be spared.
    for each in reversed(found.free[:_MOST_DROPPED]):
        less = replace(found, free=tuple(one for one in found.free if one != each))
        found = less if tries.node_for(less, node) else found
    for taint in reversed(found.tolerate[:_MOST_DROPPED]):
        less = replace(found, tolerate=tuple(one for one in found.tolerate if one is not taint))
        found = less if tries.node_for(less, node) else found
    return found


def _holders(short: Iterable[Asked]) -> list[Holder]:
    found: dict[str, Holder] = {}
    for asked in short:
        for each in asked.holders:
            if each.claim not in found or found[each.claim].devices < each.devices:
                found[each.claim] = each
    return sorted(found.values(), key=lambda each: (-each.devices, each.claim))


# -- in words -------------------------------------------------------------------------------------


def remedies(
    found: Iterable[Help],
    account: Account,
    sources: Sources,
    users: Callable[[str], Sequence[str]],
    now: datetime,
) -> Iterator[str]:
    """Say what would help; `users` names the pods behind a claim."""
    for each in found:
        parts = []
        if each.trial.tolerate:
            parts.append(_tolerate(each.trial.tolerate, account, sources, now))
        if each.trial.free:
            parts.append(_wait(each.trial.free, account, users))
        text = ". Also ".join(parts)
        yield f"{text[:1].upper()}{text[1:]}. The pod would then go to node {each.node}."


def _tolerate(taints: Sequence[Taint], account: Account, sources: Sources, now: datetime) -> str:
    wanted = joined([f"{mark(each)} from {noun(each.origin)}" for each in taints])
    if any(each.lapsed for each in taints):
        wanted += " without tolerationSeconds"
    requests = [
        asked.request
        for asked in account.requests
        if any(mark(one) == mark(each) for one in asked.taints for each in taints)
    ]
    where = f" in request {listed(dict.fromkeys(requests))}" if requests else ""
    text = f"tolerate {wanted}{where}"
    ends = [sources.of(each.origin).until for each in taints]
    known = [end for end in ends if end is not None]
    if known and len(known) == len(ends):
        return f"{text}, or wait until {moment(max(known), now)}"
    return f"{text}, or have {'it' if len(taints) == 1 else 'them'} lifted"


def _wait(claims: Sequence[str], account: Account, users: Callable[[str], Sequence[str]]) -> str:
    held = {each.claim: each.devices for each in _holders(account.requests)}
    names = []
    for name in claims:
        pods = users(name)
        of = f", used by pod {listed(pods, 2)}" if pods else ""
        names.append(f"{name} ({number(held.get(name, 0), 'device')}{of})")
    if len(names) == 1:
        return f"wait until claim {names[0]} gives its devices back"
    return f"wait until claims {listed(names)} give their devices back"


def advice(account: Account, asked: Askings) -> Iterator[str]:
    """Say what to look at where nothing that can be tried would help."""
    if account.reason == "PoolsUnusable":
        yield from _pools(account)
        return
    seen: set[str] = set()
    for each in lacking(account):
        asking = asked.get((each.claim, each.request), NOT_KNOWN)
        text = _advice(each, asking)
        if text and text not in seen:
            seen.add(text)
            yield text
    if not lacking(account) and account.requests:
        yield "Each request could be served, but no node has the devices for all of them together."


def _pools(account: Account) -> Iterator[str]:
    if account.invalid_pools:
        pools = listed(account.invalid_pools)
        yield f"The driver of pool {pools} has to publish it without contradictions."
    if account.incomplete_pools:
        pools = listed(account.incomplete_pools)
        yield f"Wait until the driver has written all of pool {pools}; see that it runs."


def _advice(asked: Asked, asking: Asking) -> str:  # noqa: PLR0911 - one answer for each reason
    refused = asked.refused
    if refused.get("constraint"):
        which = listed([constraint_text(each) for each in asking.constraints], 2)
        return f"Relax the constraint {which or 'of the claim'}, which leaves too few devices."
    if refused.get("counters"):
        return "Ask for a smaller partition, or wait until shared counters are given back."
    if refused.get("capacity"):
        return f"Ask for less capacity in request {asked.request}: no free device has so much."
    if refused.get("taint") and asked.claim.endswith(NAMELESS):
        return "Extended resources cannot tolerate taints: use a claim, or have the taint lifted."
    if refused.get("taint") or refused.get("inUse"):
        return f"Ask for fewer devices in request {asked.request}, or add devices."
    if refused.get("node"):
        return "Let the pod on the nodes that have such devices: see its selector and tolerations."
    if refused.get("selectorError"):
        return "Guard optional attributes with has() in the selectors: one of them fails."
    texts = [selector_text(each, asking) for each in asked.selectors]
    if texts and texts[0]:
        return f"Change the selector that refuses most devices: {code(texts[0])}."
    if asked.available:
        return f"Ask for fewer devices in request {asked.request}, or add devices."
    if not refused:
        return (
            f"Start a driver that publishes devices of class {asking.device_class or 'asked for'}."
        )
    return ""
