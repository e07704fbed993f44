"""Everything in a placement that its schema accepts and scheduling does not."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from sully.api.cluster.selectors import expression_problem, selector_problem
from sully.api.cluster.types import BUILT_INS
from sully.machinery.fields import Path
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]
Problem = tuple[Path, str]

MOST_EXPRESSIONS = 64
"""How many are compiled while the author waits; only the first are reported."""
_MODES = ("", "Additive", "Exact")
_OPERATORS = ("", "Equal", "Exists")


def placement_problems(spec: Obj) -> Iterator[str]:
    """Yield what will not work, with its field path; every part of a spec may be absent."""
    at = Path("spec")
    problems = chain(
        _number(spec, at),
        _predicates(spec, at),
        _expressions(spec, at),
        _policy(spec.get("prioritizerPolicy") or {}, at.child("prioritizerPolicy")),
        _tolerations(spec, at),
        _groups(spec, at),
        _without_effect(spec, at),
    )
    for path, problem in problems:
        yield f"{path}: {problem}"


def _number(spec: Obj, at: Path) -> Iterator[Problem]:
    if spec.get("numberOfClusters", 0) < 0:
        yield at.child("numberOfClusters"), "a negative number selects no cluster"


def _predicates(spec: Obj, at: Path) -> Iterator[Problem]:
    for selector, here in _required(spec, at):
        yield from _selectors(selector, here)


def _expressions(spec: Obj, at: Path) -> Iterator[Problem]:
    written = (
        (here.child("celSelector", "celExpressions").index(number), expression)
        for selector, here in _required(spec, at)
        for number, expression in enumerate(
            (selector.get("celSelector") or {}).get("celExpressions") or ()
        )
    )
    for path, expression in islice(written, MOST_EXPRESSIONS):
        if problem := expression_problem(expression):
            yield path, problem


def _required(spec: Obj, at: Path) -> Iterator[tuple[Obj, Path]]:
    for index, predicate in enumerate(spec.get("predicates") or ()):
        here = at.child("predicates").index(index).child("requiredClusterSelector")
        yield predicate.get("requiredClusterSelector") or {}, here


def _selectors(selector: Obj, at: Path) -> Iterator[Problem]:
    for part in ("labelSelector", "claimSelector"):
        problem = selector_problem(selector.get(part) or {})
        if problem:
            yield at.child(part), problem


def _policy(policy: Obj, at: Path) -> Iterator[Problem]:
    mode = policy.get("mode", "")
    if mode not in _MODES:
        yield at.child("mode"), f"incorrect prioritizer policy mode: {mode}"
    for index, config in enumerate(policy.get("configurations") or ()):
        coordinate = config.get("scoreCoordinate") or {}
        here = at.child("configurations").index(index).child("scoreCoordinate")
        built_in = coordinate.get("builtIn", "")
        if coordinate.get("type") == "AddOn":
            if "addOn" not in coordinate:
                yield here.child("addOn"), "addOn should not be empty"
        elif built_in not in BUILT_INS:
            names = ", ".join(BUILT_INS)
            yield here.child("builtIn"), f"incorrect builtin prioritizer: {built_in} (not {names})"


def _tolerations(spec: Obj, at: Path) -> Iterator[Problem]:
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        here = at.child("tolerations").index(index)
        operator = toleration.get("operator", "")
        if not toleration.get("key") and operator != "Exists":
            yield here, "If the key is empty, operator must be Exists."
        if operator == "Exists" and toleration.get("value"):
            yield here, "If the operator is Exists, the value should be empty."
        if operator not in _OPERATORS:
            yield here.child("operator"), f"{quote(operator)} is unknown and tolerates nothing"
        if toleration.get("tolerationSeconds", 1) <= 0:
            yield here.child("tolerationSeconds"), "tolerates nothing: the time is over immediately"


def _groups(spec: Obj, at: Path) -> Iterator[Problem]:
    strategy = (spec.get("decisionStrategy") or {}).get("groupStrategy") or {}
    here = at.child("decisionStrategy", "groupStrategy")
    size = strategy.get("clustersPerDecisionGroup", 0)
    if isinstance(size, int) and size < 0:
        yield here.child("clustersPerDecisionGroup"), "a negative number makes one group of all"
    for index, group in enumerate(strategy.get("decisionGroups") or ()):
        path = here.child("decisionGroups").index(index).child("groupClusterSelector")
        yield from _selectors(group.get("groupClusterSelector") or {}, path)


def _without_effect(spec: Obj, at: Path) -> Iterator[Problem]:
    if (spec.get("spreadPolicy") or {}).get("spreadConstraints"):
        yield at.child("spreadPolicy"), "stored, but clusters are not spread by it"
    if spec.get("sortBy") == "Score":
        yield at.child("sortBy"), "stored, but decisions stay in order of name"
