"""pytest leaves out folders by name; none of ours may have such a name."""

import pytest

from architecture.project import ROOT


def test_no_folder_of_tests_is_left_out(pytestconfig: pytest.Config) -> None:
    left_out = set(pytestconfig.getini("norecursedirs"))
    folders = {path.parent.name for path in (ROOT / "tests").rglob("test_*.py")}

    assert not folders & left_out
