"""What belongs to a question about a pod; of one without a node, waiting.py finds it out."""

from __future__ import annotations

from collections.abc import Iterator

from sully.api.sully.types import EvictionRecord
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.eviction.judge import KEEP
from sully.domain.explaining.evicted import explain_evicted
from sully.domain.explaining.podfacts import BudgetFact, PodFacts
from sully.domain.explaining.pods import explain_pod
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.waiting import explain_waiting
from sully.domain.planning.objects import PlannedPod
from sully.domain.workloads.workloads import selector_of
from sully.explaining.kinds import BUDGETS, SEEN_PODS
from sully.explaining.waiting import waiting
from sully.explaining.world import World
from sully.scheduler.claim_resolution import claim_keys
from sully.views.snapshot.kinds import NODES


def pod(world: World, key: Key) -> Explanation | None:
    """Explain a pod, also one that was evicted; None if nobody knows it."""
    found = world.snapshot.get(SEEN_PODS, key)
    if found is None:
        records = world.evictions(lambda each: (each.spec.pod.namespace, each.spec.pod.name) == key)
        return explain_evicted(records, world.sources, world.now) if records else None
    on_its_way = found.metadata.deletion_timestamp is not None
    if found.spec.node_name or found.finished or on_its_way:
        return explain_pod(_bound(world, found))
    return explain_waiting(waiting(world, found, _before(world, found)))


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
        before=_before(world, found),
        unheld=tuple(str(each) for each in claim_keys(found) if each not in mine),
        verdict=world.exposures.judge(user) if user is not None else KEEP,
        stranded=_is_stranded(world, found),
        blind=world.blind,
        budgets=tuple(_budgets(world, found)),
        pausable=world.snapshot.remembers,
        terms=world.snapshot.terms,
    )


def _is_stranded(world: World, found: PlannedPod) -> bool:
    """Say whether the node of a pod does not exist; not, where nodes cannot be seen."""
    node = Key("", found.spec.node_name)
    return world.snapshot.gap(NODES) is None and world.snapshot.get(NODES, node) is None


def _before(world: World, found: PlannedPod) -> tuple[EvictionRecord, ...]:
    """Return the evictions of pods of the same owner, or of the same name where nobody owns it."""
    owner, metadata = found.owner, found.metadata

    def preceded(each: EvictionRecord) -> bool:
        pod = each.spec.pod
        if pod.namespace != metadata.namespace or pod.uid == metadata.uid:
            return False
        made = metadata.creation_timestamp
        # Times of pods are in whole seconds.
        if made is not None and each.spec.evicted_time.replace(microsecond=0) > made:
            return False
        if owner is None or pod.owner is None:
            return owner is None and pod.owner is None and pod.name == metadata.name
        return (pod.owner.kind, pod.owner.name) == (owner.kind, owner.name)

    return world.evictions(preceded)


def _budgets(world: World, found: PlannedPod) -> Iterator[BudgetFact]:
    budgets = world.snapshot.of(BUDGETS)
    for key in sorted(budgets.keys()):
        each = budgets.get(key)
        here = each is not None and key.namespace == found.metadata.namespace
        if each is not None and here and selector_of(each).matches(found.metadata.labels):
            yield BudgetFact(str(key), each.status.disruptions_allowed)
