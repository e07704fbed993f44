"""Whether rules contain others, and how what is missing is described."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.rbac.test_rules import QUESTIONS, RULES, rule
from sully.api.rbac.coverage import compacted, described, missing
from sully.api.rbac.rules import Rights

Obj = dict[str, Any]
METRICS = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


@dataclass(frozen=True)
class Case:
    owned: tuple[Obj, ...]
    expected: Obj
    want: tuple[str, ...] = ()


CASES = {
    "the same": Case((rule("get", "core", "pods"),), rule("get", "core", "pods")),
    "less verbs": Case((rule("get list", "core", "pods"),), rule("get", "core", "pods")),
    "everything": Case((rule("*", "*", "*"),), rule("get", "apps", "deployments/scale", "a")),
    "spread over rules": Case(
        (rule("get", "core", "pods"), rule("list", "core", "pods")),
        rule("get list", "core", "pods"),
    ),
    "nothing": Case(
        (), rule("get", "core", "pods"), ('{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',)
    ),
    "one verb more": Case(
        (rule("get", "core", "pods"),),
        rule("get list watch", "core", "pods"),
        ('{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}',),
    ),
    "a star is not all that exists": Case(
        (rule("get list watch", "core", "pods"),),
        rule("*", "core", "pods"),
        ('{APIGroups:[""], Resources:["pods"], Verbs:["*"]}',),
    ),
    "a name of all": Case((rule("get", "core", "pods"),), rule("get", "core", "pods", "a")),
    "all of a name": Case(
        (rule("get", "core", "pods", "a"),),
        rule("get", "core", "pods"),
        ('{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',),
    ),
    "another name": Case(
        (rule("get", "core", "pods", "a"),),
        rule("get", "core", "pods", "a b"),
        ('{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}',),
    ),
    "a subresource of all": Case((rule("get", "*", "*/scale"),), rule("get", "apps", "x/scale")),
    "a path": Case((METRICS,), METRICS),
    "a path under a star": Case(({"nonResourceURLs": ["/m*"], "verbs": ["*"]},), METRICS),
    "no path": Case(
        (rule("*", "*", "*"),), METRICS, ('{NonResourceURLs:["/metrics"], Verbs:["get"]}',)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_missing(case: Case) -> None:
    assert described(missing(case.owned, [case.expected])) == list(case.want)


def test_descriptions_are_sorted_and_stated_once() -> None:
    rules = [rule("get", "core", "secrets"), rule("get", "core", "pods")] * 2

    assert described(rules) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    ]


def test_compacting_leaves_its_input_alone() -> None:
    first = rule("get", "core", "pods")

    compacted([first, rule("list", "core", "pods")])

    assert first == rule("get", "core", "pods")


@given(st.lists(RULES, max_size=3), RULES, QUESTIONS)
def test_who_lacks_nothing_can_do_all_of_it(owned: list[Obj], expected: Obj, asked: Any) -> None:
    if not missing(owned, [expected]):
        assert Rights(owned).grant(asked) >= Rights([expected]).grant(asked)
