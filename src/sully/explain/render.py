"""The one renderer: a finding becomes text by the row of its cause and the texts of its notes.

A template is plain text with fields and sections. `{node}` is a field of the facts, written
by its type: a time with its distance, a list as an enumeration, a note by its own template.
What follows a colon is the format: `{pods:pod}` counts ("2 pods"), `{pods:is/are}` chooses by
number, `{pods:3}` names at most three, `{why:quoted}` quotes. `[ by {user}]` is left out unless
all fields directly in it have a value, and `[a|b]` is the first of its alternatives that has them;
`{flag:?}` and `{flag:!}` are conditions and print nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from sully.explain.causes import ClusterTaint, Finding, Note, Source, TaintFact
from sully.explain.explanation import Explanation
from sully.explain.templates import CAUSES, NOTES
from sully.explain.text import (
    as_sentence,
    code,
    enumerate_names,
    join,
    quote,
    time_text,
)
from sully.machinery.formats.plurals import number_of

_TOKEN: Final = re.compile(r"\{([\w.]+)(?::([^}]*))?\}|([\[\]|])|([^{}\[\]|]+)")
_SUBJECTS: Final = {
    "ResourceClaim": "Claim",
    "DeviceTaintRule": "Rule",
    "ResourceSlicePatch": "Patch",
    "ManagedCluster": "Cluster",
}
_STRINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "": str,
    "quoted": quote,
    "code": code,
    "sentence": as_sentence,
}


def render(finding: Finding, now: datetime) -> Explanation:
    name = f"{finding.namespace}/{finding.name}" if finding.namespace else finding.name
    subject = f"{_SUBJECTS.get(finding.kind, finding.kind)} {name}"
    writer = _Writer({"subject": subject, "since": finding.since, "now": now})
    row = CAUSES[finding.kind][finding.cause]
    facts = fields_of(finding.facts)
    nested = render(finding.nested, now) if finding.nested is not None else None
    return Explanation(
        kind=finding.kind,
        namespace=finding.namespace,
        name=finding.name,
        state=finding.state or row.state,
        cause=finding.code,
        summary=(
            *writer.lines(row.summary, facts),
            *(nested.summary if nested is not None else ()),
            *writer.notes(finding.also),
        ),
        because=tuple(dict.fromkeys(finding.because)),
        remedies=(
            *writer.notes(finding.remedies),
            *writer.lines(row.remedies, facts),
            *(nested.remedies if nested is not None else ()),
        ),
        details=finding.details,
    )


def render_note(note: Note, now: datetime) -> str:
    """Return a note as text, without an object that it is about."""
    return "".join(_Writer({"now": now}).notes((note,)))


def fields_of(facts: Any) -> dict[str, Any]:
    """Return the fields and properties of facts by name."""
    properties = (name for name, value in vars(type(facts)).items() if isinstance(value, property))
    return {**asdict(facts), **{name: getattr(facts, name) for name in properties}}


class _Field(NamedTuple):
    path: str
    spec: str


class _Section(NamedTuple):
    alternatives: tuple[tuple[Any, ...], ...]


_Node = str | _Field | _Section


@lru_cache(1024)
def parse(template: str) -> tuple[_Node, ...]:
    tokens = _TOKEN.finditer(template)
    alternatives, end = _parse(tokens)
    if end or len(alternatives) != 1 or _TOKEN.sub("", template):
        raise ValueError(f"unbalanced template: {template}")
    return alternatives[0]


def _parse(tokens: Iterator[re.Match[str]]) -> tuple[tuple[tuple[_Node, ...], ...], bool]:
    alternatives: list[list[_Node]] = [[]]
    for token in tokens:
        path, spec, bracket, text = token.groups()
        if path:
            alternatives[-1].append(_Field(path, spec or ""))
        elif bracket == "[":
            inner, _ = _parse(tokens)
            alternatives[-1].append(_Section(inner))
        elif bracket == "]":
            return tuple(map(tuple, alternatives)), True
        elif bracket == "|":
            alternatives.append([])
        else:
            alternatives[-1].append(text)
    return tuple(map(tuple, alternatives)), False


class _Writer:
    """Writes sentences about one subject."""

    def __init__(self, common: Mapping[str, Any]) -> None:
        self._common = common

    def notes(self, notes: Iterable[Note]) -> Iterator[str]:
        for note in notes:
            row = NOTES[note.name]
            yield from self.lines(row.remedies if note.remedy else row.summary, note.values)

    def lines(self, templates: Iterable[str], fields: Mapping[str, Any]) -> Iterator[str]:
        for template in templates:
            if template.startswith("*"):
                yield from self.notes(fields[template[1:]])
            elif text := self._render(parse(template), fields):
                yield text

    def _render(self, nodes: Iterable[_Node], fields: Mapping[str, Any]) -> str:
        return "".join(self._node(node, fields) for node in nodes)

    def _node(self, node: _Node, fields: Mapping[str, Any]) -> str:
        match node:
            case str():
                return node
            case _Field(path, spec):
                return self._text(self._value(path, fields), spec)
            case _Section(alternatives):
                chosen = (nodes for nodes in alternatives if self._holds(nodes, fields))
                return self._render(next(chosen, ()), fields)

    def _holds(self, nodes: Iterable[_Node], fields: Mapping[str, Any]) -> bool:
        return all(
            bool(self._value(node.path, fields)) is (node.spec != "!")
            for node in nodes
            if isinstance(node, _Field)
        )

    def _value(self, path: str, fields: Mapping[str, Any]) -> Any:
        first, *rest = path.split(".")
        value = fields[first] if first in fields else self._common[first]
        for name in rest:
            value = getattr(value, name)
        return value

    def _text(self, value: Any, spec: str) -> str:
        if spec in ("?", "!"):
            return ""
        match value:
            case Note():
                text = "".join(self.notes((value,)))
                if spec == "counted":
                    return f"{len(value.values['names'])} {text}"
                return f"{text[:1].lower()}{text[1:]}" if spec == "lower" else text
            case Source() | TaintFact() | ClusterTaint():
                row = NOTES[type(value).__name__]
                return "".join(self.lines(row.summary, fields_of(value)))
            case datetime():
                return time_text(value, self._common["now"])
            case str():
                return _STRINGS[spec](value)
            case _:
                return self._list(value, spec)

    def _list(self, value: Any, spec: str) -> str:
        number = value if isinstance(value, int) else len(value)
        if "/" in spec:
            one, many = spec.split("/")
            return one if number == 1 else many
        if spec.replace(" ", "").isalpha() and spec not in _JOINS:
            return number_of(number, spec)
        if not isinstance(value, Collection):
            return str(value)
        parts = [self._text(item, "counted" if spec == "counted" else "") for item in value]
        if spec in _JOINS:
            return _JOINS[spec](parts)
        return enumerate_names(parts, int(spec)) if spec else enumerate_names(parts)


def _steps(parts: list[str]) -> str:
    text = ". Also ".join(parts)
    return f"{text[:1].upper()}{text[1:]}"


_JOINS: Final[Mapping[str, Callable[[list[str]], str]]] = {
    "all": join,
    "counted": join,
    "or": lambda parts: join(parts, "or"),
    "comma": ", ".join,
    "semicolon": "; ".join,
    "steps": _steps,
}
