"""Which clusters a placement may choose from: labels, claims and CEL expressions.

Predicates are alternatives; the parts of one must all hold. They are compiled once per placement
shape, and one that cannot be compiled makes the whole placement unusable. The selectors of
decision groups (results/groups.py) are the same without expressions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from sully.api.cluster.types import ClusterClaimSelector, ClusterPredicate, LabelSelector
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.results.status import MisconfiguredError
from sully.machinery.cel import (
    CompileError,
    CostBudget,
    EvaluationError,
    Program,
    Programs,
    Spending,
)
from sully.machinery.cel.environments.clusters import (
    EXPRESSION_LIMIT,
    SELECTOR_LIMIT,
    cluster_environment,
)
from sully.machinery.selectors import labels
from sully.machinery.selectors.labels import Selector

PLUGIN = "Predicate"
Part = Literal["labels", "claims", "expression"]
NO_SPENDING = Spending(0)
"""For predicates without expressions."""


class Mismatch(msgspec.Struct, frozen=True):
    """Why a predicate does not match a cluster: which one, which part of it, and its text."""

    index: int
    part: Part
    text: str
    error: str = ""
    """Why an expression could not be evaluated, which counts as not true."""


class Predicate(msgspec.Struct, frozen=True):
    """One compiled alternative."""

    labels: Selector
    claims: Selector
    programs: tuple[Program, ...] = ()
    budget: int = SELECTOR_LIMIT
    """What all expressions may cost together on one cluster."""

    def matches(self, candidate: Candidate, spending: Spending) -> bool:
        """Report whether a cluster qualifies."""
        return (
            self.labels.matches(candidate.labels)
            and self.claims.matches(candidate.claims)
            and (not self.programs or self._failing(candidate, spending) is None)
        )

    def mismatch(self, candidate: Candidate, index: int, spending: Spending) -> Mismatch | None:
        """Return which part does not match a cluster, if one does not."""
        for part, selector, values in (
            ("labels", self.labels, candidate.labels),
            ("claims", self.claims, candidate.claims),
        ):
            for requirement in selector.requirements:
                if not requirement.matches(values):
                    return Mismatch(
                        index, "labels" if part == "labels" else "claims", str(requirement)
                    )
        failing = self._failing(candidate, spending)
        if failing is None:
            return None
        program, error = failing
        return Mismatch(index, "expression", program.expression, error)

    def _failing(self, candidate: Candidate, spending: Spending) -> tuple[Program, str] | None:
        """Return the first expression that is not true, and why if it cannot be evaluated."""
        left = self.budget
        for program in self.programs:
            limit = min(EXPRESSION_LIMIT, left)
            try:
                value, cost = spending.evaluate(program, candidate.activation(), limit)
            except EvaluationError as error:
                return program, str(error)
            if value is not True:
                return program, ""
            if program.cost > limit or self.budget < SELECTOR_LIMIT:
                left -= cost
        return None


def compile_predicates(predicates: Iterable[ClusterPredicate]) -> tuple[Predicate, ...]:
    """Compile all alternatives; raise MisconfiguredError for the first that is wrong."""
    return tuple(map(_compiled, predicates))


def qualifies(predicates: Sequence[Predicate], candidate: Candidate, spending: Spending) -> bool:
    """Report whether a cluster matches one of the predicates; without any, all clusters do."""
    return not predicates or any(predicate.matches(candidate, spending) for predicate in predicates)


def mismatches(
    predicates: Sequence[Predicate], candidate: Candidate, spending: Spending
) -> tuple[Mismatch, ...]:
    """Return for every predicate why it does not match; nothing if one does."""
    all_mismatches = [
        predicate.mismatch(candidate, at, spending) for at, predicate in enumerate(predicates)
    ]
    if any(mismatch is None for mismatch in all_mismatches):
        return ()
    return tuple(mismatch for mismatch in all_mismatches if mismatch is not None)


def select_labels(selector: LabelSelector, plugin: str = PLUGIN) -> Selector:
    """Compile a label selector; errors name the plugin."""
    try:
        return labels.from_object(msgspec.to_builtins(selector))
    except labels.SelectorError as error:
        raise MisconfiguredError(plugin, str(error)) from None


def select_claims(selector: ClusterClaimSelector, plugin: str = PLUGIN) -> Selector:
    """Compile a claim selector."""
    return select_labels(LabelSelector(match_expressions=selector.match_expressions), plugin)


def _compiled(predicate: ClusterPredicate) -> Predicate:
    selector = predicate.required_cluster_selector
    return Predicate(
        select_labels(selector.label_selector),
        select_claims(selector.claim_selector),
        tuple(map(_program, selector.cel_selector.cel_expressions)),
    )


def _program(expression: str) -> Program:
    program = _programs.compile(expression)
    if isinstance(program, CompileError):
        raise MisconfiguredError(PLUGIN, f"compilation failed: {program}")
    return program


_programs = Programs(cluster_environment)


def compile_expressions(predicates: Iterable[ClusterPredicate], budget: CostBudget) -> None:
    """Compile the expressions of predicates ahead; raise what the budget raises."""
    selectors = (predicate.required_cluster_selector.cel_selector for predicate in predicates)
    _programs.get_all((text for selector in selectors for text in selector.cel_expressions), budget)
