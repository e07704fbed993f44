"""Why a pod has no node: its own wishes, its claims, the nodes, or the devices.

What is told first is what must change first: a gate before claims, claims before nodes, nodes
before devices (refusals.py). A pod that has a node is in pods.py.
"""

from __future__ import annotations

from typing import Final

from sully.domain.explaining.refusals import explain_account, explain_blocked, explain_nodes
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.waitingfacts import SCHEDULED, WaitingFacts, story, waits
from sully.domain.explaining.wording import ended, listed, number
from sully.domain.scheduling.messages import in_filter

_IN_FILTER: Final = in_filter("")
_ERROR_HELP: Final = {
    "currently being updated": "Wait until the driver has written the whole pool.",
    "currently invalid": "The driver has to publish the pool without contradictions.",
    "exceeds the claim limit": "Ask for fewer devices, or spread them over several claims.",
    "claim constraint would not": "Relax the constraint, or ask for a number of devices, not all.",
    "CEL runtime error": "Guard the attribute with has() in that selector.",
    "CEL compile error": "Correct the expression of that selector.",
}
"""What helps against an error, by a part of its text."""


def explain_waiting(facts: WaitingFacts) -> Explanation:
    """Say why a pod waits for a node."""
    return (
        _own(facts)
        or _claims(facts)
        or _tried(facts)
        or explain_account(facts, facts.told)
        or _unknown(facts)
    )


def _own(facts: WaitingFacts) -> Explanation | None:
    """Tell of what the pod itself asks for that keeps every scheduler, or ours, off it."""
    spec = facts.pod.spec
    if not facts.pod.asks_for():
        text = f"{waits(facts)}, and only scheduler {spec.scheduler_name} may give it one."
        help_ = f"Run scheduler {spec.scheduler_name}, or leave spec.schedulerName out."
        return story(facts, "OtherScheduler", text, help_=(help_,))
    if spec.scheduling_gates:
        names = [str(each.get("name", "")) for each in spec.scheduling_gates]
        text = f"{waits(facts)} because of {number(len(names), 'scheduling gate')}:"
        help_ = "Whoever set the gate takes it away when the pod may start."
        return story(facts, "Gated", f"{text} {listed(names)}.", help_=(help_,))
    if facts.constraint:
        text = f"{waits(facts)}: the scheduler here does not evaluate {facts.constraint}."
        help_ = f"Leave {facts.constraint} out, or have another scheduler place the pod."
        return story(facts, "NotEvaluated", text, help_=(help_,))
    return None


def _claims(facts: WaitingFacts) -> Explanation | None:
    problem = facts.problem
    if problem is None:
        return None
    help_ = (problem.remedy,) if problem.remedy else ()
    return story(
        facts,
        problem.cause,
        f"{waits(facts)}: {problem.text}.",
        because=problem.because,
        help_=help_,
    )


def _tried(facts: WaitingFacts) -> Explanation | None:
    found = facts.attempt
    if found is None:
        return None
    if found.unresolved:
        known = f": {listed(found.classes)}" if found.classes else ""
        help_ = f"Create the class, or name one that exists{known}."
        return story(facts, "ClassMissing", f"{waits(facts)}: {found.unresolved}.", help_=(help_,))
    if found.error:
        # Which plugin of a scheduler met the error is no news to who wrote the claim.
        error = found.error.removeprefix(_IN_FILTER)
        text = f"{waits(facts)}: {ended(error)}"
        return story(facts, "AttemptFails", text, help_=(_error_help(error),))
    if not found.nodes:
        text = f"{waits(facts)}, and there is no node at all."
        return story(facts, "NoNodes", text, help_=("Add a node.",))
    if found.node:
        text = f"{waits(facts)}, though it would fit on node {found.node} now."
        help_ = "The scheduler has not looked at it since; see that one runs."
        return story(facts, "NotScheduledYet", text, help_=(help_,))
    return (
        explain_blocked(facts, found.account)
        or explain_nodes(facts, found)
        or explain_account(facts, found.account)
    )


def _error_help(error: str) -> str:
    for part, help_ in _ERROR_HELP.items():
        if part in error:
            return help_
    return "Correct what the error names."


def _unknown(facts: WaitingFacts) -> Explanation:
    told = facts.pod.condition(SCHEDULED)
    if told is None or not told.message:
        text = f"{waits(facts)}, and no scheduler has looked at it."
        return story(facts, "NotScheduledYet", text, help_=("See that a scheduler runs.",))
    text = f"{waits(facts)}. The scheduler says: {ended(told.message)}"
    return story(facts, told.reason or "Unschedulable", text)
