"""How many pods rules have evicted, from the records of evictions.

A TaintRecord has the count of one rule, and is written up to a second late.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sully.cli.client.session import Session
from sully.client.transport import Key
from sully.domain.eviction.status import evicted_count
from sully.machinery.errors import Forbidden, NotFound
from sully.views.kinds import PARTIAL_EVICTION_RECORDS, TAINT_RECORDS
from sully.views.snapshot.loading import list_all

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule

RecordedCounts = Mapping[str, int] | None
"""By the uids of rules; None: there are no records, or they may not be read."""
FEW = 3
"""Up to this many objects are read one by one, more as a list."""


async def recorded_counts(session: Session, rules: "Sequence[DeviceTaintRule]") -> RecordedCounts:
    """Read the counts of rules from their TaintRecords; a rule without one has evicted no pod."""
    from sully.domain.eviction.records import taint_record_name

    try:
        if len(rules) > FEW:
            records = await list_all(session.transport, TAINT_RECORDS)
            return {record.spec.rule.uid: record.status.evicted for record in records}
        counts = {}
        for rule in rules:
            name = taint_record_name(rule.metadata.name, rule.metadata.uid)
            try:
                record = await session.transport.get(TAINT_RECORDS, Key("", name))
            except NotFound:
                continue
            counts[rule.metadata.uid] = record.status.evicted
        return counts
    except (Forbidden, NotFound):
        return None


async def count_records(
    session: Session, counts: Mapping[str, int], pods: "Iterable[Key]"
) -> Mapping[str, int]:
    """Return counts that are at least the EvictionRecords in the namespaces of pods."""

    recorded = Counter[str]()
    for namespace in sorted({pod.namespace for pod in pods}):
        try:
            records = await list_all(session.transport, PARTIAL_EVICTION_RECORDS, namespace)
        except (Forbidden, NotFound):
            return counts
        recorded.update(cause.uid for record in records for cause in record.rules())
    return Counter(counts) | recorded


def evicted_total(rules: "Iterable[DeviceTaintRule]", counts: RecordedCounts) -> int:
    """Return how many pods rules have evicted, as far as that is known."""

    recorded = counts or {}
    return sum(
        evicted_count(
            rule.status.conditions,
            recorded.get(rule.metadata.uid, 0),
            has_records=counts is not None,
        ).count
        for rule in rules
    )
