"""Eviction loops that run: which rule they are due to, why pods are evicted again, what helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import Final

import msgspec

from sully.api.resource.types import DeviceTaintRule, DeviceToleration, ResourceClaimSpec
from sully.client.transport import Key
from sully.domain.claims.pods import claim_references
from sully.domain.eviction.loop_advice import remedies, why
from sully.domain.eviction.loops import (
    EvictedAgain,
    LoopCause,
    blocking_key,
    loop_cause,
    selector_pattern,
)
from sully.domain.eviction.running_loops import PodEviction, RunningLoop, evictions_in
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, note
from sully.explain.reader import Reader
from sully.explain.sources import author
from sully.machinery.formats.timestamps import human_duration
from sully.views.eviction_loops import rules_of_loop
from sully.views.kinds import CLAIMS, RULES
from sully.views.snapshot.kinds import EVICTION_EVENTS, PODS, TEMPLATES

LOOP: Final = "EvictionLoop"
_LIKELY: Final = (
    LoopCause.NAMED_CLAIM,
    LoopCause.TOLERATES_NO_SCHEDULE,
    LoopCause.TOLERATION_EXPIRES,
    LoopCause.TOLERATION_WITHOUT_EFFECT,
)
"""The most informative comes first, where a pod has several claims."""


class RuleLoop(msgspec.Struct, frozen=True):
    """A loop, the rule that it is due to, and why pods are evicted again."""

    loop: RunningLoop
    rule: DeviceTaintRule
    owner: str
    """Kind and name of the workload: of a ReplicaSet, its Deployment."""
    again: EvictedAgain
    span: str
    """How long the evictions have been counted."""


def loops_of_rule(reader: Reader, rule: DeviceTaintRule) -> Iterator[RuleLoop]:
    """Yield the loops that are due to a rule."""
    for loop in reader.eviction_loops:
        if rule in _rules_of(reader, loop):
            yield _with_cause(reader, loop, rule)


def loops_with_pod(reader: Reader, pod: Pod) -> Iterator[Note]:
    """Yield a sentence about the loop that a pod is part of."""
    for loop in reader.eviction_loops:
        if (loop.namespace, loop.owner) != (pod.metadata.namespace, pod.owner_text):
            continue
        yield loop_membership(reader, loop, pod.workload_text)


def loop_membership(reader: Reader, loop: RunningLoop, owner: str) -> Note:
    """Return the sentence about the loop for one of its pods."""
    origins = loop_origins(reader, loop)
    return note(
        "PodInLoop",
        owner=_owner_text(loop.namespace, owner),
        evicted=loop.evicted,
        span=_span(reader, loop),
        sources=reader.sources.of_all(origins),
        rule=origins[0].partition("/")[2] if origins else "",
    )


def loop_origins(reader: Reader, loop: RunningLoop) -> tuple[str, ...]:
    """Return the rules that a loop is due to, as `Kind/name`."""
    return tuple(f"{RULES.kind}/{rule.metadata.name}" for rule in _rules_of(reader, loop))


def evicted_in_loop(reader: Reader, key: Key) -> tuple[PodEviction, RunningLoop] | None:
    """Return the eviction of a pod that is gone, and the loop that it was part of."""
    evictions = evictions_in(reader.snapshot.of(EVICTION_EVENTS).values(), ())
    named = [x for x in evictions if (x.namespace, x.name) == key]
    for loop in reader.eviction_loops if named else ():
        if named[-1].uid in loop.evicted_uids:
            return named[-1], loop
    return None


def loop_note(rule_loop: RuleLoop) -> Note:
    """Return the sentences about a loop."""
    return note(
        LOOP,
        evicted=rule_loop.loop.evicted,
        owner=_owner_text(rule_loop.loop.namespace, rule_loop.owner),
        span=rule_loop.span,
        why=why(rule_loop.again),
    )


def loop_remedies(loops: Iterable[RuleLoop]) -> tuple[Note, ...]:
    """Return what ends loops, each remedy once."""
    texts = [
        text
        for rule_loop in loops
        for text in remedies(
            rule_loop.again,
            namespace=rule_loop.loop.namespace,
            owner=rule_loop.owner,
            devices=selector_pattern(rule_loop.rule.spec.device_selector) or "DEVICE...",
            rule=rule_loop.rule.metadata.name,
            creator=author(rule_loop.rule.metadata),
        )
    ]
    return tuple(note("LoopRemedy", text=text) for text in dict.fromkeys(texts))


def _owner_text(namespace: str, owner: str) -> str:
    kind, _, name = owner.partition("/")
    return f"{kind} {namespace}/{name}"


def _span(reader: Reader, loop: RunningLoop) -> str:
    return human_duration(max(1, ceil((reader.now - loop.first).total_seconds())))


def _rules_of(reader: Reader, loop: RunningLoop) -> list[DeviceTaintRule]:
    return rules_of_loop(loop, reader.snapshot.of(RULES).values(), reader.exposures)


def _with_cause(reader: Reader, loop: RunningLoop, rule: DeviceTaintRule) -> RuleLoop:
    pods = [
        pod
        for name in loop.pods
        if (pod := reader.snapshot.get(PODS, Key(loop.namespace, name))) is not None
    ]
    causes = [again for pod in pods for again in _causes(reader, pod, rule)]
    causes = [again for cause in _LIKELY for again in causes if again.cause is cause]
    taint = taint_text(rule.spec.taint)
    return RuleLoop(
        loop,
        rule,
        owner=pods[0].workload_text if pods else loop.owner,
        again=causes[0] if causes else EvictedAgain(cause=LoopCause.UNKNOWN, taint=taint),
        span=_span(reader, loop),
    )


def _causes(reader: Reader, pod: Pod, rule: DeviceTaintRule) -> Iterator[EvictedAgain]:
    """Yield why a pod may be scheduled where the rule evicts it, for each of its claims."""
    taint, namespace = rule.spec.taint, pod.metadata.namespace
    for reference in claim_references(pod, extended=False):
        named = "" if reference.generated else reference.name
        spec = _spec(reader, namespace, named, reference.template)
        if spec is None:
            continue
        tolerations = tuple(_tolerations(spec))
        yield EvictedAgain(
            cause=loop_cause(taint, tolerations, named_claim=bool(named)),
            taint=taint_text(taint),
            origin=f"{RULES.kind}/{rule.metadata.name}",
            claim=f"ResourceClaim/{named}"
            if named
            else f"ResourceClaimTemplate/{reference.template}",
            blocking_key=blocking_key(taint, tolerations),
        )


def _spec(reader: Reader, namespace: str, claim: str, template: str) -> ResourceClaimSpec | None:
    """Return what a pod requests; its claim may not have been created yet, its template exists."""
    if claim:
        stored = reader.snapshot.get(CLAIMS, Key(namespace, claim))
        return stored.spec if stored is not None else None
    known = reader.snapshot.get(TEMPLATES, Key(namespace, template))
    return known.spec.spec if known is not None else None


def _tolerations(spec: ResourceClaimSpec) -> Iterator[DeviceToleration]:
    for request in spec.devices.requests or ():
        yield from request.exactly.tolerations if request.exactly is not None else ()
        for alternative in request.first_available:
            yield from alternative.tolerations
