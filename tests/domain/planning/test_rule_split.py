"""The rules that replace one when some of its devices lose their taint."""

from __future__ import annotations

from typing import Any

import manifests
from sully.domain.planning.rules.selectors import RuleSelector
from sully.domain.planning.rules.split import split_rule

Obj = dict[str, Any]
TAINT = {"key": "k", "effect": "NoExecute", "timeAdded": "2030-01-01T12:00:00Z"}
ONE = RuleSelector(driver="d", pool="p", device="x", node="n")
OTHER = RuleSelector(driver="d", pool="q", node="m")


def wide(**metadata: Any) -> Obj:
    return manifests.rule("wide", selector={"driver": "d"}, taint=TAINT, **metadata)


def test_the_taint_keeps_its_time_and_the_rules_belong_together() -> None:
    rules = split_rule(wide(), [ONE, OTHER], ())

    assert [rule["metadata"]["name"] for rule in rules] == ["wide-n-x", "wide-m"]
    assert [rule["spec"]["deviceSelector"] for rule in rules] == [
        {"driver": "d", "pool": "p", "device": "x"},
        {"driver": "d", "pool": "q"},
    ]
    assert all(rule["spec"]["taint"] == TAINT for rule in rules)
    assert {rule["metadata"]["labels"]["sully.dev/taint"] for rule in rules} == {"wide"}


def test_labels_and_annotations_are_kept_except_who_created_it() -> None:
    annotations = {"sully.dev/expires-at": "t", "sully.dev/created-by": "alice"}

    (rule,) = split_rule(
        wide(annotations=annotations, labels={"sully.dev/taint": "fw", "a": "b"}), [ONE], ()
    )

    assert rule["metadata"]["annotations"] == {"sully.dev/expires-at": "t"}
    assert rule["metadata"]["labels"] == {"sully.dev/taint": "fw", "a": "b"}


def test_a_name_that_exists_is_not_used() -> None:
    (rule,) = split_rule(wide(), [ONE], {"wide-n-x"})

    assert rule["metadata"]["name"] == "wide-n-x-split"
