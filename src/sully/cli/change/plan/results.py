"""Prints plans, and returns the exit codes for what they are about."""

from typing import TYPE_CHECKING

from sully.cli.client.options import TABLES

if TYPE_CHECKING:
    from sully.domain.planning.report import Plan
    from sully.views.snapshot.snapshot import Snapshot

EXIT_UNSCHEDULABLE = 3
"""The exit code when something would be unschedulable."""
EXIT_EVICTION_LOOP = 4
"""The exit code when pods would be evicted again and again."""


def exit_code(plan: "Plan") -> int:
    """Return the exit code for what a plan is about."""
    if plan.eviction_loops:
        return EXIT_EVICTION_LOOP
    return EXIT_UNSCHEDULABLE if plan.has_unscheduled else 0


def unknown_effects(snapshot: "Snapshot", plan: "Plan") -> str:
    """Return what is not known because a kind is missing; a review must not pass then."""
    from sully.domain.planning.report import ReplacementOutcome
    from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS
    from sully.views.snapshot.kinds import NODES

    outcomes = {eviction.replacement.outcome for eviction in plan.caused}
    # A pod without a controller is not replaced, whatever nodes and classes there are.
    replaced = ReplacementOutcome.NOT_REPLACED not in outcomes
    pending = ReplacementOutcome.PENDING in outcomes and replaced
    evicted, rescheduled = "which pods would be evicted", "where pods would be rescheduled"
    needed = (
        (bool(plan.devices), CLAIMS, evicted),
        (bool(plan.claims), CONSUMER_PODS, evicted),
        (pending, NODES, rescheduled),
        (pending, CLASSES, rescheduled),
    )
    for matters, kind, what in needed:
        gap = snapshot.gap(kind) if matters else None
        if gap is not None:
            others = " of other namespaces" if gap.only_namespace else ""
            return f"warning: {what} is not known without {kind.plural}{others}"
    return ""


def show(plan: "Plan", output: str) -> None:
    if output in TABLES:
        from sully.cli.change.plan.printer import show_plan

        show_plan(plan, wide=output == "wide")
        return
    from sully.cli.output.printers import print_document
    from sully.domain.planning.report import document

    print_document(document(plan), output)
