"""No decision depends on the text of a message: a message is rendered from a type, never read."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.project import SOURCE, modules

EDGES = {
    "cli/change/plan/proposals.py": "shows the first line of an error",
    "cli/command.py": "writes the errors of click, which are sentences, like those of kubectl",
    "cli/dashboard/queries.py": "shows the first line of an error",
    "client/evictions.py": "servers answer with different codes that several budgets select a pod",
    "client/http/status.py": "a Status has unknown fields nowhere else",
    "controllers/scheduling/reporting.py": "writes a condition only if it changes",
    "domain/eviction/pod_events.py": "Events of Kubernetes are otherwise equal",
    "domain/eviction/status.py": "Kubernetes counts the pods that a rule evicts nowhere else",
    "domain/health/signals.py": "writes a report only if it changes",
    "domain/simulated/statuses.py": "writes a condition only if it changes",
    "machinery/serialization/yamltext.py": "the parser of YAML has the problem nowhere else",
    "views/snapshot/documents.py": "shows an error without its prefix",
}
"""Who may read the text of a message, and why."""

SEARCHES = frozenset(
    (
        *("startswith", "endswith", "partition", "rpartition", "split", "splitlines"),
        *("removeprefix", "removesuffix", "find", "index", "count"),
    )
)
LOOKUPS = frozenset(("match", "fullmatch", "search", "findall", "finditer", "get"))
ERRORS = frozenset(("error", "problem", "failure"))


def read_in(source: str) -> Iterator[int]:
    """Yield the lines that compare or search the text of a message or of an error."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                identity = all(isinstance(op, ast.Is | ast.IsNot) for op in ops)
                read = not identity and any(map(_is_message, (left, *others)))
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args):
                searched = attr in SEARCHES and _is_message(value, with_names=True)
                read = searched or (attr in LOOKUPS and any(map(_is_message, args)))
            case ast.Subscript(slice=ast.expr() as key):
                read = _is_message(key)
            case ast.Match(subject=subject):
                read = _is_message(subject)
            case _:
                read = False
        if read and isinstance(node, ast.expr | ast.stmt):
            yield node.lineno


def _is_message(node: ast.expr, *, with_names: bool = False) -> bool:
    """Report whether a value is the text of a message, or has it.

    What is called `message` may also be one of a protocol, unless it is searched like a text.
    """
    match node:
        case ast.Attribute(attr="message" | "short_message"):
            return True
        case ast.Name(id="message"):
            return with_names
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in ERRORS
        case ast.Subscript(value=value):
            return _is_message(value)
        case ast.Tuple(elts=values):
            return any(map(_is_message, values))
        case _:
            return False


def test_no_message_is_read_outside_of_the_edges() -> None:
    readers = {
        path.relative_to(SOURCE).as_posix(): list(read_in(path.read_text())) for path in modules()
    }

    assert {name: lines for name, lines in readers.items() if lines and name not in EDGES} == {}


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_reads_a_message(name: str) -> None:
    assert list(read_in(Path(SOURCE / name).read_text()))


def text_or_several(source: str) -> Iterator[int]:
    """Yield the lines with a type that is a text in one case and several values in the other."""
    tree = ast.parse(source)
    aliases = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    returned = [node.returns for node in ast.walk(tree) if isinstance(node, functions)]
    for type_ in filter(None, (*aliases, *returned)):
        members = set(_members(type_))
        if "str" in members and members & {"list", "tuple", "Sequence", "dict", "Mapping"}:
            yield type_.lineno


def _members(node: ast.expr) -> Iterator[str]:
    """Yield the names of the types in a union."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from (*_members(left), *_members(right))
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
            yield name
        case _:
            pass


def test_a_text_is_never_the_other_result_of_a_function() -> None:
    mixed = {
        path.relative_to(SOURCE).as_posix(): list(text_or_several(path.read_text()))
        for path in modules()
    }

    assert {name: lines for name, lines in mixed.items() if lines} == {}


@pytest.mark.parametrize(
    "source", ["def f() -> list[int] | str: ...", "Parsed = tuple[int, str] | str"]
)
def test_a_text_or_several(source: str) -> None:
    assert list(text_or_several(source)) == [1]


READ = {
    "equal": "event.message == TEXT",
    "in a tuple": "(old.reason, old.message) == (reason, text)",
    "contained": "'taint' in error.message",
    "one of several": "error.message in TEXTS",
    "a prefix": "condition.message.startswith('0/')",
    "a part": "message.partition(': ')[2]",
    "a pattern": "PATTERN.fullmatch(event.message)",
    "a key": "CAUSES[event.message]",
    "a key that may be missing": "CAUSES.get(event.message)",
    "cases": "match event.message:\n    case 'x': pass",
    "without its first character": "error.message[1:].removesuffix('.')",
    "in a variable": "message.partition(': ')",
    "an error": "str(error).startswith('yaml: ')",
}
NOT_READ = {
    "shown": "print(event.message)",
    "present": "x = error.message or 'unknown'",
    "absent": "rule.message is None",
    "of a protocol": "message.get('body')",
    "limited": "len(condition.message.encode()) > 1024",
}


@pytest.mark.parametrize("source", READ.values(), ids=READ)
def test_reads(source: str) -> None:
    assert list(read_in(source)) == [1]


@pytest.mark.parametrize("source", NOT_READ.values(), ids=NOT_READ)
def test_does_not_read(source: str) -> None:
    assert list(read_in(source)) == []
