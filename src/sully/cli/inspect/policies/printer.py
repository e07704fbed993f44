"""The output of `sully policies`: rows of a table, and documents for programs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sully.api.resource.annotations import creator_of
from sully.api.sully.types import DeviceTaintPolicy
from sully.cli.output.formatting import age, until
from sully.cli.output.printers import time_text, without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.devicepolicies.status import PROBLEM, encode
from sully.domain.devicepolicies.suppression import SUPPRESSED
from sully.machinery.meta import find_condition, is_condition_true

_COLUMNS = (
    Column("NAME", shrinks=2, least=16),
    Column("MODE"),
    Column("TAINT", shrinks=1, least=16),
    Column("DEVICES", right=True),
    Column("FAULTY", right=True),
    Column("UNAVAILABLE", right=True),
    Column("STATE", shrinks=1, least=12),
    Column("NEXT"),
)
_WIDE_COLUMNS = (Column("STEPS", shrinks=1), Column("CREATED BY"), Column("AGE"))
_NONE = "-"


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(policy: DeviceTaintPolicy, now: datetime, *, wide: bool) -> Sequence[Cell | str]:
    spec, status = policy.spec, policy.status
    taint = taint_text(policy)
    next_ = status.next_action_time
    cells: list[Cell | str] = [
        policy.metadata.name,
        spec.mode,
        taint,
        str(status.selected),
        Cell(str(status.faulty), "yellow" if status.faulty else ""),
        Cell(str(status.unavailable), "red" if status.unavailable else ""),
        _state(policy),
        until(next_, now) if next_ is not None else _NONE,
    ]
    if wide:
        author = creator_of(policy.metadata.annotations) or _NONE
        cells += [steps_text(policy), author, age(policy.metadata.creation_timestamp, now)]
    return cells


def taint_text(policy: DeviceTaintPolicy) -> str:
    """Return the taint that a policy sets; one that only suppresses sets none."""
    taint = policy.spec.taint
    if taint is None:
        return _NONE
    return f"{taint.key}={taint.value}" if taint.value else taint.key


def _state(policy: DeviceTaintPolicy) -> Cell | str:
    """Return what needs attention first."""
    status = policy.status
    if not status.observed_generation:
        return Cell("not processed yet", "yellow")
    if status.storm_since is not None:
        return Cell("storm", "red")
    if is_condition_true(status.conditions, PROBLEM):
        return Cell("source problem", "yellow")
    waiting = ("AwaitingApproval", "AwaitingProof", "Flapping", "HeldBack")
    texts = [f"{status.phases[phase]} {phase}" for phase in waiting if status.phases.get(phase)]
    suppressed = find_condition(status.conditions, SUPPRESSED)
    if status.suppressed:
        texts.append(f"{status.suppressed} Suppressed")
    elif suppressed is not None and suppressed.reason == "NotSupported":
        texts.append("cannot suppress")
    return Cell(", ".join(texts), "yellow") if texts else "ok"


def steps_text(policy: DeviceTaintPolicy) -> str:
    """Return the effects of a policy, and how long a fault has lasted before each."""
    return ", ".join(f"{step.after or '0s'} {step.effect}" for step in policy.spec.steps)


def document(policy: DeviceTaintPolicy) -> dict[str, Any]:
    status = policy.status
    return without_empty(
        name=policy.metadata.name,
        mode=policy.spec.mode,
        createdBy=creator_of(policy.metadata.annotations),
        selected=status.selected,
        faulty=status.faulty,
        unavailable=status.unavailable,
        suppressed=status.suppressed or None,
        phases=dict(status.phases),
        nextActionTime=time_text(status.next_action_time),
        stormSince=time_text(status.storm_since),
        devices=[encode(device) for device in status.devices],
    )
