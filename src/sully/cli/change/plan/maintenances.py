"""`sully plan -f` of DeviceMaintenances: which devices, in which order, and which pods?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.drain.users import data_loss_text
from sully.cli.change.plan.manifests import Manifest
from sully.cli.change.plan.proposals import proposed
from sully.cli.change.plan.results import EXIT_UNSCHEDULABLE
from sully.cli.change.plan.simulation import simulation_options
from sully.cli.change.plan.snapshots import take_with_nodes
from sully.cli.client.options import TABLES
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.formatting import until
from sully.cli.output.spinner import spinner
from sully.cli.output.tables import Column, Table
from sully.domain.planning.report import document
from sully.machinery.formats.plurals import number_of
from sully.planning.dryrun.changes import Put
from sully.views.kinds import MAINTENANCES

if TYPE_CHECKING:
    from datetime import datetime

    from sully.api.sully.types import DeviceMaintenance
    from sully.domain.planning.report import Plan
    from sully.planning.maintenances import MaintenanceForecast, PlannedUnit
    from sully.views.snapshot.snapshot import Snapshot

_MOST = 20
"""How many units are listed."""


async def plan_maintenances(session: Session, manifests: Sequence[Manifest]) -> int:
    """Show what maintenances would do."""

    if session.options.delete:
        raise CommandError("--delete cannot be used with maintenances", code=2)
    snapshot = await maintenance_snapshot(session)
    puts = await proposed(session, snapshot, manifests)
    codes = [show_forecast(session, put.obj, snapshot) for put in puts if isinstance(put, Put)]
    return max(codes, default=0)


async def maintenance_snapshot(session: Session) -> "Snapshot":

    return await take_with_nodes(session, MAINTENANCES)


def show_forecast(session: Session, maintenance: "DeviceMaintenance", snapshot: "Snapshot") -> int:
    """Print what a maintenance would do; return the exit code of a plan."""
    from sully.planning.maintenances import forecast

    planned = forecast(maintenance, snapshot)
    plans = _plans(session, planned, snapshot)
    if session.options.output in TABLES:
        _show(planned, plans, snapshot.taken)
        if losing := [pod for unit in planned.units for pod in unit.losing_data]:
            session.warn(f"warning: {data_loss_text(losing)}")
    else:
        from sully.cli.output.printers import print_document

        print_document(_document(planned, plans), session.options.output)
    blocked = any(unit.obstacle for unit in planned.units)
    incomplete = any(plan.has_unscheduled or plan.blocked_evictions for plan in plans)
    return EXIT_UNSCHEDULABLE if blocked or incomplete else 0


def _plans(session: Session, planned: "MaintenanceForecast", snapshot: "Snapshot") -> "list[Plan]":
    """Simulate the drain of the first batches, each from the cluster as it is."""
    from sully.planning.maintenances import MAX_BATCHES, batch_changes, drain_request
    from sully.planning.plan_builder import build_plan, gap_notes, no_effect_texts
    from sully.planning.simulation.simulator import Simulation

    plans: list[Plan] = []
    with spinner(lambda: f"Planning: {number_of(len(plans), 'step')} so far"):
        for batch in planned.batches[:MAX_BATCHES]:
            changes = batch_changes(planned.maintenance, batch, snapshot.taken)
            simulation = Simulation(snapshot, simulation_options(session))
            simulation.run(changes, drain_request(planned.maintenance, batch))
            texts = no_effect_texts(snapshot, changes)
            plans.append(build_plan(simulation, gap_notes(snapshot), texts))
    return plans


def _show(planned: "MaintenanceForecast", plans: "list[Plan]", now: "datetime") -> None:

    print(_summary(planned, now))
    for device in sorted(planned.problems)[:3]:
        print(f"Cannot be evaluated: {device}: {planned.problems[device]}")
    if not planned.units:
        return
    columns = (
        Column("BATCH", right=True),
        Column("UNIT", shrinks=2, least=20),
        Column("DEVICES", right=True),
        Column("PODS", right=True),
        Column("EFFECT", shrinks=1, least=20),
    )
    rows = [
        (str(index), unit.name, str(len(unit.devices)), str(len(unit.pods)), effect)
        for index, batch in enumerate(planned.batches, 1)
        for unit, effect in _effects(batch, plans[index - 1] if index <= len(plans) else None)
    ]
    Table(columns).show(rows[:_MOST])
    if len(rows) > _MOST:
        print(f"and {len(rows) - _MOST} more")


def _summary(planned: "MaintenanceForecast", now: "datetime") -> str:
    name, spec = planned.maintenance.metadata.name, planned.maintenance.spec
    if not planned.units:
        return f"Maintenance {name}: its selector matches no device."
    size = len(planned.batches[0])
    end = f", ends {until(planned.ends_at, now)}" if planned.ends_at is not None else ""
    return (
        f"Maintenance {name}: {number_of(len(planned.devices), 'device')},"
        f" {size} of {number_of(len(planned.units), 'unit')} at a time.\n"
        f"Closes the first {until(planned.closes_at, now)}, starts {until(spec.start, now)}{end}."
        " No pod is evicted before the start."
    )


def _effects(
    batch: "tuple[PlannedUnit, ...]", plan: "Plan | None"
) -> "list[tuple[PlannedUnit, str]]":
    """Return what happens to the pods of each unit of a batch."""
    if plan is None:
        return [(unit, unit.obstacle or "not simulated") for unit in batch]
    blocked = {f"{pod.namespace}/{pod.name}": pod.message for pod in plan.blocked_evictions}
    pending = {f"{pod.namespace}/{pod.name}" for pod in plan.not_rescheduled}
    return [(unit, unit.obstacle or _effect(unit, blocked, pending)) for unit in batch]


def _effect(unit: "PlannedUnit", blocked: dict[str, str], pending: set[str]) -> str:
    if not unit.pods:
        return "idle"
    if stuck := [pod for pod in unit.pods if pod in blocked]:
        return f"{stuck[0]} would not be evicted: {blocked[stuck[0]]}"
    if waiting := [pod for pod in unit.pods if pod in pending]:
        return f"the replacement of {waiting[0]} would stay Pending"
    return "all would be rescheduled"


def _document(planned: "MaintenanceForecast", plans: "list[Plan]") -> dict[str, Any]:
    from sully.cli.output.printers import time_text, without_empty

    return without_empty(
        name=planned.maintenance.metadata.name,
        closesAt=time_text(planned.closes_at),
        endsAt=time_text(planned.ends_at),
        problems=planned.problems,
        batches=[
            [
                without_empty(
                    name=unit.name,
                    devices=list(unit.devices),
                    pods=list(unit.pods),
                    obstacle=unit.obstacle,
                )
                for unit in batch
            ]
            for batch in planned.batches
        ],
        plans=[document(plan) for plan in plans],
    )
