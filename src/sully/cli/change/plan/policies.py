"""`sully plan -f` of DeviceTaintPolicies: what would they do to today's devices?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sully.cli.change.plan.manifests import Manifest
from sully.cli.change.plan.proposals import proposed
from sully.cli.change.plan.results import exit_code, show
from sully.cli.change.plan.simulation import make_plan
from sully.cli.change.plan.snapshots import take_with_nodes
from sully.cli.client.options import TABLES
from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.formatting import until
from sully.cli.output.tables import Column, Table
from sully.domain.planning.report import document
from sully.machinery.formats.plurals import number_of
from sully.planning.dryrun.changes import Put
from sully.views.kinds import DEVICE_HEALTH, DEVICE_POLICIES

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan
    from sully.planning.device_policies import PolicyForecast
    from sully.planning.dryrun.changes import Change
    from sully.views.snapshot.snapshot import Snapshot

_PROBLEMS = 3
"""How many devices that cannot be evaluated are listed."""


async def plan_policies(session: Session, manifests: Sequence[Manifest]) -> int:
    """Show what policies would do, and what the rules that they would create would do then."""
    from sully.planning.device_policies import forecast, rule_changes

    if session.options.delete:
        raise CommandError("--delete cannot be used with policies", code=2)
    snapshot = await take_with_nodes(session, DEVICE_POLICIES, DEVICE_HEALTH)
    puts = await proposed(session, snapshot, manifests)
    forecasts = [forecast(put.obj, snapshot) for put in puts if isinstance(put, Put)]
    changes: list[Change] = [x for one in forecasts for x in rule_changes(one, snapshot)]
    plan: Plan | None = make_plan(session, snapshot, changes) if changes else None
    if session.options.output in TABLES:
        for one in forecasts:
            _show(one, snapshot)
        if plan is not None:
            print("If the faults last until the last step:")
            show(plan, session.options.output)
    else:
        from sully.cli.output.printers import print_document

        policies = [_document(one) for one in forecasts]
        rest = {"plan": document(plan)} if plan is not None else {}
        print_document({"policies": policies, **rest}, session.options.output)
    return exit_code(plan) if plan is not None else 0


def _show(planned: "PolicyForecast", snapshot: "Snapshot") -> None:

    policy, states = planned.policy, planned.states
    faulty = number_of(sum(state.since is not None for state in states.values()), "fault")
    print(
        f"Policy {policy.metadata.name} ({policy.spec.mode}):"
        f" {number_of(planned.selected, 'device')} selected, {faulty}."
    )
    if policy.spec.mode == "DryRun" and (states or planned.suppressed):
        print("Its mode is DryRun: it would only report the following.")
    _show_suppressed(planned)
    for device in sorted(planned.problems)[:_PROBLEMS]:
        print(f"Cannot be evaluated: {device}: {planned.problems[device]}")
    if len(planned.problems) > _PROBLEMS:
        print(f"Cannot be evaluated: {len(planned.problems) - _PROBLEMS} more.")
    if not states:
        return
    table = Table(
        (
            Column("DEVICE", shrinks=2, least=20),
            Column("PHASE"),
            Column("STEPS", shrinks=1, least=20),
            Column("REASON", shrinks=1, least=20),
        )
    )
    rows = []
    for device, state in sorted(states.items()):
        steps = planned.steps.get(device, ())
        text = ", ".join(f"{step.effect} {until(step.at, snapshot.taken)}" for step in steps)
        rows.append((device, state.phase, text or state.effect or "-", state.message))
    table.show(rows)


def _show_suppressed(planned: "PolicyForecast") -> None:
    from sully.domain.devicepolicies.suppression import UNSUPPORTED

    if planned.policy.spec.suppress and not planned.suppresses:
        print(f"It would suppress nothing here: {UNSUPPORTED}.")
        return
    for device, suppressed in sorted(planned.suppressed.items()):
        texts = ", ".join(sorted({str(one.taint) for one in suppressed}))
        print(f"Suppressed on {device}: {texts} would have no effect.")


def _document(planned: "PolicyForecast") -> dict[str, Any]:
    from sully.cli.output.printers import time_text, without_empty
    from sully.domain.devicepolicies.status import encode

    return without_empty(
        name=planned.policy.metadata.name,
        mode=planned.policy.spec.mode,
        selected=planned.selected,
        problems=planned.problems,
        suppressed={
            device: [str(one.taint) for one in suppressed]
            for device, suppressed in sorted(planned.suppressed.items())
        },
        suppresses=planned.suppresses if planned.policy.spec.suppress else None,
        devices=[
            {
                **encode(state),
                "steps": [
                    {"effect": step.effect, "time": time_text(step.at)}
                    for step in planned.steps.get(device, ())
                ],
            }
            for device, state in sorted(planned.states.items())
        ],
    )
