"""Why no node serves a pod: nodes that refuse it, claims that bind it, devices it cannot have.

waiting.py asks here when nothing about the pod itself stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sully.domain.explaining.advice import advice, node_advice, refusing, told_too_much
from sully.domain.explaining.leads import lead
from sully.domain.explaining.nearest import beyond, helps, too_large
from sully.domain.explaining.remedies import made_anew, remedies, untried
from sully.domain.explaining.shortages import account_tables, asking_of, sentences
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.trials import Help, Largest, Trial
from sully.domain.explaining.waitingfacts import Attempt, WaitingFacts, story, waits
from sully.domain.explaining.wording import are, joined, listed, number
from sully.domain.scheduling.diagnosis import Asked, Blocked, Diagnosis

_MOST_REASONS: Final = 3


def explain_nodes(facts: WaitingFacts, found: Attempt) -> Explanation | None:
    """Tell of nodes that refuse the pod, where devices are not even asked for."""
    against = _by_number(found.rejections)
    reached = found.account.reached if found.account is not None else 0
    if reached or not against:
        return None
    tried = _helps(facts, found.account)
    told = tuple(_told(facts, tried, found.account))
    more, help_ = ((), told) if told else _node_advice(facts, [reason for reason, _ in against])
    return story(
        facts,
        "NodesRefuse",
        f"{waits(facts)}: {_refusing(found.nodes, against)}.",
        *(
            f"{number(len(nodes), 'node')} ({listed(nodes, 3)}): {reason}."
            for reason, nodes in against
        ),
        *more,
        because=tuple(f"Node/{name}" for name in _distinct(found.rejections))[:8],
        help_=help_,
        details=_tables(facts, found.account, found.rejections),
    )


def _refusing(nodes: int, against: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    parts = [refusing(reason, len(names)) for reason, names in against[:_MOST_REASONS]]
    if nodes == 1:
        return f"the only node {joined([each.removeprefix('1 ') for each in parts])}"
    if len(parts) == 1 and len(against[0][1]) == nodes:
        return f"all {nodes} nodes {parts[0].removeprefix(f'{nodes} ')}"
    return f"of {nodes} nodes, {joined(parts)}"


def _node_advice(
    facts: WaitingFacts, reasons: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what to look at, and what devices would lack if the nearest node took the pod."""
    first, tries = tuple(node_advice(reasons)), facts.tries
    if tries is None:
        return (), first
    nearest = next(iter(tries.openings()), None)
    if nearest is None:
        return told_too_much(tries.too_much())
    trial = Trial(leave=tuple(tries.pods_on(nearest.node)), opening=nearest)
    account = tries.account_after(trial, nearest.node)
    if account is None or account.blocked:
        return (), first
    why = lead(account.reason, account, facts.asked, facts.sources)
    more = f"Nor would that be enough on {nearest.node}: {why}."
    return (more,), (*first, *advice(account, facts.asked))


def _helps(facts: WaitingFacts, account: Diagnosis | None) -> tuple[Help, ...]:
    return helps(account, facts.tries) if facts.tries is not None else ()


def _told(facts: WaitingFacts, found: Sequence[Help], account: Diagnosis | None) -> Iterator[str]:
    yield from remedies(found, account, facts.sources, facts.users, facts.now)
    yield from made_anew(found, facts.pod)


def _by_number(rejections: Mapping[str, tuple[str, ...]]) -> list[tuple[str, tuple[str, ...]]]:
    return sorted(rejections.items(), key=lambda each: (-len(each[1]), each[0]))


def _distinct(rejections: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the nodes that refuse a pod, once each: one may have several things against it."""
    return tuple(dict.fromkeys(name for _, nodes in _by_number(rejections) for name in nodes))


def explain_blocked(facts: WaitingFacts, account: Diagnosis | None) -> Explanation | None:
    """Tell of a claim that has its devices, and that the pod nevertheless cannot use."""
    if account is None or not account.blocked:
        return None
    first = account.blocked[0]
    if first.taints:
        return _tainted_claim(facts, first)
    held = facts.held(first.claim)
    devices = f"has {listed(held.devices, 2)}" if held.devices else "has its devices"
    text = (
        f"{waits(facts)}: claim {first.claim} {devices} already, and"
        f" {number(first.nodes, 'node')} that would take the pod cannot use that."
    )
    because = (f"ResourceClaim/{first.claim}",)
    if not held.users:
        more = "Nobody uses the claim, so the scheduler takes its devices back and chooses others."
        help_ = "See that a scheduler runs."
        return story(facts, account.reason, text, more, because=because, help_=(help_,))
    uses = "uses" if len(held.users) == 1 else "use"
    help_ = (
        f"Wait until {listed(held.users, 2)} no longer {uses} the claim, let the pod on the node"
        " where the devices are, or give it a claim of its own."
    )
    tried = _told(facts, _helps(facts, account), account)
    return story(facts, account.reason, text, because=because, help_=(*tried, help_))


def _tainted_claim(facts: WaitingFacts, blocked: Blocked) -> Explanation:
    marks = [facts.sources.told(each, each.origin, facts.now) for each in blocked.taints]
    names = [facts.sources.of(each.origin).told() for each in blocked.taints]
    text = (
        f"{waits(facts)}: it would have to leave claim {blocked.claim} at once because of"
        f" {listed(dict.fromkeys(names), 2)}."
    )
    return story(
        facts,
        "ClaimTainted",
        text,
        f"Device {blocked.device} of the claim carries {listed(marks, 2)}.",
        because=tuple(dict.fromkeys(each.origin for each in blocked.taints)),
        help_=("Use another claim, or have the taint lifted.",),
    )


def explain_account(facts: WaitingFacts, account: Diagnosis | None) -> Explanation | None:
    """Tell what speaks against the devices, and what would help."""
    if account is None:
        return None
    blocked = explain_blocked(facts, account)
    if blocked is not None:
        return blocked
    found = _helps(facts, account)
    if not found and facts.tries is not None and (large := too_large(account, facts.tries)):
        return _too_large(facts, account, large)
    short = _reason(account, found)
    why = lead(short, account, facts.asked, facts.sources)
    more, help_ = ((), _told(facts, found, account)) if found else _not_tried(facts, account)
    rejections = facts.attempt.rejections if facts.attempt is not None else {}
    return story(
        facts,
        short,
        f"{waits(facts)}: {why}.",
        *sentences(account, facts.asked, facts.sources, facts.now),
        *more,
        *_out_of_reach(facts, short),
        *_also(rejections),
        *(_ahead(facts) if found else ()),
        because=tuple(_origins(account)),
        help_=tuple(help_),
        details=_tables(facts, account, rejections),
    )


def _not_tried(facts: WaitingFacts, account: Diagnosis) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what to look at: what may help, if it could not be tried, else what is behind it all."""
    plain = tuple(advice(account, facts.asked))
    if facts.tries is None:
        may = tuple(untried(account, facts.sources, facts.users, facts.now))
        return (), may or plain
    found = beyond(account, facts.tries)
    if found is None:
        return (), plain
    node, then = found
    why = lead(then.reason, then, facts.asked, facts.sources)
    return (f"Even without all that, {node} would not do: {why}.",), (
        *advice(then, facts.asked),
    ) or plain


def _reason(account: Diagnosis, found: Sequence[Help]) -> str:
    """Return the cause in a word, which is what helps against it, where trials have shown that."""
    reason = account.reason
    if reason not in ("DevicesTainted", "NotTogether", "CapacityTooSmall") or not found:
        return reason
    # A taint on a device that is in use as well stands in no account.
    if any(each.trial.tolerate for each in found) and any(each.taints for each in account.short):
        return "DevicesTainted"
    return "DevicesInUse" if any(each.trial.free for each in found) else reason


def _out_of_reach(facts: WaitingFacts, cause: str) -> Iterator[str]:
    """Tell of devices that there are, but on no node that a scheduler knows of."""
    if cause == "NoDevices" and facts.published:
        yield (
            f"{number(facts.published, 'device')} {are(facts.published)} published, but for nodes"
            " that do not exist, or in pools that are being replaced."
        )


def _too_large(
    facts: WaitingFacts, account: Diagnosis, large: Sequence[tuple[Asked, Largest]]
) -> Explanation:
    """Tell of requests that no node could serve, were all its devices free."""
    texts = [
        f"{_asker(facts, each)} wants {number(each.wanted, 'device')}, and no node has so many:"
        f" {most.node} has the most, {most.devices}."
        for each, most in large
    ]
    help_ = [
        f"Ask for at most {number(most.devices, 'device')} {_for(facts, each)}."
        for each, most in large
    ]
    first, most = large[0]
    asker = _asker(facts, first).partition(" of claim ")[0]
    why = f"{asker[:1].lower()}{asker[1:]} wants {first.wanted} devices of one node, and none has"
    return story(
        facts,
        "NodesTooSmall",
        f"{waits(facts)}: {why} more than {most.devices}.",
        *texts,
        help_=tuple(help_),
        details=_tables(facts, account, {}),
    )


def _asker(facts: WaitingFacts, asked: Asked) -> str:
    """Name who asks for devices: a request of a claim, or an extended resource."""
    resource = asking_of(asked, facts.asked).resource
    return f"Resource {resource}" if resource else f"Request {asked.request} of claim {asked.claim}"


def _for(facts: WaitingFacts, asked: Asked) -> str:
    resource = asking_of(asked, facts.asked).resource
    return f"as {resource}" if resource else f"in request {asked.request} of claim {asked.claim}"


def _also(rejections: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    if total := len(_distinct(rejections)):
        reasons = listed([reason for reason, _ in _by_number(rejections)], 2)
        yield f"{number(total, 'node')} would not take the pod anyway: {reasons}."


def _ahead(facts: WaitingFacts) -> Iterator[str]:
    """Tell of pods that may take what becomes free."""
    if count := len(facts.ahead):
        wants = "wants such devices and is" if count == 1 else "want such devices and are"
        yield f"{number(count, 'other pod')} {wants} looked at before it: {listed(facts.ahead, 3)}."


def _origins(account: Diagnosis) -> Iterator[str]:
    seen: dict[str, None] = {}
    for asked in account.requests:
        seen |= dict.fromkeys(each.origin for each in asked.taints)
        seen |= dict.fromkeys(f"ResourceClaim/{each.claim}" for each in asked.holders[:4])
    yield from seen


def _tables(
    facts: WaitingFacts, account: Diagnosis | None, rejections: Mapping[str, tuple[str, ...]]
) -> tuple[Table, ...]:
    nodes = Table(
        "Nodes that do not take the pod",
        ("reason", "nodes", "names"),
        tuple((why, str(len(names)), listed(names, 8)) for why, names in _by_number(rejections)),
    )
    return tables(*(account_tables(account, facts.asked) if account is not None else ()), nodes)
