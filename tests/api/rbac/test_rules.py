"""What rules grant: a table, and that rules only add up."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.rbac.rules import Rights, path_covers, resource_access

Obj = dict[str, Any]


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Obj:
    return {
        "verbs": verbs.split(),
        "apiGroups": ["" if text == "core" else text for text in groups.split()],
        "resources": resources.split(),
        "resourceNames": names.split(),
    }


READ_PODS = rule("get list", "core", "pods")


@dataclass(frozen=True)
class Case:
    rule: Obj
    verb: str = "get"
    group: str = ""
    resource: str = "pods"
    subresource: str = ""
    name: str = ""
    want: bool = True


CASES = {
    "verb and resource": Case(READ_PODS),
    "another verb": Case(READ_PODS, verb="delete", want=False),
    "another group": Case(READ_PODS, group="apps", want=False),
    "another resource": Case(READ_PODS, resource="secrets", want=False),
    "a subresource is not its resource": Case(READ_PODS, subresource="log", want=False),
    "all verbs": Case(rule("*", "core", "pods"), verb="escalate"),
    "all groups": Case(rule("get", "*", "pods"), group="metrics.k8s.io"),
    "all resources": Case(rule("get", "core", "*"), resource="secrets"),
    "all resources, with subresources": Case(rule("get", "core", "*"), subresource="log"),
    "everything": Case(rule("*", "*", "*"), verb="x", group="y", resource="z", subresource="w"),
    "a subresource": Case(rule("get", "core", "pods/log"), subresource="log"),
    "another subresource": Case(rule("get", "core", "pods/log"), subresource="exec", want=False),
    "the resource of a subresource": Case(rule("get", "core", "pods/log"), want=False),
    "a subresource of all": Case(rule("get", "*", "*/scale"), subresource="scale", group="apps"),
    "a subresource of all, and a resource": Case(rule("get", "*", "*/scale"), want=False),
    "all subresources of one are not written so": Case(
        rule("get", "core", "pods/*"), subresource="log", want=False
    ),
    "a name": Case(rule("get", "core", "pods", "a b"), name="b"),
    "another name": Case(rule("get", "core", "pods", "a b"), name="c", want=False),
    "no name where names count": Case(rule("list", "core", "pods", "a"), verb="list", want=False),
    "no verbs": Case(rule("", "core", "pods"), want=False),
    "a prefix is not a name": Case(rule("get", "core", "pod"), want=False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_grant(case: Case) -> None:
    asked = resource_access(case.verb, case.group, case.resource, case.subresource, case.name)

    assert Rights([case.rule]).grant(asked) is case.want


def test_a_rule_on_resources_grants_no_path() -> None:
    assert not Rights([rule("*", "*", "*")]).grant_path("get", "/metrics")


PATHS = {
    ("/metrics", "/metrics"): True,
    ("/metrics", "/metrics/slis"): False,
    ("/metrics/*", "/metrics/slis"): True,
    ("/metrics/*", "/metrics"): False,
    ("/metrics*", "/metrics"): True,
    ("/api*", "/apis/apps"): True,
    ("*", "/anything"): True,
    ("/a/*/b", "/a/x/b"): False,
}


@pytest.mark.parametrize(("pair", "want"), PATHS.items())
def test_paths(pair: tuple[str, str], want: bool) -> None:
    assert path_covers(*pair) is want


def test_a_path_needs_its_verb() -> None:
    rights = Rights([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])

    assert rights.grant_path("get", "/metrics")
    assert not rights.grant_path("post", "/metrics")


VERBS = st.sampled_from(("get", "list", "delete", "*"))
GROUPS = st.sampled_from(("", "apps", "*"))
RESOURCES = st.sampled_from(("pods", "secrets", "pods/log", "*/log", "*"))
NAMES = st.sampled_from(("a", "b"))


def some(values: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(values, min_size=1, max_size=2)


RULES = st.fixed_dictionaries(
    {"verbs": some(VERBS), "apiGroups": some(GROUPS), "resources": some(RESOURCES)},
    optional={"resourceNames": some(NAMES)},
)
QUESTIONS = st.builds(
    resource_access,
    st.sampled_from(("get", "list", "delete")),
    st.sampled_from(("", "apps")),
    st.sampled_from(("pods", "secrets")),
    st.sampled_from(("", "log")),
    st.sampled_from(("", "a", "b")),
)


@given(st.lists(RULES, max_size=4), RULES, QUESTIONS)
def test_another_rule_never_takes_a_right_away(rules: list[Obj], more: Obj, asked: Any) -> None:
    before = Rights(rules).grant(asked)

    assert Rights([*rules, more]).grant(asked) >= before


@given(st.lists(RULES, max_size=4), QUESTIONS)
def test_together_rules_grant_what_one_of_them_does(rules: list[Obj], asked: Any) -> None:
    alone = any(Rights([rule]).grant(asked) for rule in rules)

    assert Rights(rules).grant(asked) == alone
