"""What belongs to a question about a claim."""

from __future__ import annotations

from collections.abc import Sequence

from sully.api.resource.claim_types import ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.lifecycle import is_pod
from sully.domain.claims.pods import Pod
from sully.domain.explaining.claims import ClaimFacts, explain_claim
from sully.domain.explaining.story import Explanation
from sully.explaining.kinds import SEEN_PODS
from sully.explaining.pods import pod
from sully.explaining.world import World
from sully.views.kinds import CLAIMS


def claim(world: World, key: Key) -> Explanation | None:
    """Explain a claim; None if nobody knows it."""
    found = world.snapshot.get(CLAIMS, key)
    if found is None:
        return None
    named = world.snapshot.usage.users(key)
    users = [each for each in named if not each.finished and not each.leaving]
    return explain_claim(
        ClaimFacts(
            claim=found,
            now=world.now,
            sources=world.sources,
            holdings=world.holdings((found,)),
            users=tuple(str(key_of(each)) for each in users),
            gone=_gone(world, found),
            blind=world.blind,
            waiting=_first_waiting(world, users) if found.status.allocation is None else None,
            terms=world.snapshot.terms,
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


def _first_waiting(world: World, users: Sequence[Pod]) -> Explanation | None:
    first = next((each for each in users if not each.spec.node_name), None)
    return pod(world, key_of(first)) if first is not None else None
