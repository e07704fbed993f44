"""Tests pass parameters: a patch misses whoever imported the constant by name before."""

import re

from architecture.project import ROOT, short

CONSTANT = re.compile(r'monkeypatch\.setattr\([^()]*?["\'](?:[\w.]+\.)?([A-Z][A-Z_]+)["\']')


def test_no_constant_is_patched() -> None:
    assert [
        f"{short(path)}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in CONSTANT.findall(path.read_text())
    ] == []


def test_patched_constants_are_found() -> None:
    patch = "monkeypatch.setattr({}, 1)"

    assert CONSTANT.findall(patch.format('limits, "OPEN_MAX"')) == ["OPEN_MAX"]
    assert CONSTANT.findall(patch.format('"sully.limits.OPEN_MAX"')) == ["OPEN_MAX"]
    assert CONSTANT.findall(patch.format('sys, "argv"')) == []
