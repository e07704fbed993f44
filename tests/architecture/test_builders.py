"""Tests create objects with the shared builders, not with copies of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

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


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST, *, decorated: bool = False) -> Iterator[Function]:
    """Yield functions, also those in functions, but no methods; fixtures if `decorated`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function) and (decorated or not node.decorator_list):
            yield node
        if not isinstance(node, ast.ClassDef):
            yield from _functions(node, decorated=decorated)


def _names(call: ast.Call) -> tuple[str, str]:
    """Return the module and the name of a called function."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module, name
        case ast.Name(id=name):
            return "", name
    return "", ""


def is_copy(function: Function) -> bool:
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


PARTS = {
    "the pool of a slice": {"generation", "resourceSliceCount"},
    "the spec of a rule": {"deviceSelector", "taint"},
    "the spec of a pod": {"containers", "resourceClaims"},
    "the spec of a cluster": {"hubAcceptsClient"},
}
"""What builders write, by the fields that show it."""
NO_COPIES = {
    "tests/api/sully/test_records.py": "the spec of a TaintRecord",
    "tests/explain/worlds.py": "the spec of a TaintRecord, and of a pod with containers of its own",
    "tests/planning/building.py": "a pod as informers have it",
}


def _is_request(node: ast.Dict) -> bool:
    """Report whether a dictionary is a request of a claim with a class of its own."""
    return any(
        isinstance(key, ast.Constant) and key.value == "exactly" and isinstance(value, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
    )


def parts(source: str) -> list[str]:
    """Return the helper functions that write a part of an object for which there is a builder."""
    # Most modules have none of these fields, and parsing all takes seconds.
    if not any(
        all(f'"{field}"' in source for field in fields) for fields in (*PARTS.values(), {"exactly"})
    ):
        return []
    written = []
    for function in _functions(ast.parse(source), decorated=True):
        if function.name.startswith("test_"):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Dict):
                continue
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            what = [name for name, fields in PARTS.items() if fields <= keys]
            what += ["the request of a claim"] if _is_request(node) else []
            written += [f"{function.name}: {name}" for name in what]
    return written


def test_no_test_writes_what_a_builder_writes() -> None:
    """Use `claim_spec`, `pod_spec`, `slice_`, `resource_pool`, `rule` or `cluster`."""
    assert [
        f"{short(path)}: {part}"
        for path in sorted(TESTS.rglob("*.py"))
        if path not in SHARED and short(path) not in NO_COPIES
        for part in parts(path.read_text())
    ] == []


PART_OF = {
    'def f(n):\n    return {"spec": {"deviceSelector": {}, "taint": n}}': ["f: the spec of a rule"],
    'async def f(n):\n    await g({"hubAcceptsClient": True})': ["f: the spec of a cluster"],
    'def f():\n    return {"name": "r", "exactly": {"count": 1}}': ["f: the request of a claim"],
    'def f(x):\n    return {"name": "r", "exactly": x}': [],
    'def test_f():\n    g({"hubAcceptsClient": True})': [],
    "def f(n):\n    return pod_spec(n, resourceClaims=[])": [],
}


@pytest.mark.parametrize(("source", "want"), PART_OF.items())
def test_parts_are_found(source: str, want: list[str]) -> None:
    assert parts(source) == want


OF_NO_BUILDER = {
    "tests/api/resource/bodies.py": "bodies before they are decoded, without a version",
    "tests/definitions.py": "the shared builders of definitions and their objects",
    "tests/domain/allocation/test_worlds.py": "a claim from the parts of a template",
    "tests/kube/hub.py": "the definitions of a hub",
    "tests/kube/test_constraints.py": "an object of a server without what controllers write",
    "tests/kube/test_definitions.py": "objects of any definition",
    "tests/machinery/patch/widgets.py": "objects of a kind that only these tests have",
    "tests/robust/inputs/named.py": "objects of any kind, with a name that varies",
    "tests/robust/inputs/targets.py": "objects with generated names",
    "tests/robust/inputs/test_fuzz.py": "objects with generated names",
    "tests/server/test_empty_values.py": "templates of several versions",
}


def objects(source: str) -> list[str]:
    """Return the helper functions that write an object as a dictionary."""
    if not all(f'"{field}"' in source for field in ("metadata", "spec")):
        return []
    return [
        function.name
        for function in _functions(ast.parse(source), decorated=True)
        if not function.name.startswith("test_")
        and any(isinstance(node, ast.Dict) and _is_object(node) for node in ast.walk(function))
    ]


def _is_object(node: ast.Dict) -> bool:
    """Report whether a dictionary has metadata, which are not empty, and a spec."""
    keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
    if "metadata" not in keys or "spec" not in keys:
        return False
    metadata = node.values[keys.index("metadata")]
    return not isinstance(metadata, ast.Dict) or bool(metadata.keys)


def test_helpers_write_objects_with_a_builder() -> None:
    """Call `manifests.body` for an object of a kind that has no builder of its own."""
    assert [
        f"{short(path)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        if path not in SHARED and short(path) not in OF_NO_BUILDER
        for name in objects(path.read_text())
    ] == []


OBJECTS = {
    'def f(n):\n    return {"metadata": {"name": n}, "spec": {}}': ["f"],
    'async def f(m, s):\n    await g({"metadata": m, "spec": s})': ["f"],
    'def f(n):\n    return {"metadata": {"name": n}, "status": {}}': [],
    'def f(event):\n    return event.object or {"metadata": {}, "spec": {}}': [],
    'def f(n, s):\n    return manifests.body("Pod", n, s)': [],
    'def test_f():\n    g({"metadata": {"name": "n"}, "spec": {}})': [],
}


@pytest.mark.parametrize(("source", "want"), OBJECTS.items())
def test_objects_are_found(source: str, want: list[str]) -> None:
    assert objects(source) == want


@pytest.mark.parametrize("path", OF_NO_BUILDER)
def test_every_exception_is_needed(path: str) -> None:
    assert objects((ROOT / path).read_text()) != []


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
