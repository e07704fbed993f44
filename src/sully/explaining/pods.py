"""What belongs to a question about a pod or a claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sully.api.resource.claim_types import ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.scheduling.wishes import claim_keys, resolve, unallocated
from sully.domain.claims import MOST_CONSUMERS, is_pod
from sully.domain.eviction import KEEP
from sully.domain.explaining.claims import ClaimFacts, explain_claim
from sully.domain.explaining.evicted import explain_evicted
from sully.domain.explaining.pods import BudgetFact, PodFacts, explain_pod
from sully.domain.explaining.shortages import askings
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.waiting import explain_waiting
from sully.domain.explaining.waitingfacts import ClaimProblem, Held, WaitingFacts
from sully.domain.holding import reserved_for
from sully.domain.planning.objects import PlannedPod
from sully.domain.scheduling.account import CONDITION, Account, decode
from sully.domain.scheduling.filters import not_evaluated
from sully.domain.scheduling.objects import Pod, PodClaim
from sully.domain.workloads import selector_of
from sully.explaining.attempts import TERMS
from sully.explaining.kinds import BUDGETS, SEEN_PODS
from sully.explaining.world import World
from sully.views.kinds import CLAIMS
from sully.views.snapshotkinds import TEMPLATES


def pod(world: World, key: Key) -> Explanation | None:
    """Explain a pod, also one that was evicted; None if nobody knows it."""
    found = world.snapshot.get(SEEN_PODS, key)
    if found is None:
        records = world.evictions(lambda each: (each.spec.pod.namespace, each.spec.pod.name) == key)
        return explain_evicted(records, world.sources, world.now) if records else None
    on_its_way = found.metadata.deletion_timestamp is not None
    if found.spec.node_name or found.finished or on_its_way:
        return explain_pod(_bound(world, found))
    return explain_waiting(_waiting(world, found))


def _bound(world: World, found: PlannedPod) -> PodFacts:
    usage = world.snapshot.usage
    user = usage.pod(key_of(found))
    held = list(usage.claims_of(user)) if user is not None else []
    mine = {key_of(each) for each in held}
    uid = found.metadata.uid
    records = world.evictions(lambda each: each.spec.pod.uid == uid)
    return PodFacts(
        pod=found,
        now=world.now,
        sources=world.sources,
        holdings=world.holdings(held),
        record=records[-1] if records else None,
        unheld=tuple(str(each) for each in claim_keys(found) if each not in mine),
        verdict=world.exposures.judge(user) if user is not None else KEEP,
        blind=world.blind,
        budgets=tuple(_budgets(world, found)),
        pausable=world.remembers,
        terms=TERMS,
    )


def _budgets(world: World, found: PlannedPod) -> Iterator[BudgetFact]:
    budgets = world.snapshot.of(BUDGETS)
    for key in sorted(budgets.keys()):
        each = budgets.get(key)
        here = each is not None and key.namespace == found.metadata.namespace
        if each is not None and here and selector_of(each).matches(found.metadata.labels):
            yield BudgetFact(str(key), each.status.disruptions_allowed)


def _waiting(world: World, found: Pod) -> WaitingFacts:
    claims = resolve(found, world.snapshot.of(CLAIMS).get)
    if isinstance(claims, str):
        problem = _problem(world, found, claims)
        return WaitingFacts(pod=found, now=world.now, sources=world.sources, problem=problem)
    known, attempts = claims, world.attempts
    if (full := _full(found, known)) is not None:
        return WaitingFacts(pod=found, now=world.now, sources=world.sources, problem=full)
    return WaitingFacts(
        pod=found,
        now=world.now,
        sources=world.sources,
        constraint=not_evaluated(found),
        attempt=attempts.attempt(found, known) if attempts is not None else None,
        told=told_account(found),
        asked=askings(unallocated(known), world.snapshot.inventory.class_),
        tries=attempts.tries(found, known) if attempts is not None else None,
        users=lambda claim: _users(world, claim),
        held=lambda claim: _held(world, claim),
        published=_published(world),
    )


def told_account(found: Pod) -> Account | None:
    """Return the account that the scheduler left with a pod."""
    told = found.condition(CONDITION)
    return decode(told.message) if told is not None else None


def _users(world: World, claim: str) -> Sequence[str]:
    namespace, _, name = claim.partition("/")
    return [str(key_of(each)) for each in world.snapshot.usage.users(Key(namespace, name))]


def _published(world: World) -> int:
    inventory = world.snapshot.inventory
    return sum(len(list(inventory.devices(pool))) for pool in inventory.pools())


def _full(found: Pod, claims: Sequence[ResourceClaim]) -> ClaimProblem | None:
    """Find a claim that as many pods share as may."""
    for each in claims:
        reserved = each.status.reserved_for
        if len(reserved) >= MOST_CONSUMERS and not reserved_for(each, uid=found.metadata.uid):
            name = str(key_of(each))
            text = f"claim {name} is reserved for {len(reserved)} pods, the most there may be"
            help_ = "Wait until one of them is gone, or give the pod another claim."
            return ClaimProblem("ClaimFull", text, (f"ResourceClaim/{name}",), help_)
    return None


def _held(world: World, claim: str) -> Held:
    namespace, _, name = claim.partition("/")
    found = world.snapshot.get(CLAIMS, Key(namespace, name))
    if found is None:
        return Held()
    holdings = world.holdings((found,))
    users = tuple(each.name for each in found.status.reserved_for)
    return Held(tuple(str(each.device) for each in holdings), users)


def _problem(world: World, found: Pod, text: str) -> ClaimProblem:
    """Find the claim that the scheduler stumbles over, and what would help."""
    made = {each.name: each.resource_claim_name for each in found.status.resource_claim_statuses}
    namespace = found.metadata.namespace
    for each in found.spec.resource_claims:
        name = each.resource_claim_name or made.get(each.name)
        if each.resource_claim_name is None and each.name not in made:
            return _not_created(world, namespace, each, text)
        if name is None:
            continue
        claim = world.snapshot.get(CLAIMS, Key(namespace, name))
        because = (f"ResourceClaim/{namespace}/{name}",)
        if claim is None:
            help_ = f"Create claim {name} in namespace {namespace}."
            return ClaimProblem("ClaimMissing", text, because, help_)
        if claim.metadata.deletion_timestamp is not None:
            help_ = "Wait until it is gone, and let a new one take its place."
            return ClaimProblem("ClaimDeleting", text, because, help_)
        if f"/{name} was not created for" in text:
            help_ = f"Delete claim {name}, which has the name that this pod's claim would need."
            return ClaimProblem("ClaimOfOther", text, because, help_)
    return ClaimProblem("ClaimMissing", text)


def _not_created(world: World, namespace: str, each: PodClaim, text: str) -> ClaimProblem:
    template = each.resource_claim_template_name or ""
    if world.snapshot.get(TEMPLATES, Key(namespace, template)) is not None:
        help_ = "The claim controller makes it; see that one runs."
        because = (f"ResourceClaimTemplate/{namespace}/{template}",)
        return ClaimProblem("ClaimNotCreated", text, because, help_)
    missing = f"there is no ResourceClaimTemplate {template} in namespace {namespace}"
    return ClaimProblem("TemplateMissing", f"{text}; {missing}", (), f"Create template {template}.")


def claim(world: World, key: Key) -> Explanation | None:
    """Explain a claim; None if nobody knows it."""
    found = world.snapshot.get(CLAIMS, key)
    if found is None:
        return None
    users = [key_of(each) for each in world.snapshot.usage.users(key)]
    return explain_claim(
        ClaimFacts(
            claim=found,
            now=world.now,
            sources=world.sources,
            holdings=world.holdings((found,)),
            users=tuple(map(str, users)),
            gone=_gone(world, found),
            blind=world.blind,
            waiting=_first_waiting(world, users) if found.status.allocation is None else None,
            terms=TERMS,
        )
    )


def _gone(world: World, found: ResourceClaim) -> tuple[str, ...]:
    namespace = found.metadata.namespace
    reserved = [each for each in found.status.reserved_for if is_pod(each)]
    pods = world.snapshot.of(SEEN_PODS)
    missing = []
    for each in reserved:
        there = pods.get(Key(namespace, each.name))
        if there is None or there.finished or there.metadata.uid != each.uid:
            missing.append(each.name)
    return tuple(missing)


def _first_waiting(world: World, users: Sequence[Key]) -> Explanation | None:
    for key in users:
        found = world.snapshot.get(SEEN_PODS, key)
        if found is not None and not found.spec.node_name and not found.finished:
            return pod(world, key)
    return None
