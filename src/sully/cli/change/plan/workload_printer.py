"""The output of `sully plan -f` for workloads."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sully.cli.change.plan.outcomes import MOST_NAMES
from sully.cli.change.plan.reasons import reasons
from sully.cli.client.options import TABLES
from sully.cli.output.printers import print_document, time_text, without_empty
from sully.cli.output.tables import Cell, Column, Row, Table
from sully.machinery.formats.plurals import number_of
from sully.planning.workloads import FittedPod, WorkloadFit

_COLUMNS = (
    Column("WORKLOAD", shrinks=2),
    Column("PODS", right=True),
    Column("SCHEDULED", right=True),
    Column("PENDING", right=True),
    Column("NODES", shrinks=1),
)
_POD_COLUMNS = (Column("POD", shrinks=2), Column("NODE", shrinks=1), Column("DEVICES", shrinks=1))


def show_fit(workloads: Sequence[WorkloadFit], output: str) -> None:
    if output not in TABLES:
        print_document(document(workloads), output)
        return
    for line in _headline(workloads):
        print(line)
    print()
    Table(_COLUMNS).show(_row(workload) for workload in workloads)
    reasons = [line for workload in workloads for line in _reasons(workload)]
    if reasons:
        print()
        print("\n".join(reasons))
    if output == "wide":
        print()
        Table(_POD_COLUMNS).show(
            _pod_row(workload, pod) for workload in workloads for pod in workload.pods
        )


def _headline(workloads: Sequence[WorkloadFit]) -> Iterator[str]:
    pods = [pod for workload in workloads for pod in workload.pods]
    scheduled = sum(bool(pod.node) for pod in pods)
    if scheduled == len(pods):
        yield f"{number_of(len(pods), 'pod')} would be scheduled."
    else:
        waiting = len(pods) - scheduled
        verb = "stays" if waiting == 1 else "stay"
        total = number_of(len(pods), "pod")
        yield f"{scheduled} of {total} would be scheduled, {waiting} {verb} Pending."
    if evicted := sum(pod.evicted is not None for pod in pods):
        yield f"{number_of(evicted, 'pod')} would be evicted from there because of taints."
    if replaced := sum(workload.replaced for workload in workloads):
        yield f"They replace {number_of(replaced, 'existing pod')} of the same workloads."


def _title(workload: WorkloadFit) -> str:
    return f"{workload.kind} {workload.key}"


def _row(workload: WorkloadFit) -> Row:
    waiting = len(workload.pods) - workload.scheduled
    return [
        _title(workload),
        str(len(workload.pods)),
        str(workload.scheduled),
        Cell(str(waiting), "red" if waiting else ""),
        _nodes(workload),
    ]


def _nodes(workload: WorkloadFit) -> str:
    """Return the nodes with their number of pods; where several fit, some of which it may be."""
    candidates = dict.fromkeys(x for pod in workload.pods for x in pod.candidates.names)
    counts = Counter(pod.node for pod in workload.pods if pod.node)
    if len(candidates) > len(counts):
        names = list(candidates)
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f"some of {', '.join(names[:MOST_NAMES])}{more}"
    return ", ".join(f"{node} ({count})" for node, count in sorted(counts.items())) or "-"


def _reasons(workload: WorkloadFit) -> Iterator[str]:
    waiting = (pod for pod in workload.pods if not pod.node)
    causes = Counter(reasons(pod.message, pod.diagnosis, MOST_NAMES) for pod in waiting)
    for (message, *requests), count in causes.most_common():
        verb = "stays" if count == 1 else "stay"
        yield f"{number_of(count, 'pod')} of {_title(workload)} {verb} Pending: {message}"
        yield from requests


def _pod_row(workload: WorkloadFit, pod: FittedPod) -> Row:
    name = f"{workload.key.namespace}/{pod.name}"
    if not pod.node:
        return [name, Cell("Pending", "red"), "-"]
    evicted = Cell(f"{pod.node} (evicted)", "red")
    return [name, evicted if pod.evicted else pod.node, ", ".join(pod.devices) or "-"]


def document(workloads: Sequence[WorkloadFit]) -> dict[str, Any]:
    """Return the plan as a plain value; the fields are promised to scripts."""
    pods = [pod for workload in workloads for pod in workload.pods]
    return {
        "kind": "WorkloadPlan",
        "pods": len(pods),
        "scheduled": sum(bool(pod.node) for pod in pods),
        "pending": sum(not pod.node for pod in pods),
        "workloads": [
            {
                "kind": workload.kind,
                "namespace": workload.key.namespace,
                "name": workload.key.name,
                "replacedPods": workload.replaced,
                "pods": [_pod_document(pod) for pod in workload.pods],
            }
            for workload in workloads
        ],
    }


def _pod_document(pod: FittedPod) -> dict[str, Any]:
    several = pod.candidates.count > 1
    return without_empty(
        name=pod.name,
        node=pod.node,
        candidates=list(pod.candidates.names) if several else [],
        candidateCount=pod.candidates.count if several else None,
        devices=list(pod.devices),
        evictionTime=time_text(pod.evicted),
        message=pod.message,
    )
