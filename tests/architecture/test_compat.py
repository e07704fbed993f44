"""What `--compat` changes is asked by the name of a decision, never which mode it is."""

import ast
import re

from architecture.project import SOURCE, modules
from sully.machinery.compat import Compat

SOURCES = {
    path.relative_to(SOURCE).as_posix(): path.read_text()
    for path in modules()
    if path != SOURCE / "machinery/compat.py"
}


def test_every_decision_is_asked() -> None:
    asked = {name for text in SOURCES.values() for name in re.findall(r"\.(\w+)\b", text)}

    assert set(Compat.__struct_fields__) - asked == set()


def test_no_mode_is_compared() -> None:
    comparing = [
        f"{name}:{node.lineno}"
        for name, text in SOURCES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare) and any(map(_is_mode, (node.left, *node.comparators)))
    ]

    assert comparing == []


def _is_mode(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value="reference"):
            return True
        case ast.Attribute(value=ast.Name(id="Compat"), attr="SULLY" | "KUBERNETES"):
            return True
        case _:
            return False
