"""Every decision of `Compat` is one that users can read about, and the reverse."""

import ast
import itertools
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from sully.machinery import compat
from sully.machinery.compat import Compat

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
DECISIONS = list(Compat.__struct_fields__)


def test_the_page_names_every_decision() -> None:
    switches = re.findall(
        r"`--compat reference`(?: ignores)?: ((?:`\w+`(?:, )?)+)", PAGE.read_text()
    )
    named = {name for switch in switches for name in re.findall(r"\w+", switch)}
    assert named == set(DECISIONS)


def test_every_decision_shows_what_it_decides() -> None:
    assert compat.__file__ is not None
    tree = ast.parse(Path(compat.__file__).read_text())
    (body,) = (item.body for item in tree.body if isinstance(item, ast.ClassDef))
    described = [
        field.target.id
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
    ]
    assert described == DECISIONS


@pytest.mark.parametrize("name", DECISIONS)
def test_the_two_modes_differ_in_every_decision(name: str) -> None:
    assert getattr(Compat.SULLY, name) is True
    assert getattr(Compat.KUBERNETES, name) is False


def test_flags_name_the_modes() -> None:
    assert Compat.named("reference") is Compat.KUBERNETES
    assert Compat.named("sully") is Compat.SULLY


def test_one_decision_can_differ() -> None:
    mixed = replace(Compat.KUBERNETES, limits_tolerations=True)
    assert [name for name in DECISIONS if getattr(mixed, name)] == ["limits_tolerations"]
