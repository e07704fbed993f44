"""What belongs to a question about a pod without a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sully.api.resource.claim_types import ResourceClaim
from sully.api.resource.types import DeviceTaintSelector
from sully.api.sully.types import EvictionRecord
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.lifecycle import MOST_CONSUMERS
from sully.domain.claims.pods import PodClaim
from sully.domain.claims.reservations import reserved_for
from sully.domain.explaining.shortages import askings
from sully.domain.explaining.waitingfacts import ClaimProblem, Held, WaitingFacts
from sully.domain.explaining.wording import listed, moment
from sully.domain.planning.objects import PlannedPod
from sully.domain.scheduling.diagnosis import CONDITION, Diagnosis, decode
from sully.domain.scheduling.filters import not_evaluated
from sully.domain.scheduling.objects import Pod
from sully.explaining.kinds import SEEN_PODS
from sully.explaining.tries import Tries
from sully.explaining.world import World
from sully.scheduler.binding_conditions import deadline, unready
from sully.scheduler.claim_resolution import ClaimsNotReady, ClaimState, resolve, unallocated
from sully.views.kinds import CLAIMS
from sully.views.snapshot.kinds import TEMPLATES


def waiting(
    world: World, found: PlannedPod, before: tuple[EvictionRecord, ...] = ()
) -> WaitingFacts:
    """Collect what is known of a pod without a node."""
    known, attempts = resolve(found, world.snapshot.of(CLAIMS).get), world.attempts
    plain = WaitingFacts(pod=found, now=world.now, sources=world.sources, before=before)
    if isinstance(known, ClaimsNotReady):
        return replace(plain, problem=_problem(world, found, known))
    problem = _full(found, known) or _unready(found, known, world.now)
    if problem is not None:
        return replace(plain, problem=problem)
    return replace(
        plain,
        constraint=not_evaluated(found),
        attempt=attempts.attempt(found, known) if attempts is not None else None,
        told=told_account(found),
        ahead=tuple(_ahead(world, found)),
        asked=askings(
            unallocated(known),
            world.snapshot.inventory.class_,
            attempts.extension(found) if attempts is not None else None,
        ),
        tries=Tries(attempts, found, known) if attempts is not None else None,
        users=lambda claim: _users(world, claim),
        held=lambda claim: _held(world, claim),
        published=world.snapshot.inventory.count_named(DeviceTaintSelector()),
    )


def account_now(world: World, found: Pod) -> Diagnosis | None:
    """Return what speaks against devices for a pod that waits, as it is now."""
    claims = resolve(found, world.snapshot.of(CLAIMS).get)
    if world.attempts is None or isinstance(claims, ClaimsNotReady) or not found.waits:
        return told_account(found)
    return world.attempts.account(found, claims)


def told_account(found: Pod) -> Diagnosis | None:
    """Return the account that the scheduler left with a pod, some time ago."""
    told = found.condition(CONDITION)
    return decode(told.message) if told is not None else None


def _ahead(world: World, found: Pod) -> Iterator[str]:
    """Yield the pods before this one in the queue that want devices of the same classes."""
    wanted = _classes(world, found)
    if not wanted:
        return
    for each in sorted(world.snapshot.of(SEEN_PODS).values(), key=key_of):
        if each.waits and _importance(each) < _importance(found) and wanted & _classes(world, each):
            yield each.label


def _importance(pod: Pod) -> tuple[int, datetime]:
    """Return what the order of the queue goes by; who came in the same second is not told apart."""
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or datetime.min.replace(
        tzinfo=UTC
    )


def _classes(world: World, found: Pod) -> set[str]:
    """Return the classes of devices that a pod still wants."""
    claims = resolve(found, world.snapshot.of(CLAIMS).get)
    extension = world.attempts.extension(found) if world.attempts is not None else None
    wanted = [] if isinstance(claims, ClaimsNotReady) else unallocated(claims)
    wanted += [extension.claim] if extension is not None else []
    asked = askings(wanted, world.snapshot.inventory.class_).values()
    return {each.device_class for each in asked}


def _users(world: World, claim: str) -> Sequence[str]:
    namespace, _, name = claim.partition("/")
    found = world.snapshot.get(CLAIMS, Key(namespace, name))
    held = world.snapshot.usage.holders(found) if found is not None else ()
    return [str(key_of(each)) for each in held]


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


def _unready(found: Pod, claims: Sequence[ResourceClaim], now: datetime) -> ClaimProblem | None:
    """Find a device that the pod has and that its driver must make ready first."""
    mine = [each for each in claims if reserved_for(each, uid=found.metadata.uid)]
    pending = [(claim, each) for claim in mine for each in unready(claim)]
    # Where one has failed, nobody waits for the others.
    for claim, each in sorted(pending, key=lambda pair: not pair[1].failed):
        name, result = str(key_of(claim)), each.result
        device, because = f"{result.driver}/{result.pool}/{result.device}", f"ResourceClaim/{name}"
        if each.failed:
            text = f"device {device} of claim {name} cannot be used: its driver reports condition"
            help_ = "The scheduler takes it back and tries again; the claim's status says more."
            return ClaimProblem("DevicesFailed", f"{text} {listed(each.failed)}", (because,), help_)
        text = f"claim {name} has device {device}, and its driver has not yet reported condition"
        until = moment(deadline((claim,), now), now)
        text += f" {listed(each.lacks)}; the scheduler waits for that until {until}"
        help_ = f"See that driver {result.driver} runs; it reports in status.devices of the claim."
        return ClaimProblem("DevicesNotReady", text, (because,), help_)
    return None


def _held(world: World, claim: str) -> Held:
    namespace, _, name = claim.partition("/")
    found = world.snapshot.get(CLAIMS, Key(namespace, name))
    if found is None:
        return Held()
    holdings = world.holdings((found,))
    users = tuple(each.name for each in found.status.reserved_for)
    return Held(tuple(str(each.device) for each in holdings), users)


def _problem(world: World, found: Pod, unusable: ClaimsNotReady) -> ClaimProblem:
    """Return which claim is not usable, and what would help."""
    text, (namespace, name) = unusable.message, unusable.claim
    because = (f"ResourceClaim/{unusable.claim}",)
    match unusable.state:
        case ClaimState.NOT_CREATED:
            entry = next(each for each in found.spec.resource_claims if each.name == name)
            return _not_created(world, namespace, entry, text)
        case ClaimState.NOT_FOUND:
            help_ = f"Create claim {name} in namespace {namespace}."
            return ClaimProblem("ClaimMissing", text, because, help_)
        case ClaimState.DELETING:
            help_ = "Wait until it is gone, and let a new one take its place."
            return ClaimProblem("ClaimDeleting", text, because, help_)
        case ClaimState.NOT_OWNED:
            help_ = f"Delete claim {name}, which has the name that this pod's claim would need."
            return ClaimProblem("ClaimOfOther", text, because, help_)


def _not_created(world: World, namespace: str, each: PodClaim, text: str) -> ClaimProblem:
    template = each.resource_claim_template_name or ""
    if world.snapshot.get(TEMPLATES, Key(namespace, template)) is not None:
        help_ = "The claim controller makes it; see that one runs."
        because = (f"ResourceClaimTemplate/{namespace}/{template}",)
        return ClaimProblem("ClaimNotCreated", text, because, help_)
    missing = f"there is no ResourceClaimTemplate {template} in namespace {namespace}"
    return ClaimProblem("TemplateMissing", f"{text}; {missing}", (), f"Create template {template}.")
