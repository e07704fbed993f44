"""Why no node serves a pod: nodes that refuse it, claims that bind it, devices it cannot have.

waiting.py asks here when nothing about the pod itself stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sully.domain.explaining.leads import lead
from sully.domain.explaining.nearest import Help, Largest, advice, helps, remedies, too_large
from sully.domain.explaining.shortages import account_tables, sentences
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.waitingfacts import Attempt, WaitingFacts, story, waits
from sully.domain.explaining.wording import are, listed, number
from sully.domain.scheduling.account import Account, Asked, Blocked


def explain_nodes(facts: WaitingFacts, found: Attempt) -> Explanation | None:
    """Tell of nodes that refuse the pod, where devices are not even asked for."""
    refusing = sum(len(nodes) for nodes in found.rejections.values())
    reached = found.account.reached if found.account is not None else 0
    if reached or not refusing:
        return None
    text = f"{waits(facts)}: none of {number(found.nodes, 'node')} takes it, devices aside."
    parts = tuple(
        f"{number(len(nodes), 'node')} ({listed(nodes, 3)}): {reason}."
        for reason, nodes in _by_number(found.rejections)
    )
    return story(
        facts,
        "NodesRefuse",
        text,
        *parts,
        because=tuple(
            f"Node/{name}" for _, nodes in _by_number(found.rejections) for name in nodes
        )[:8],
        help_=tuple(
            dict.fromkeys(_node_help(reason) for reason, _ in _by_number(found.rejections))
        ),
        details=_tables(facts, found.account, found.rejections),
    )


def _by_number(rejections: Mapping[str, tuple[str, ...]]) -> list[tuple[str, tuple[str, ...]]]:
    return sorted(rejections.items(), key=lambda each: (-len(each[1]), each[0]))


def _node_help(reason: str) -> str:
    if "unschedulable" in reason:
        return "Uncordon a node (kubectl uncordon)."
    if "taint" in reason:
        return "Tolerate the taint of the nodes in spec.tolerations of the pod."
    if "affinity" in reason:
        return "Change the node selector or affinity of the pod, or label a node."
    return "Ask for less, or wait until other pods leave."


def explain_blocked(facts: WaitingFacts, account: Account | None) -> Explanation | None:
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
    return story(facts, account.reason, text, because=because, help_=(help_,))


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


def explain_account(facts: WaitingFacts, account: Account | None) -> Explanation | None:
    """Tell what speaks against the devices, and what would help."""
    if account is None:
        return None
    blocked = explain_blocked(facts, account)
    if blocked is not None:
        return blocked
    found = helps(account, facts.tries) if facts.tries is not None else ()
    if not found and facts.tries is not None and (large := too_large(account, facts.tries)):
        return _too_large(facts, account, large)
    short = _reason(account, found)
    why = lead(short, account, facts.asked, facts.sources)
    help_ = (
        *remedies(found, account, facts.sources, facts.users, facts.now),
        *(() if found else advice(account, facts.asked)),
    )
    rejections = facts.attempt.rejections if facts.attempt is not None else {}
    return story(
        facts,
        short,
        f"{waits(facts)}: {why}.",
        *sentences(account, facts.asked, facts.sources, facts.now),
        *_out_of_reach(facts, short),
        *_also(rejections),
        because=tuple(_origins(account)),
        help_=help_,
        details=_tables(facts, account, rejections),
    )


def _reason(account: Account, found: Sequence[Help]) -> str:
    """Return the cause in a word, which is what helps against it, where trials have shown that."""
    reason = account.reason
    if reason not in ("DevicesTainted", "NotTogether", "CapacityTooSmall") or not found:
        return reason
    return "DevicesTainted" if any(each.trial.tolerate for each in found) else "DevicesInUse"


def _out_of_reach(facts: WaitingFacts, cause: str) -> Iterator[str]:
    """Tell of devices that there are, but on no node that a scheduler knows of."""
    if cause == "NoDevices" and facts.published:
        yield (
            f"{number(facts.published, 'device')} {are(facts.published)} published, but for nodes"
            " that do not exist, or in pools that are being replaced."
        )


def _too_large(
    facts: WaitingFacts, account: Account, large: Sequence[tuple[Asked, Largest]]
) -> Explanation:
    """Tell of requests that no node could serve, were all its devices free."""
    texts = [
        f"Request {each.request} of claim {each.claim} wants {number(each.wanted, 'device')}, and"
        f" no node has so many: {most.node} has the most, {most.devices}."
        for each, most in large
    ]
    help_ = [
        f"Ask for at most {number(most.devices, 'device')} in request {each.request}."
        for each, most in large
    ]
    first, most = large[0]
    why = f"request {first.request} wants {first.wanted} devices of one node, and none has more"
    return story(
        facts,
        "NodesTooSmall",
        f"{waits(facts)}: {why} than {most.devices}.",
        *texts,
        help_=tuple(help_),
        details=_tables(facts, account, {}),
    )


def _also(rejections: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    total = sum(len(nodes) for nodes in rejections.values())
    if total:
        reasons = listed([reason for reason, _ in _by_number(rejections)], 2)
        yield f"{number(total, 'node')} would not take the pod anyway: {reasons}."


def _origins(account: Account) -> Iterator[str]:
    seen: dict[str, None] = {}
    for asked in account.requests:
        seen |= dict.fromkeys(each.origin for each in asked.taints)
        seen |= dict.fromkeys(f"ResourceClaim/{each.claim}" for each in asked.holders[:4])
    yield from seen


def _tables(
    facts: WaitingFacts, account: Account | None, rejections: Mapping[str, tuple[str, ...]]
) -> tuple[Table, ...]:
    nodes = Table(
        "Nodes that do not take the pod",
        ("reason", "nodes", "names"),
        tuple((why, str(len(names)), listed(names, 8)) for why, names in _by_number(rejections)),
    )
    return tables(*(account_tables(account, facts.asked) if account is not None else ()), nodes)
