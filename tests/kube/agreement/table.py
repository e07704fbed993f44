"""The agreement of plans with reality as a table, and the floor it is held to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kube.agreement.outcomes import PENDING, RUNNING, Outcome
from kube.agreement.trial import Tried

_HEAD = ("", "WORLD", "CHANGE", "PLAN: EVICTED", "RUN", "PEND", "AGAIN")
_MORE = ("REAL: EVICTED", "RUN", "PEND", "AGAIN", "WORKLOADS")


def table(tried: Sequence[Tried]) -> str:
    """Return a line for each change, and how many plans were right."""
    rows = [(*_HEAD, *_MORE), *map(_row, tried)]
    waited = finished(tried)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    left_out = len(tried) - len(waited)
    more = [f"left out, because a Job waits for minutes: {left_out}"] if left_out else []
    return "\n".join([*lines, "", *_summary(waited), *more])


def finished(tried: Iterable[Tried]) -> list[Tried]:
    """Return the changes whose outcome was awaited."""
    return [item for item in tried if not item.unfinished]


def _row(entry: Tried) -> tuple[str, ...]:
    agreement = entry.agreement
    workloads = "; ".join(map(str, entry.world.workloads))
    devices = "+".join(map(str, entry.world.pools))
    return (
        "open" if entry.unfinished else "ok" if agreement.right else "WRONG",
        f"{entry.world.name} {devices}",
        str(entry.change),
        *_cells(agreement.plan),
        *_cells(agreement.reality, again=entry.evictions - len(agreement.reality.evicted)),
        workloads,
    )


def _cells(outcome: Outcome, again: int = 0) -> tuple[str, ...]:
    evicted = str(len(outcome.evicted))
    if outcome.churn:
        return (evicted, "-", "-", f"yes, {again}" if again else "yes")
    churn = "may" if outcome.may_churn else "no"
    return (evicted, str(outcome.total(RUNNING)), str(outcome.total(PENDING)), churn)


def _summary(tried: Sequence[Tried]) -> Iterable[str]:
    churned = [item for item in tried if item.agreement.reality.churn]
    calm = [item for item in tried if not item.agreement.reality.churn]
    storms = [item for item in tried if not item.settled]
    effective = [item for item in tried if item.agreement.has_effect]
    parts = {
        "outcome right": [item.agreement.right for item in tried],
        "of changes that evict or schedule pods": [item.agreement.right for item in effective],
        "evicted pods right": [item.agreement.evicted for item in tried],
        "rescheduled and pending right": [item.agreement.rescheduled for item in tried],
        "repeated evictions predicted": [item.agreement.plan.churn for item in churned],
        "repeated evictions predicted, or shown as possible": [
            item.agreement.plan.churn or item.agreement.plan.may_churn for item in churned
        ],
        "no repeated evictions, none predicted": [not item.agreement.plan.churn for item in calm],
        "storms (of these, predicted)": [storm.agreement.plan.churn for storm in storms],
        "storms (of these, in the headline)": [storm.agreement.plan.loops for storm in storms],
        "headlines (of these, with repeated evictions)": [
            item.agreement.reality.churn for item in tried if item.agreement.plan.loops
        ],
    }
    for name, flags in parts.items():
        share = f" ({100 * sum(flags) / len(flags):.0f} %)" if flags else ""
        yield f"{name}: {sum(flags)} of {len(flags)}{share}"


def percent_right(tried: Sequence[Tried]) -> float:
    """Return the share of changes with the planned outcome."""
    waited = finished(tried)
    return 100 * sum(item.agreement.right for item in waited) / len(waited)


def read_floor(path: Path, server: str) -> float:
    """Return the least share, in percent, for a kind of server."""
    lines = (line.partition("#")[0].split() for line in path.read_text().splitlines())
    return next(float(arguments[1]) for arguments in lines if arguments and arguments[0] == server)
