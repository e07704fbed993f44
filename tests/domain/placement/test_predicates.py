"""Labels, claims and expressions: which clusters qualify (checklist S15, S16)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from fleets import expression, labelled, predicate, score
from sully.api.cluster.types import ClusterPredicate, LabelSelector
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.predicates import (
    Mismatch,
    compile_predicates,
    mismatches,
    qualifies,
)
from sully.domain.placement.results.status import MisconfiguredError
from sully.machinery.cel import COST_BUDGET, Spending
from sully.testing.builders import cluster

EUROPE = Candidate(
    cluster(
        "eu",
        labels={"region": "eu", "tier": "1", "version": "1.30.1"},
        claims={"platform": "aws", "zones": "a"},
    ),
    {"demo": score("eu", "demo", cpu=70)},
)
AMERICA = Candidate(
    cluster("us", labels={"region": "us"}, claims={"platform": "gcp"}, amounts={"cpu": 8})
)
LABELS = "managedCluster.metadata.labels"


@dataclass(frozen=True)
class Case:
    predicates: tuple[ClusterPredicate, ...] = ()
    want: str = ""


AWS = (expression("platform", "In", "aws"),)
CASES = {
    "none": Case(want="eu us"),
    "an empty one": Case((predicate(),), "eu us"),
    "S15 label": Case((predicate(labels=labelled(region="eu")),), "eu"),
    "S15 claim": Case((predicate(claims=AWS),), "eu"),
    "S15 claim absent": Case((predicate(claims=(expression("zones", "DoesNotExist"),)),), "us"),
    "S15 claim not in": Case((predicate(claims=(expression("platform", "NotIn", "aws"),)),), "us"),
    "S15 label and claim": Case((predicate(labels=labelled(region="us"), claims=AWS),), ""),
    "S15 several are alternatives": Case(
        (predicate(labels=labelled(region="us")), predicate(claims=AWS)), "eu us"
    ),
    "S15 CEL on labels": Case((predicate(f'{LABELS}["region"] == "eu"'),), "eu"),
    "S15 CEL on claims": Case(
        (
            predicate(
                'managedCluster.status.clusterClaims.exists(c, c.name == "platform" '
                '&& c.value == "gcp")'
            ),
        ),
        "us",
    ),
    "S15 CEL on scores": Case(
        (
            predicate(
                'managedCluster.scores("demo").filter(s, s.name == "cpu").all(e, e.value > 50)'
            ),
        ),
        "eu",
    ),
    "S15 several CEL must all hold": Case(
        (predicate(f'{LABELS}["region"] == "eu"', f'{LABELS}["tier"] == "2"'),), ""
    ),
    "S15 CEL and label": Case(
        (predicate(f'{LABELS}["region"].size() == 2', labels=labelled(region="us")),), "us"
    ),
    "S15 no expression at all": Case((predicate(labels=LabelSelector()),), "eu us"),
    "S15 CEL on what the schema fills in": Case(
        (predicate("managedCluster.spec.leaseDurationSeconds == 60"),), "eu us"
    ),
    "no cluster has a kind, nor a version of the API": Case(
        (predicate("has(managedCluster.kind) || has(managedCluster.apiVersion)"),), ""
    ),
    "S15 CEL on an amount that was sent as a number": Case(
        (predicate('quantity(managedCluster.status.capacity.cpu).isGreaterThan(quantity("7"))'),),
        "us",
    ),
    "a key that is missing does not match": Case((predicate(f'{LABELS}["tier"] == "1"'),), "eu"),
    "what is not a boolean does not match": Case((predicate('"true"'),), ""),
    "versions": Case(
        (predicate(f'semver({LABELS}["version"]).isGreaterThan(semver("1.29.0"))'),), "eu"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_qualifies(case: Case) -> None:
    compiled = compile_predicates(case.predicates)

    got = [one.name for one in (EUROPE, AMERICA) if qualifies(compiled, one, Spending(COST_BUDGET))]

    assert got == case.want.split()


@pytest.mark.parametrize(("budget", "want"), [(15, False), (10_000, True)])
def test_budget_of_all_expressions(budget: int, want: bool) -> None:
    """S16: three expressions that are true, and too dear for fifteen units."""
    newer = f'semver({LABELS}["version"]).isGreaterThan(semver("1.{{}}.0"))'
    (compiled,) = compile_predicates([predicate(*(newer.format(minor) for minor in range(3)))])

    assert replace(compiled, budget=budget).matches(EUROPE, Spending(COST_BUDGET)) is want


def label(key: str, operator: str, *values: str) -> ClusterPredicate:
    return predicate(labels=LabelSelector(match_expressions=(expression(key, operator, *values),)))


VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
WRONG = {
    "an operator of nodes": (
        (label("env", "Gt", "1"),),
        '"Gt" is not a valid label selector operator',
    ),
    "In without values": (
        (label("env", "In"),),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    ),
    "In without values, of no key": (
        (label("a b", "In"),),
        "[key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', "
        "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
        "'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), values: Invalid value: null: for 'in', "
        "'notin' operators, values set can't be empty]",
    ),
    "Exists with values": (
        (label("env", "Exists", "x"),),
        'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
    ),
    "a value that is not a label": (
        (predicate(labels=labelled(env="a b")),),
        f'values[0][env]: Invalid value: "a b": {VALUE_RULE}',
    ),
    "a claim": (
        (predicate(claims=(expression("region", "Like", "e"),)),),
        '"Like" is not a valid label selector operator',
    ),
    "the second, though the first matches": (
        (predicate(), label("env", "Foo")),
        '"Foo" is not a valid label selector operator',
    ),
}


@pytest.mark.parametrize(("predicates", "want"), WRONG.values(), ids=WRONG.keys())
def test_misconfigured(predicates: tuple[ClusterPredicate, ...], want: str) -> None:
    with pytest.raises(MisconfiguredError) as caught:
        compile_predicates(predicates)

    assert (caught.value.status.plugin, caught.value.status.message) == ("Predicate", want)


def test_expression_that_does_not_compile() -> None:
    with pytest.raises(MisconfiguredError) as caught:
        compile_predicates([predicate("managedCluster.metadata.")])

    assert caught.value.status.message.startswith("compilation failed: ")


@dataclass(frozen=True)
class Miss:
    predicates: tuple[ClusterPredicate, ...]
    want: tuple[Mismatch, ...] = field(default=())


MISSES = {
    "none when one matches": Miss((predicate(labels=labelled(region="eu")), predicate())),
    "each reports what": Miss(
        (
            predicate(labels=labelled(region="eu")),
            predicate(claims=AWS),
            predicate("true", "false"),
        ),
        (
            Mismatch(0, "labels", "region=eu"),
            Mismatch(1, "claims", "platform in (aws)"),
            Mismatch(2, "expression", "false"),
        ),
    ),
}


@pytest.mark.parametrize("case", MISSES.values(), ids=MISSES.keys())
def test_mismatches(case: Miss) -> None:
    got = mismatches(compile_predicates(case.predicates), AMERICA, Spending(COST_BUDGET))

    assert got == case.want
