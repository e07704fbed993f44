"""What would help a pod, in words, as trials have shown it (nearest.py); else see advice.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from sully.domain.explaining.shortages import merged_holders, merged_taints
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.trials import Help, Opening, Trial
from sully.domain.explaining.wording import joined, listed, mark, moment, noun, number
from sully.domain.scheduling.diagnosis import Diagnosis, Taint
from sully.domain.scheduling.extended import NAMELESS
from sully.domain.scheduling.objects import Pod

Names = Callable[[str], Sequence[str]]
MOST_STEPS: Final = 8
"""Pods or claims that are named; whoever waits for more of them waits for the node."""


def remedies(
    found: Iterable[Help],
    account: Diagnosis | None,
    sources: Sources,
    users: Names,
    now: datetime,
) -> Iterator[str]:
    """Say what would help; `users` names the pods behind a claim."""
    for each in found:
        trial = each.trial
        parts = list(_open(trial.opening)) if trial.opening is not None else []
        if trial.leave:
            who = _several("pod", trial.leave)
            leaves = "leaves" if len(trial.leave) == 1 else "leave"
            parts.append(f"wait until {who} {leaves} node {each.node}")
        if trial.tolerate:
            text = _tolerate(trial, account)
            parts.append(f"{text}{_or(trial.tolerate, sources, now) if each.liftable else ''}")
        if trial.free:
            parts.append(_wait(trial.free, account, users))
        text = ". Also ".join(parts)
        yield f"{text[:1].upper()}{text[1:]}. The pod would then go to node {each.node}."


def _several(thing: str, names: Sequence[str]) -> str:
    return f"{thing} {names[0]}" if len(names) == 1 else f"{thing}s {listed(names, MOST_STEPS)}"


def _open(opening: Opening) -> Iterator[str]:
    node = opening.node
    if opening.cordoned:
        yield f"uncordon node {node} (kubectl uncordon {node})"
    if opening.taints:
        marks = joined(list(map(mark, opening.taints)))
        yield f"tolerate {marks} of node {node} in spec.tolerations of the pod"
    if opening.unchosen:
        yield (
            f"change the node selector or affinity of the pod, or label node {node}, so that the"
            " one matches the other"
        )


def _tolerate(trial: Trial, account: Diagnosis | None) -> str:
    taints = trial.tolerate
    wanted = joined([f"{mark(each)} from {noun(each.origin)}" for each in taints])
    if any(each.lapsed for each in taints):
        wanted += " without tolerationSeconds"
    return f"tolerate {wanted}{_where(trial, account)}"


def _or(taints: Sequence[Taint], sources: Sources, now: datetime) -> str:
    """Say what does as well as a toleration."""
    ends = [sources.of(each.origin).until for each in taints]
    known = [end for end in ends if end is not None]
    if known and len(known) == len(ends):
        return f", or wait until {moment(max(known), now)}"
    return f", or have {'it' if len(taints) == 1 else 'them'} lifted"


def _where(trial: Trial, account: Diagnosis | None) -> str:
    """Name the requests that must tolerate, with their claims where the pod has several."""
    if not trial.where:
        return ""
    claims = {each.claim for each in account.requests} if account is not None else set[str]()
    by_claim: dict[str, list[str]] = {}
    for claim, request in trial.where:
        by_claim.setdefault(claim, []).append(request)
    if len(claims) == 1:
        return f" in request {joined(next(iter(by_claim.values())))}"
    parts = [f"request {joined(names)} of claim {claim}" for claim, names in by_claim.items()]
    return f" in {joined(parts)}"


def untried(account: Diagnosis, sources: Sources, users: Names, now: datetime) -> Iterator[str]:
    """Say what may help where it cannot be tried: whoever asks may not see all that decides."""
    short = account.short
    places = tuple((each.claim, each.request) for each in short if each.taints)
    taints = tuple(merged_taints(short))
    if taints and not any(claim.endswith(NAMELESS) for claim, _ in places):
        text = _tolerate(Trial(tolerate=taints, where=places), account)
        yield f"Perhaps {text}{_or(taints, sources, now)}."
    if holders := tuple(merged_holders(short)):
        yield f"Perhaps {_wait(holders, account, users)}, as far as that is needed."


def made_anew(found: Iterable[Help], pod: Pod) -> Iterator[str]:
    """Say what tolerations must be written into: claims that there are do not change."""
    claims = {
        claim
        for each in found
        if each.trial.tolerate
        for claim, _ in each.trial.where or ()
        if not claim.endswith(NAMELESS)
    }
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    templates, own = list[str](), list[str]()
    for each in pod.spec.resource_claims:
        name = each.resource_claim_name or made.get(each.name)
        if f"{pod.metadata.namespace}/{name}" in claims:
            template = each.resource_claim_template_name
            (templates if template else own).append(template or str(name))
    steps = [f"change {_several('template', templates)} and make the pod anew"] if templates else []
    steps += [f"make {_several('claim', own)} anew"] if own else []
    if steps:
        yield f"Claims cannot be changed: to tolerate more, {joined(steps)}."


def _wait(claims: Sequence[str], account: Diagnosis | None, users: Names) -> str:
    held = merged_holders(account.requests if account is not None else ())
    names = []
    for name in claims:
        pods = users(name)
        count = [number(held[name], "device")] if name in held else []
        used = [f"used by pod {listed(pods, 2)}"] if pods else []
        about = ", ".join((*count, *used))
        names.append(f"{name} ({about})" if about else name)
    if len(names) == 1:
        return f"wait until claim {names[0]} gives its devices back"
    return f"wait until claims {listed(names, MOST_STEPS)} give their devices back"
