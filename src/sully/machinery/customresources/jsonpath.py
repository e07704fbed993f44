"""JSONPath as definitions use it: for printed columns, scale and selectable fields.

The part of kubectl's dialect that leads to values: `.name`, `['name']`, `[0]`, `[*]`, `.*` and
filters such as `[?(@.type=="Ready")]`. Other forms are refused when they are parsed.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

Step = Callable[[Any], Iterable[Any]]
MAX_LENGTH: Final = 4096
_TOKEN: Final = re.compile(
    r"""\.(?P<name>(?:[^.\[\]'"\\\s?()*]|\\.)+)
    |\.(?P<any>\*)
    |\[\s*(?P<index>-?\d+)\s*\]
    |\[\s*(?P<every>\*)\s*\]
    |\[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    |\[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
    |\[\?\(\s*@(?P<path>(?:\.[^.\[\]\s=!<>()]+)+)\s*
        (?:(?P<operator>==|!=|<=|>=|<|>)\s*
        (?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d+)?|true|false))?\s*\)\]
    |(?P<self>\.)(?=$|\[)""",
    re.VERBOSE,
)


class JSONPathError(ValueError):
    """A path that cannot be read."""


@lru_cache(maxsize=1024)
def parse(path: str) -> tuple[Step, ...]:
    """Return the steps of a path; raises JSONPathError."""
    if len(path) > MAX_LENGTH:
        raise JSONPathError(f"longer than {MAX_LENGTH} characters")
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None:
            raise JSONPathError(f"unsupported at {path[position : position + 20]!r}")
        step = _step(match)
        if step is not None:
            steps.append(step)
        position = match.end()
    return tuple(steps)


def find(path: str, value: Any) -> list[Any]:
    """Return the values that a path leads to; none where something on the way is absent."""
    values = [value]
    for step in parse(path):
        values = [inner for outer in values for inner in step(outer)]
    return values


def _step(match: re.Match[str]) -> Step | None:
    kind = match.lastgroup
    if match["self"] is not None:
        return None
    if match["any"] is not None or match["every"] is not None:
        return _children
    if match["index"] is not None:
        return _item(int(match["index"]))
    if match["path"] is not None:
        return _filter(match)
    text = match["name"] or match["single"] or match["double"]
    if text is None:
        raise JSONPathError(f"unsupported step {kind}")
    return _field(re.sub(r"\\(.)", r"\1", text))


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _item(index: int) -> Step:
    def step(value: Any) -> Iterable[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            return (value[index],)
        return ()

    return step


def _field(name: str) -> Step:
    def step(value: Any) -> Iterable[Any]:
        return (value[name],) if isinstance(value, dict) and name in value else ()

    return step


def _filter(match: re.Match[str]) -> Step:
    names = match["path"][1:].split(".")
    operator, expected = match["operator"], _literal(match["value"])

    def step(value: Any) -> Iterator[Any]:
        for item in _children(value):
            actual = item
            for name in names:
                actual = actual.get(name) if isinstance(actual, dict) else None
            if actual is not None and (operator is None or _holds(actual, operator, expected)):
                yield item

    return step


def _literal(text: str | None) -> Any:
    if text is None or text in ("true", "false"):
        return None if text is None else text == "true"
    if text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return float(text)


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    ">": lambda left, right: bool(left > right),
    "<=": lambda left, right: bool(left <= right),
    ">=": lambda left, right: bool(left >= right),
}


def _holds(left: Any, operator: str, right: Any) -> bool:
    try:
        return _COMPARISONS[operator](left, right)
    except TypeError:
        return False
