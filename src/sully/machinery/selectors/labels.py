"""Label selectors: which objects a `labelSelector` query or a LabelSelector object means.

A selector is a list of requirements that must all hold. Strings are read in two steps, words and
then requirements, because the texts of the errors name the word that was found. Selectors over
fields of objects are in fieldselectors.py.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sully.machinery.errors import aggregate
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.integers import parse_int
from sully.machinery.formats.names import label_key_problems, label_value_problems
from sully.machinery.serialization.gotext import quote

_BINARY = ("in", "notin", "=", "==", "!=", "gt", "lt")
_UNARY = ("exists", "!")
_WORDS = {">": "gt", "<": "lt"} | {word: word for word in ("in", "notin", "=", "==", "!=")}
_LEXER = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^ \t\r\n=!(),<>]+)|$)")
_EXPRESSIONS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}

# Each object of a list is compared with each requirement, and its label with each value.
MAX_REQUIREMENTS = 100
MAX_TERMS = 1000


class SelectorError(ValueError):
    """A selector that cannot be read; the message is what the client sees."""


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label. Operators are those of the string form, gt, lt and exists."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether the labels meet this condition."""
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        left, right = parse_int(value or ""), parse_int(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == "gt" else left < right

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case _:
                sign = {"gt": ">", "lt": "<"}.get(self.operator, self.operator)
                return f"{self.key}{sign}{self.values[0]}"


class Selector(msgspec.Struct, frozen=True):
    """Conditions that must all hold; `never` is the selector of an absent LabelSelector."""

    requirements: tuple[Requirement, ...] = ()
    never: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether an object with these labels matches."""
        if self.never:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def everything(self) -> bool:
        """Report whether every object matches."""
        return not self.requirements and not self.never

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


NOTHING = Selector(never=True)


def parse(text: str) -> Selector:
    """Read the string form, for example `tier in (gold, silver),!legacy,n>1`."""
    check_size(text, MAX_TERMS)
    selector = _ordered(_Parser(text).parse())
    if len(selector.requirements) > MAX_REQUIREMENTS:
        raise SelectorError(f"too many requirements: at most {MAX_REQUIREMENTS}")
    return selector


def check_size(text: str, terms: int) -> None:
    """Reject a selector that is too large, before it is parsed."""
    if text.count(",") >= terms:
        raise SelectorError(f"too many terms in a selector: at most {terms}")


def from_object(selector: Mapping[str, Any] | None) -> Selector:
    """Read a LabelSelector object; an absent one means nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    requirements = [
        requirement(key, "=", (value,))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in _EXPRESSIONS:
            raise SelectorError(f"{quote(operator)} is not a valid label selector operator")
        # Kubernetes copies the list, and so quotes an empty one as null; the texts are on the wire.
        values = tuple(expression.get("values") or ()) or None
        requirements.append(requirement(expression.get("key", ""), _EXPRESSIONS[operator], values))
    return _ordered(requirements)


def requirement(key: str, operator: str, values: Sequence[str] | None) -> Requirement:
    """Make one requirement, or raise an error that names everything wrong with it."""
    problems = [*_problems(key, operator, values)]
    if problems:
        raise SelectorError(aggregate(problems))
    return Requirement(key, operator, tuple(values or ()))


def _ordered(requirements: Iterable[Requirement]) -> Selector:
    return Selector(tuple(sorted(requirements, key=lambda item: item.key)))


def _problems(
    key: str, operator: str, requirement_values: Sequence[str] | None
) -> Iterable[FieldError]:
    if problem := _key_problem(key, Path("key")):
        yield problem
    at, values = Path("values"), requirement_values or ()
    if operator in ("in", "notin") and not values:
        empty = None if requirement_values is None else [*requirement_values]
        yield at.invalid(empty, "for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("=", "==", "!=") and len(values) != 1:
        yield at.invalid([*values], "exact-match compatibility requires one single value")
    elif operator in _UNARY and values:
        yield at.invalid([*values], "values set must be empty for exists and does not exist")
    elif operator in ("gt", "lt"):
        yield from _order_problems(values, at)
    elif operator not in (*_BINARY, *_UNARY):
        yield Path("operator").not_supported(operator, (*_BINARY, *_UNARY))
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            yield at.index(index).key(key).invalid(value, "; ".join(problems))


def _order_problems(values: Sequence[str], at: Path) -> Iterable[FieldError]:
    if len(values) != 1:
        yield at.invalid([*values], "for 'Gt', 'Lt' operators, exactly one value is required")
    for index, value in enumerate(values):
        if parse_int(value) is None:
            yield at.index(index).invalid(
                value, "for 'Gt', 'Lt' operators, the value must be an integer"
            )


def _key_problem(key: str, at: Path) -> FieldError | None:
    problems = label_key_problems(key)
    return at.invalid(key, "; ".join(problems)) if problems else None


class _Token(msgspec.Struct, frozen=True):
    kind: str  # "name", "end", or the symbol or keyword itself
    text: str

    @property
    def names(self) -> bool:
        # `in` and `notin` are operators only in the position of an operator.
        return self.kind in ("name", "in", "notin")


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position = 0
    while match := _LEXER.match(text, position):
        position = match.end()
        if symbol := match["symbol"]:
            tokens.append(_Token(symbol, symbol))
        elif word := match["word"]:
            tokens.append(_Token(word if word in ("in", "notin") else "name", word))
        else:
            break
    return [*tokens, _Token("end", "")]


class _Parser:
    """Reads tokens from left to right; `_next` never runs past the end."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek().kind == "end":
            return requirements
        if not self._starts_requirement():
            raise SelectorError(
                f"found '{self._peek().text}', expected: !, identifier, or 'end of string'"
            )
        while True:
            requirements.append(self._requirement())
            after = self._next()
            if after.kind == "end":
                return requirements
            if after.kind != ",":
                raise SelectorError(f"found '{after.text}', expected: ',' or 'end of string'")
            if not self._starts_requirement():
                raise SelectorError(f"found '{self._peek().text}', expected: identifier after ','")

    def _peek(self) -> _Token:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _starts_requirement(self) -> bool:
        return self._peek().names or self._peek().kind == "!"

    def _requirement(self) -> Requirement:
        try:
            return self._read_requirement()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _read_requirement(self) -> Requirement:
        negated = self._peek().kind == "!"
        if negated:
            self._next()
        key = self._next()
        if not key.names:
            raise SelectorError(f"found '{key.text}', expected: identifier")
        if problem := _key_problem(key.text, Path()):
            raise SelectorError(str(problem))
        if negated or self._peek().kind in ("end", ","):
            return requirement(key.text, "!" if negated else "exists", ())
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else [self._exact()]
        return requirement(key.text, operator, sorted(values))

    def _operator(self) -> str:
        token = self._next()
        if token.kind not in _WORDS:
            raise SelectorError(f"found '{token.text}', expected: {', '.join(_BINARY)}")
        return _WORDS[token.kind]

    def _exact(self) -> str:
        if self._peek().kind in ("end", ","):
            return ""
        token = self._next()
        if not token.names:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return token.text

    def _set(self) -> set[str]:
        opening = self._next()
        if opening.kind != "(":
            raise SelectorError(f"found '{opening.text}' expected: '('")
        first = self._peek()
        if first.kind == ")":
            self._next()
            return {""}
        if not first.names and first.kind != ",":
            raise SelectorError(f"found '{first.text}', expected: ',', ')' or identifier")
        values = self._values()
        if self._next().kind != ")":
            # The text has the first value, not the current one, as in Kubernetes.
            raise SelectorError(f"found '{first.text}', expected: ')'")
        return values

    def _values(self) -> set[str]:
        values: set[str] = set()
        while True:
            token = self._next()
            if token.names:
                values.add(token.text)
                if self._peek().kind == ")":
                    return values
                if self._peek().kind != ",":
                    raise SelectorError(f"found '{self._peek().text}', expected: ',' or ')'")
            elif token.kind == ",":
                if self._after_comma(values):
                    return values
            else:
                raise SelectorError(f"found '{token.text}', expected: ',', or identifier")

    def _after_comma(self, values: set[str]) -> bool:
        """Add the empty value next to a comma without one; report whether the set ends."""
        if not values:
            values.add("")
        if self._peek().kind == ")":
            values.add("")
            return True
        if self._peek().kind == ",":
            self._next()
            values.add("")
        return False
