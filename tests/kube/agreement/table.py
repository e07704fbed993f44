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
    return [each for each in tried if not each.unfinished]


def _row(each: Tried) -> tuple[str, ...]:
    agreement = each.agreement
    workloads = "; ".join(map(str, each.world.workloads))
    devices = "+".join(map(str, each.world.pools))
    return (
        "open" if each.unfinished else "ok" if agreement.right else "WRONG",
        f"{each.world.name} {devices}",
        str(each.change),
        *_cells(agreement.plan),
        *_cells(agreement.reality, again=each.evictions - len(agreement.reality.evicted)),
        workloads,
    )


def _cells(outcome: Outcome, again: int = 0) -> tuple[str, ...]:
    evicted = str(len(outcome.evicted))
    if outcome.churn:
        return (evicted, "-", "-", f"yes, {again}" if again else "yes")
    churn = "may" if outcome.may_churn else "no"
    return (evicted, str(outcome.total(RUNNING)), str(outcome.total(PENDING)), churn)


def _summary(tried: Sequence[Tried]) -> Iterable[str]:
    churned = [each for each in tried if each.agreement.reality.churn]
    calm = [each for each in tried if not each.agreement.reality.churn]
    storms = [each for each in tried if not each.settled]
    effective = [each for each in tried if each.agreement.has_effect]
    parts = {
        "outcome right": [each.agreement.right for each in tried],
        "of changes that evict or schedule pods": [each.agreement.right for each in effective],
        "evicted pods right": [each.agreement.evicted for each in tried],
        "rescheduled and pending right": [each.agreement.rescheduled for each in tried],
        "repeated evictions predicted": [each.agreement.plan.churn for each in churned],
        "repeated evictions predicted, or shown as possible": [
            each.agreement.plan.churn or each.agreement.plan.may_churn for each in churned
        ],
        "no repeated evictions, none predicted": [not each.agreement.plan.churn for each in calm],
        "storms (of these, predicted)": [each.agreement.plan.churn for each in storms],
        "storms (of these, in the headline)": [each.agreement.plan.loops for each in storms],
        "headlines (of these, with repeated evictions)": [
            each.agreement.reality.churn for each in tried if each.agreement.plan.loops
        ],
    }
    for name, flags in parts.items():
        share = f" ({100 * sum(flags) / len(flags):.0f} %)" if flags else ""
        yield f"{name}: {sum(flags)} of {len(flags)}{share}"


def percent_right(tried: Sequence[Tried]) -> float:
    """Return the share of changes with the planned outcome."""
    waited = finished(tried)
    return 100 * sum(each.agreement.right for each in waited) / len(waited)


def read_floor(path: Path, server: str) -> float:
    """Return the least share, in percent, for a kind of server."""
    lines = (line.partition("#")[0].split() for line in path.read_text().splitlines())
    return next(float(words[1]) for words in lines if words and words[0] == server)
