"""Tests create objects with the shared builders, not with copies of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from architecture.project import ROOT, short

TESTS = ROOT / "tests"
SHARED = (ROOT / "src/sully/testing/builders.py", TESTS / "manifests.py")
NOT_KINDS = frozenset(("body", "equal", "exists", "stored", "text"))
"""Builders with names that helpers for other things have, too."""
EXCEPTIONS = {
    "tests/fleets.py": "the shared builders of placements and their decisions",
    "tests/clients/test_lightkube.py": "objects of another library",
}


def _builders() -> Iterator[str]:
    for path in SHARED:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield node.name


BUILDERS = frozenset(_builders()) - NOT_KINDS
NAMES = frozenset(name.strip("_") for name in BUILDERS)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield functions, also those in functions, but no methods and no fixtures."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node
        if not isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _names(call: ast.Call) -> tuple[str, str]:
    """Return the module and the name of a called function."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module, name
        case ast.Name(id=name):
            return "", name
    return "", ""


def is_copy(function: ast.FunctionDef) -> bool:
    """Report whether a function writes metadata and calls no builder."""
    if function.name.strip("_") not in NAMES:
        return False
    nodes = tuple(ast.walk(function))
    calls = {_names(node) for node in nodes if isinstance(node, ast.Call)}
    if any(
        module in ("builders", "manifests") or (name in BUILDERS and name != function.name)
        for module, name in calls
    ):
        return False
    keys = (key for node in nodes if isinstance(node, ast.Dict) for key in node.keys)
    return any(name.endswith(("Meta", "Metadata")) for _, name in calls) or any(
        isinstance(key, ast.Constant) and key.value == "metadata" for key in keys
    )


def copies(source: str) -> list[str]:
    """Return the functions that have the name of a builder and do its work."""
    return [function.name for function in _functions(ast.parse(source)) if is_copy(function)]


def test_no_test_has_a_builder_of_its_own() -> None:
    """Call a shared builder, and add an argument to it if it has to vary something more."""
    assert [
        f"{short(path)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        if path not in SHARED and short(path) not in EXCEPTIONS
        for name in copies(path.read_text())
    ] == []


def test_copies_are_found() -> None:
    assert copies('def pod(name):\n    return {"metadata": {"name": name}}') == ["pod"]
    assert copies("def _rule():\n    return DeviceTaintRule(metadata=ObjectMeta())") == ["_rule"]
    assert copies('def pod(n):\n    return manifests.pod(n, **{"metadata": 1})') == []
    assert copies('def pod(n):\n    return pod_as(Pod, **{"metadata": 1})') == []
    assert copies('def labels(pod):\n    return pod["metadata"]["labels"]') == []
