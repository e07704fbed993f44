"""Values are msgspec Structs: a default of the dataclasses module would be taken for a value."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/sully"


def dataclass_fields(text: str) -> Iterator[str]:
    """Yield the fields of classes that are not dataclasses with a `field()` of that module."""
    tree = ast.parse(text)
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    names = {
        alias.asname or alias.name
        for node in imports
        if node.module == "dataclasses"
        for alias in node.names
        if alias.name == "field"
    }
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if any("dataclass" in ast.unparse(decorator) for decorator in cls.decorator_list):
            continue
        for node in cls.body:
            value = node.value if isinstance(node, ast.AnnAssign) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func) in names:
                yield f"{cls.name}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("@dataclass\nclass A:\n    a: list[int] = field(default_factory=list)", 0),
        ("class A(Struct):\n    a: list[int] = field(default_factory=list)", 1),
        ("class A(Struct):\n    a: list[int] = msgspec.field(default_factory=list)", 0),
    ],
)
def test_finds_fields_of_the_other_module(text: str, want: int) -> None:
    text = f"from dataclasses import dataclass, field\n{text}\n"

    assert len(list(dataclass_fields(text))) == want


def test_structs_have_no_fields_of_dataclasses() -> None:
    texts = ((path, path.read_text()) for path in SOURCE.rglob("*.py"))
    mistakes = [
        f"{path.relative_to(SOURCE)}: {mistake}"
        for path, text in texts
        if "import field" in text or ", field" in text
        for mistake in dataclass_fields(text)
    ]

    assert not mistakes, "use msgspec.field in a Struct:\n" + "\n".join(mistakes)
