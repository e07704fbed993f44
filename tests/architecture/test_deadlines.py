"""No test fails because the machine is busy: examples may take as long as they take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings

from architecture.project import files, short

PROFILE = "tests/suite_plugin.py"
"""The only function that may set how long an example takes."""
MOMENT = 2.0
"""Seconds: who waits for less looks whether something happened, and continues if not."""
VIRTUAL = "tests/domain/"
"""Where time passes only in the tests."""
MEANT_TO_END = ("tests/kube/control_plane.py", "tests/store/test_etcd.py")
"""Ask again after a request that took too long, or test what happens then."""


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
        item.attr if isinstance(item, ast.Attribute) else item.id
        for item in ast.walk(node)
        if isinstance(item, ast.Attribute | ast.Name)
    ]


def test_whoever_waits_has_patience() -> None:
    """A limit on time is that of `sully.testing.patience`, or so short that it is meant to end."""
    assert [
        f"{short(path)}:{call.lineno}: {seconds} s"
        for path in files(".py")
        if short(path).startswith("tests/")
        and short(path) not in MEANT_TO_END
        and not short(path).startswith(VIRTUAL)
        for call, seconds in _limits(ast.parse(path.read_text()))
        if seconds > MOMENT
    ] == []


def _limits(tree: ast.Module) -> Iterator[tuple[ast.Call, float]]:
    """Go through the limits on time that are numbers: `wait(30)`, `wait(timeout=30)`."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = _names(call.func)[0] if _names(call.func) else ""
        timeouts = call.args[:1] if name in ("timeout", "settimeout", "wait", "join") else []
        timeouts += [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
        for value in timeouts:
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                yield call, value.value
