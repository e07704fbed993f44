"""No test fails because the machine is busy: examples may take as long as they take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings

from architecture.project import files, short

PROFILE = "tests/suite_plugin.py"
"""The one place that may say how long an example takes."""


def test_the_profile_has_no_limit_on_time() -> None:
    assert settings.get_current_profile_name() == "suite"
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_nobody_sets_a_deadline() -> None:
    assert [
        f"{short(path)}:{call.lineno}"
        for path, call in _settings()
        for keyword in call.keywords
        if keyword.arg == "deadline"
    ] == []


def test_whoever_lists_health_checks_lists_the_timed_one() -> None:
    """Such a list replaces that of the profile."""
    assert [
        f"{short(path)}:{call.lineno}"
        for path, call in _settings()
        for keyword in call.keywords
        if keyword.arg == "suppress_health_check"
        and not {"too_slow", "list"} & set(_names(keyword.value))
    ] == []


def _settings() -> Iterator[tuple[Path, ast.Call]]:
    """Go through all calls that change settings of Hypothesis, but for the profile."""
    for path in files(".py"):
        if "hypothesis" not in (text := path.read_text()) or short(path) == PROFILE:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and {"settings", "register_profile"} & set(
                _names(node.func)
            ):
                yield path, node


def _names(node: ast.AST) -> list[str]:
    return [
        each.attr if isinstance(each, ast.Attribute) else each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute | ast.Name)
    ]
