"""The output of `sully policies` about ClusterTaintPolicies: rows of a table, and documents."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.api.sully.conditions import APPLIED
from sully.api.sully.types import ClusterTaintPolicy
from sully.cli.output.formatting import age
from sully.cli.output.printers import without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.clusters.policy_status import FLAPPING, count_clusters
from sully.domain.devicepolicies.status import HELD
from sully.machinery.meta import find_condition
from sully.views.fleet_kinds import CLUSTERS

if TYPE_CHECKING:
    from sully.views.snapshot.snapshot import Snapshot

_COLUMNS = (
    Column("CLUSTER POLICY", shrinks=2, least=16),
    Column("TAINT", shrinks=1, least=16),
    Column("CLUSTERS", right=True),
    Column("TAINTED", right=True),
    Column("STATE", shrinks=1, least=12),
)
_WIDE_COLUMNS = (Column("CONDITIONS", shrinks=1), Column("AGE"))


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(policy: ClusterTaintPolicy, snapshot: "Snapshot", *, wide: bool) -> Sequence[Cell | str]:
    selected, tainted = count_clusters(policy, snapshot.of(CLUSTERS).values())
    cells: list[Cell | str] = [
        policy.metadata.name,
        ", ".join(_taints(policy)),
        str(selected),
        Cell(str(tainted), "red" if tainted else ""),
        _state(policy),
    ]
    if wide:
        cells += [
            ", ".join(_conditions(policy)),
            age(policy.metadata.creation_timestamp, snapshot.taken),
        ]
    return cells


def _taints(policy: ClusterTaintPolicy) -> list[str]:
    taints = (rule.taint for rule in policy.spec.rules)
    texts = (
        f"{taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"{taint.key}:{taint.effect}"
        for taint in taints
    )
    return list(dict.fromkeys(texts))


def _conditions(policy: ClusterTaintPolicy) -> list[str]:
    conditions = (rule.condition for rule in policy.spec.rules)
    return [f"{one.type}={'|'.join((one.status, *one.or_statuses))}" for one in conditions]


def _state(policy: ClusterTaintPolicy) -> Cell | str:
    """Return what needs attention first."""
    conditions = policy.status.conditions
    applied = find_condition(conditions, APPLIED)
    if applied is None:
        return Cell("not processed yet", "yellow")
    if applied.reason in ("NoSelector", "InvalidSelector"):
        return Cell("selects no cluster", "yellow")
    texts = [
        text
        for type_, text in ((HELD, "held back"), (FLAPPING, "flapping"))
        if (condition := find_condition(conditions, type_)) is not None
        and condition.status == "True"
    ]
    return Cell(", ".join(texts), "yellow") if texts else "ok"


def document(policy: ClusterTaintPolicy, snapshot: "Snapshot") -> dict[str, Any]:
    selected, tainted = count_clusters(policy, snapshot.of(CLUSTERS).values())
    waiting = {
        type_.partition("/")[2]: condition.message
        for type_ in (HELD, FLAPPING)
        if (condition := find_condition(policy.status.conditions, type_)) is not None
        and condition.status == "True"
    }
    return {
        "name": policy.metadata.name,
        "taints": _taints(policy),
        "selected": selected,
        "tainted": tainted,
        **without_empty(waiting=waiting),
    }
