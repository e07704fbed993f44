"""What to look at where nothing that was tried helps a pod: by what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from sully.domain.explaining.shortages import (
    Asking,
    Askings,
    asking_of,
    constraint_text,
    selector_text,
)
from sully.domain.explaining.trials import TooMuch
from sully.domain.explaining.wording import are, code, listed
from sully.domain.scheduling.diagnosis import Asked, Diagnosis
from sully.domain.scheduling.extended import NAMELESS
from sully.domain.scheduling.filters import NOT_CHOSEN, UNSCHEDULABLE, UNTOLERATED
from sully.domain.scheduling.resources import TOO_MANY


def node_advice(reasons: Iterable[str]) -> Iterator[str]:
    """Say what to look at where nodes refuse a pod, by what they say."""
    yield from dict.fromkeys(map(_node_advice, reasons))


def _node_advice(reason: str) -> str:
    known = {
        UNSCHEDULABLE: "Uncordon a node (kubectl uncordon).",
        UNTOLERATED: "Tolerate the taint of the nodes in spec.tolerations of the pod.",
        NOT_CHOSEN: "Change the node selector or affinity of the pod, or label a node.",
        TOO_MANY: "Wait until other pods leave, or add a node.",
    }
    of = reason.removeprefix("Insufficient ")
    return known.get(reason, f"Ask for less {of}, or add a node that has so much.")


def told_too_much(found: Sequence[TooMuch]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say what no node has so much of, and what to do about it."""
    if not found:
        return (), ("Ask for less, or add a node that has all of it.",)
    texts = tuple(
        f"It asks for {each.asked} {each.resource}, and no node has"
        f" {f'more than {each.most}' if each.most else 'any'}."
        for each in found
    )
    help_ = tuple(
        f"Ask for at most {each.most} {each.resource}, or add a node that has more."
        if each.most
        else f"Add a node that has {each.resource}, or do without."
        for each in found
    )
    return texts, help_


def refusing(reason: str, nodes: int) -> str:
    """Say in half a sentence what so many nodes have against a pod."""
    known = {
        UNSCHEDULABLE: f"{nodes} {are(nodes)} cordoned",
        UNTOLERATED: f"{nodes} {_have(nodes)} taints that it does not tolerate",
        NOT_CHOSEN: f"{nodes} {are(nodes)} not what its node selector or affinity asks for",
        TOO_MANY: f"{nodes} {are(nodes)} full of pods",
    }
    of = reason.removeprefix("Insufficient ")
    return known.get(reason, f"{nodes} {_have(nodes)} too little {of}")


def _have(nodes: int) -> str:
    return "has" if nodes == 1 else "have"


def advice(account: Diagnosis, asked: Askings) -> Iterator[str]:
    """Say what to look at where nothing that can be tried would help."""
    if account.reason == "PoolsUnusable":
        yield from _pools(account)
        return
    texts = (_advice(each, asking_of(each, asked)) for each in account.lacking)
    yield from filter(None, dict.fromkeys(texts))
    if not account.lacking and account.requests:
        yield "Each request could be served, but no node has the devices for all of them together."


def _pools(account: Diagnosis) -> Iterator[str]:
    if account.invalid_pools:
        pools = listed(account.invalid_pools)
        yield f"The driver of pool {pools} has to publish it without contradictions."
    if account.incomplete_pools:
        pools = listed(account.incomplete_pools)
        yield f"Wait until the driver has written all of pool {pools}; see that it runs."


def _in(asked: Asked, asking: Asking) -> str:
    return f" as {asking.resource}" if asking.resource else f" in request {asked.request}"


def _fewer(asked: Asked, asking: Asking) -> str:
    if asked.wanted == 1:
        who = asking.resource or f"request {asked.request}"
        return f"Add devices that can serve {who}."
    return f"Ask for fewer devices{_in(asked, asking)}, or add devices."


def _constrained(_: Asked, asking: Asking) -> str:
    which = listed([constraint_text(each) for each in asking.constraints], 2)
    return f"Relax the constraint {which or 'of the claim'}, which leaves too few devices."


def _tainted(asked: Asked, asking: Asking) -> str:
    if asked.claim.endswith(NAMELESS):
        return "Extended resources cannot tolerate taints: use a claim, or have the taint lifted."
    return _fewer(asked, asking)


_BY_REASON: Final[Mapping[str, Callable[[Asked, Asking], str]]] = {
    "constraint": _constrained,
    "counters": lambda *_: (
        "Ask for a smaller partition, or wait until shared counters are given back."
    ),
    "capacity": lambda asked, asking: (
        f"Ask for less capacity{_in(asked, asking)}: no free device has so much."
    ),
    "taint": _tainted,
    "inUse": _fewer,
    "node": lambda *_: (
        "Let the pod on the nodes that have such devices: see its selector and tolerations."
    ),
    "selectorError": lambda *_: (
        "Guard optional attributes with has() in the selectors: one of them fails."
    ),
}
"""From what is closest to a device that fits; the rest are of another kind than is wanted."""


def _advice(asked: Asked, asking: Asking) -> str:
    for reason, told in _BY_REASON.items():
        if asked.refused.get(reason):
            return told(asked, asking)
    texts = [selector_text(each, asking) for each in asked.selectors]
    if texts and texts[0]:
        return f"Change the selector that refuses most devices: {code(texts[0])}."
    if asked.available:
        return _fewer(asked, asking)
    if asked.refused:
        return ""
    return f"Start a driver that publishes devices of class {asking.device_class or 'asked for'}."
