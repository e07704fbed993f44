"""Field tables: their language, and what cannot be reported in it."""

import pytest

from sully.machinery.schema import (
    Field,
    Limits,
    ListOf,
    MapOf,
    ObjectType,
    Scalar,
    TableError,
    Tables,
)

TABLE = """
# A comment.
Rule: A rule
      that goes on.
  metadata meta.Metadata: What every rule has.
  parts []Part map(key,name) merge(name) required: Parts
      of it.
  tags []string set: Tags.
  list [][]int64 atomic: Nested.
  index {}Part: By name.
  mode string default="x" go(v1.Mode) emit: Mode.
  limits {}Quantity retainKeys null ptr: Limits.
  swap Part replace: Swapped.

Part atomic: A part.
  key string: Its key.
  self Rule: And back.
"""


def tables() -> Tables:
    made = Tables()
    made.load("io.meta", "meta", "Metadata: Shared.\n  name string: Name.\n")
    made.load("io.rules", "rules", TABLE)
    return made


def test_types_and_flags() -> None:
    rule = tables().get("io.rules", "Rule")
    part = tables().get("io.rules", "Part")
    fields = rule.fields

    assert (rule.full_name, rule.doc, rule.atomic) == (
        "io.rules.Rule",
        "A rule that goes on.",
        False,
    )
    assert part.atomic
    assert fields["parts"].doc == "Parts of it."
    assert fields["list"] == Field(
        "list", ListOf(ListOf(Scalar("int64"))), "Nested.", list_type="atomic"
    )
    assert fields["tags"] == Field("tags", ListOf(Scalar("string")), "Tags.", list_type="set")
    assert fields["mode"] == Field(
        "mode", Scalar("string"), "Mode.", emit=True, default='"x"', go_type="v1.Mode"
    )
    assert fields["limits"] == Field(
        "limits", MapOf(Scalar("Quantity")), "Limits.", null=True, ptr=True, retain_keys=True
    )
    assert (fields["swap"].replace, fields["limits"].replace) == (True, False)


def test_limits() -> None:
    text = """
pattern word: ^[a-z]
      [0-9:]*$
Rule: A rule.
  name string minLength(1) maxLength(8) pattern(word): Name.
  size int32 min(-1) max(10) nullable: Size.
  parts []string maxItems(3): Parts.
"""
    fields = rule_of(text).fields

    assert fields["name"].limits == Limits(pattern="^[a-z][0-9:]*$", min_length=1, max_length=8)
    assert fields["size"].limits == Limits(minimum=-1, maximum=10)
    assert fields["size"].nullable
    assert fields["parts"].limits == Limits(max_items=3)


def test_lists_of_objects_know_their_keys() -> None:
    parts = tables().get("io.rules", "Rule").fields["parts"]

    assert (parts.list_type, parts.map_keys) == ("map", ("key", "name"))
    assert (parts.merge, parts.merge_key, parts.required) == (True, "name", True)


def test_references_are_the_same_type() -> None:
    made = tables()
    rule, part = made.get("io.rules", "Rule"), made.get("io.rules", "Part")

    assert rule.fields["index"].type == MapOf(part)
    assert part.fields["self"].type is rule
    assert rule.fields["metadata"].type is made.get("io.meta", "Metadata")
    assert [kind.name for kind in made.types("io.rules")] == ["Rule", "Part"]


def test_a_type_read_again_replaces_the_earlier() -> None:
    made = tables()
    made.load("io.rules", "rules", "Part: Another.\n  other string: Other.\n")

    assert list(made.get("io.rules", "Part").fields) == ["other"]


def test_fields_can_be_left_out() -> None:
    made = tables()
    made.leave_out({"Rule": ("tags", "mode"), "Nowhere": ("x",)})

    rule = made.get("io.rules", "Rule")
    assert rule.order == ("metadata", "parts", "list", "index", "limits", "swap")
    assert list(rule.fields) == sorted(rule.order)


def rule_of(text: str) -> ObjectType:
    made = Tables()
    made.load("io.x", "x", text)
    return made.get("io.x", "Rule")


REFUSALS = {
    "a line that is nothing": ("Rule: R.\n   x y z\n", "line 2 is neither a type nor a field"),
    "an unknown flag": ("Rule: R.\n  a string loud: A.\n", "unknown flag 'loud'"),
    "an unknown pattern": ("Rule: R.\n  a string pattern(x): A.\n", "no pattern x"),
    "an unknown type": ("Rule: R.\n  a Nothing: A.\n", "no type Nothing in package io.x"),
}


@pytest.mark.parametrize(("text", "problem"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(text: str, problem: str) -> None:
    with pytest.raises(TableError, match=problem):
        rule_of(text)
