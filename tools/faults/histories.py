"""Whether the history of one object is linearizable.

Revisions give the writes of an object a total order, so a search is not needed: a history is
linearizable if the revisions agree with the order of requests in time, each update follows the
revision that it was made from, and every value was written once. Requests whose result is unknown
may have been done or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Outcome = Literal["ok", "conflict", "unknown"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of a client, with the times of its begin and end."""

    kind: Literal["read", "write"]
    begun: float
    ended: float
    value: int
    """What was read or written."""
    revision: int = 0
    """Of the response; 0 without one."""
    expect: int = 0
    """The revision that a write is made from; 0: any."""
    outcome: Outcome = "ok"


def violations(operations: Sequence[Operation], states: Mapping[int, int]) -> Iterator[str]:
    """Yield what no linearizable object does.

    `states` are the values by revision that a watch reported, from before the first operation.
    """
    yield from _values(operations, states)
    yield from _time_order(operations)
    yield from _updates(operations, states)


def _values(operations: Sequence[Operation], states: Mapping[int, int]) -> Iterator[str]:
    written = {op.value for op in operations if op.kind == "write"}
    first = min(states)
    for op in operations:
        if op.outcome == "ok" and states.get(op.revision) != op.value:
            yield f"{op} is not what the watch reported: {states.get(op.revision)}"
    values = [value for _, value in sorted(states.items())]
    for revision, value in states.items():
        if revision != first and value not in written:
            yield f"revision {revision} has the value {value}, which no client wrote"
    for one in set(values):
        if values.count(one) > 1:
            yield f"the value {one} was written {values.count(one)} times"


def _time_order(operations: Sequence[Operation]) -> Iterator[str]:
    """Check that no result is older than one that was known before the request."""
    done = [op for op in operations if op.outcome == "ok"]
    ends = sorted(done, key=lambda op: op.ended)
    newest, at = 0, 0
    for op in sorted(done, key=lambda op: op.begun):
        while ends[at].ended < op.begun:
            newest = max(newest, ends[at].revision)
            at += 1
        if op.revision < newest or (op.kind == "write" and op.revision == newest):
            yield f"{op} began after revision {newest} was known"


def _updates(operations: Sequence[Operation], states: Mapping[int, int]) -> Iterator[str]:
    """Check that conditional updates are done if, and only if, nobody was first."""
    before = {two: one for one, two in pairwise(sorted(states))}
    for op in operations:
        if not op.expect:
            continue
        if op.outcome == "ok" and before.get(op.revision) != op.expect:
            yield f"{op} was made from {op.expect} but follows {before.get(op.revision)}"
        if op.outcome == "conflict" and not any(revision > op.expect for revision in states):
            yield f"{op} was refused, but its revision is the newest"
