"""Tokens to a syntax tree.

Binary operators are read by precedence; everything else is one method per rule of the grammar. The
messages are those of cel-go's generated parser, reproduced for the mistakes people make: an
operand that is missing, a token too much, a bracket that is not closed. Macros are expanded as
soon as their call has been read, by `macros`.
"""

from __future__ import annotations

from typing import Final

from sully.machinery.cel.errors import CompileError, Issue, render
from sully.machinery.cel.syntax import lexer, literals, macros
from sully.machinery.cel.syntax.lexer import Token
from sully.machinery.cel.syntax.nodes import (
    Call,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
    qualified_name,
)

MAX_DEPTH: Final = 250
# The order in which the grammar lists its tokens, and so the messages do.
_ORDER: Final = (
    *("'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'"),
    *("'true'", "'false'", "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES"),
    "IDENTIFIER",
)
_OPERAND: Final = frozenset(_ORDER) - {"']'", "'}'", "')'", "','", "'?'"}
_OPERAND_KINDS: Final = frozenset(name.strip("'") for name in _OPERAND)
_ELEMENT_KINDS: Final = _OPERAND_KINDS | {"?", lexer.ESCAPED}
_LEVELS: Final = {
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
    "||": 1,
    "&&": 2,
}
_FUNCTIONS: Final = {op: f"_{op}_" for op in _LEVELS} | {"in": "@in"}
_NUMBERS: Final = (lexer.INT, lexer.UINT, lexer.FLOAT)
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_ENDS: Final = frozenset({lexer.EOF, ")", "]", "}", ",", ":", "?", ".", "[", *_LEVELS})


class _AbortError(Exception):
    """The rest of the text cannot be understood any more."""


def parse(source: str, expand: macros.Expand = macros.expand) -> Node:
    """Return the tree of an expression; raise CompileError with every problem found."""
    reader = _Parser(source, expand)
    try:
        node = reader.whole()
    except _AbortError:
        node = None
    except RecursionError:
        node = None
        reader.too_deep()
    if reader.issues or node is None:
        raise CompileError(render(reader.issues, source))
    return node


class _Parser:
    def __init__(self, source: str, expand: macros.Expand) -> None:
        tokens, self.issues = lexer.tokenize(source)
        self._expand = expand
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        # After a problem, further ones are consequences of it until a token fits again.
        self._recovering = False

    # Reading tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != lexer.EOF:
            self._at += 1
            self._recovering = False
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._next() if self._token.kind == kind else None

    def _report(self, position: int, message: str) -> None:
        self.issues.append(Issue(position, message))

    def too_deep(self) -> None:
        """Report that the expression nests deeper than anyone writes by hand."""
        self.issues = [Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")]

    def _complain(self, message: str) -> None:
        if not self._recovering:
            self._report(self._token.pos, f"Syntax error: {message}")
        self._recovering = True

    def _unexpected(self, expected: tuple[str, ...], kinds: frozenset[str]) -> bool:
        """Report the current token; skip it if the next one would be valid."""
        token = self._token
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        extra = token.kind != lexer.EOF and following.kind in kinds
        choices = expected[0] if len(expected) == 1 else "{" + ", ".join(expected) + "}"
        word = "extraneous" if extra else "mismatched"
        self._complain(f"{word} input '{token.text}' expecting {choices}")
        if extra:
            self._next()
        return extra

    def _skip_to(self, kinds: frozenset[str]) -> None:
        while self._token.kind not in kinds and self._token.kind != lexer.EOF:
            self._at += 1

    def _close(self, kind: str, expected: tuple[str, ...] = ()) -> None:
        if self._accept(kind):
            return
        token = self._token
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        # After a colon comes an expression, which nothing can be missing in front of.
        if not expected and kind != ":" and token.kind in _ENDS and following.kind != kind:
            self._complain(f"missing '{kind}' at '{token.text}'")
            return
        if not self._unexpected(expected or (f"'{kind}'",), frozenset((kind,))):
            self._skip_to(frozenset((kind,)))
        self._accept(kind)

    # Rules

    def whole(self) -> Node:
        """Read the expression and the end of the text."""
        node = self._expression()
        if self._token.kind != lexer.EOF:
            self._unexpected((lexer.EOF,), frozenset((lexer.EOF,)))
        return node

    def _expression(self, *, extra: tuple[str, ...] = ()) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.too_deep()
            raise _AbortError
        node = self._binary(1, extra)
        question = self._accept("?")
        if question:
            chosen = self._binary(1, ())
            self._close(":")
            node = Call(question.pos, "_?_:_", (node, chosen, self._expression()))
        self._depth -= 1
        return node

    def _binary(self, level: int, extra: tuple[str, ...]) -> Node:
        node = self._unary(extra)
        length = 0
        while _LEVELS.get(self._token.kind, 0) >= level:
            operator = self._token
            own = _LEVELS[operator.kind]
            if own <= 2:
                node = self._logical(node, operator.kind, own)
                continue
            self._next()
            length += 1
            if length > MAX_DEPTH:
                self.too_deep()
                raise _AbortError
            right = self._binary(own + 1, ())
            node = Call(operator.pos, _FUNCTIONS[operator.kind], (node, right))
        return node

    def _logical(self, first: Node, kind: str, level: int) -> Node:
        terms, places = [first], []
        while self._token.kind == kind:
            places.append(self._next().pos)
            terms.append(self._binary(level + 1, ()))
        return _balance(_FUNCTIONS[kind], terms, places, 0, len(places) - 1)

    def _unary(self, extra: tuple[str, ...]) -> Node:
        token = self._token
        if token.kind not in ("-", "!"):
            return self._member(extra)
        places = []
        while self._token.kind == token.kind:
            places.append(self._next().pos)
        negative = token.kind == "-" and self._token.kind in _NUMBERS
        sign = places.pop() if negative else None
        node = self._member((), sign)
        if len(places) % 2:
            node = Call(places[0], f"{token.kind}_", (node,))
        return node

    def _member(self, extra: tuple[str, ...], sign: int | None = None) -> Node:
        node = self._primary(extra) if sign is None else self._number(self._next(), sign)
        length = 0
        while self._token.kind in (".", "["):
            length += 1
            if length > MAX_DEPTH:
                self.too_deep()
                raise _AbortError
            node = self._select(node) if self._token.kind == "." else self._index(node)
        return node

    def _index(self, operand: Node) -> Node:
        bracket = self._next()
        optional = self._accept("?")
        function = "_[?_]" if optional else "_[_]"
        index = self._expression(extra=() if optional else ("'?'",))
        self._close("]")
        return Call(bracket.pos, function, (operand, index))

    def _select(self, operand: Node) -> Node:
        dot = self._next()
        optional = self._accept("?")
        token = self._token
        if token.kind not in (lexer.IDENT, lexer.ESCAPED):
            self._bad_field(token, dot)
        self._next()
        field = token.text.strip("`")
        if optional:
            return Call(dot.pos, "_?._", (operand, Literal(token.pos, field)))
        bracket = self._token
        if bracket.kind == "(" and token.kind == lexer.IDENT:
            return self._call(bracket.pos, field, operand)
        return Select(dot.pos, operand, field)

    def _bad_field(self, token: Token, dot: Token) -> None:
        follows = "" if token.kind == lexer.EOF else token.text
        self._complain(f"no viable alternative at input '{dot.text}{follows}'")
        raise _AbortError

    def _call(self, position: int, function: str, target: Node | None) -> Node:
        arguments = self._arguments()
        if not self.issues:
            qualified = f"{qualified_name(target)}.{function}" if target is not None else ""
            try:
                node = self._expand(position, function, target, arguments, qualified)
            except macros.MacroError as error:
                self._report(error.pos, str(error))
                raise _AbortError from None
            if node is not None:
                return node
        return Call(position, function, arguments, target)

    def _arguments(self) -> tuple[Node, ...]:
        self._next()
        if self._accept(")"):
            return ()
        arguments = [self._expression(extra=("')'",))]
        while self._accept(","):
            arguments.append(self._expression())
        self._close(")")
        return tuple(arguments)

    def _primary(self, extra: tuple[str, ...]) -> Node:
        token = self._token
        if token.kind in (lexer.IDENT, "."):
            return self._name()
        if token.kind == "(":
            self._next()
            node = self._expression()
            self._close(")")
            return node
        if token.kind == "[":
            return self._list()
        if token.kind == "{":
            self._next()
            return MapNode(token.pos, self._entries())
        if token.kind in _CONSTANTS:
            return Literal(self._next().pos, _CONSTANTS[token.kind])
        if token.kind in (*_NUMBERS, lexer.STRING, lexer.BYTES):
            return self._number(self._next(), None)
        return self._missing(extra)

    def _missing(self, extra: tuple[str, ...]) -> Node:
        """Report that an operand is missing, and return a placeholder."""
        allowed = _OPERAND.union(extra)
        expected = tuple(name for name in _ORDER if name in allowed)
        if self._unexpected(expected, _OPERAND_KINDS):
            return self._unary(())
        self._skip_to(_ENDS)
        return Literal(self._token.pos, None)

    def _number(self, token: Token, sign: int | None) -> Node:
        """Read a number, string or bytes literal; a sign before a number belongs to it."""
        position = token.pos if sign is None else sign
        text = token.text if sign is None else f"-{token.text}"
        try:
            return Literal(position, _value(token.kind, text))
        except literals.LiteralError as error:
            self._report(position, str(error))
            return Literal(position, 0)

    def _list(self) -> Node:
        bracket = self._next()
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._at_end("]", is_first=not elements):
            marked = self._accept("?")
            if marked:
                optional.add(len(elements))
            elements.append(self._expression(extra=() if marked else ("']'", "','", "'?'")))
            if not self._accept(","):
                self._close("]", ("']'", "','"))
                break
        return ListNode(bracket.pos, tuple(elements), frozenset(optional))

    def _entries(self, *, fields: bool = False) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        while not self._at_end("}", is_first=not entries):
            optional = self._accept("?") is not None
            extra = () if optional else ("'}'", "','", "'?'")
            key = self._field() if fields else self._expression(extra=extra)
            colon = self._token
            self._close(":")
            entries.append(Entry(colon.pos, key, self._expression(), optional))
            if not self._accept(","):
                self._close("}", ("'}'", "','"))
                break
        return tuple(entries)

    def _at_end(self, kind: str, *, is_first: bool) -> bool:
        """Report whether a list or map ends here, and read its end.

        A comma that nothing follows is the last one, so only the end is expected then.
        """
        if self._token.kind == kind:
            self._next()
            return True
        if is_first and not self._accept(","):
            return False
        if not is_first and self._token.kind in _ELEMENT_KINDS:
            return False
        self._close(kind)
        return True

    def _field(self) -> Node:
        token = self._token
        if token.kind not in (lexer.IDENT, lexer.ESCAPED):
            self._unexpected(("IDENTIFIER", "ESC_IDENTIFIER"), frozenset())
            raise _AbortError
        return Literal(self._next().pos, token.text.strip("`"))

    def _name(self) -> Node:
        dot = self._accept(".")
        token = self._token
        if token.kind != lexer.IDENT:
            follows = "" if token.kind == lexer.EOF else token.text
            self._complain(f"no viable alternative at input '{dot.text if dot else ''}{follows}'")
            raise _AbortError
        self._next()
        name = f".{token.text}" if dot else token.text
        if token.text in lexer.RESERVED:
            self._report(token.pos, f"reserved identifier: {token.text}")
        if self._token.kind == "(":
            return self._call(self._token.pos, name, None)
        message = self._message_name(name)
        if message is not None:
            brace = self._next()
            return MessageNode(brace.pos, message, self._entries(fields=True))
        return Ident(token.pos, name)

    def _message_name(self, first: str) -> str | None:
        """Return the name before a brace, moving there; None when no message follows."""
        at, name = self._at, first
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == lexer.IDENT:
            name += f".{self._tokens[at + 1].text}"
            at += 2
        if self._tokens[at].kind != "{":
            return None
        self._at = at
        return name


def _value(kind: str, text: str) -> object:
    if kind == lexer.INT:
        return literals.int_value(text)
    if kind == lexer.UINT:
        return literals.uint_value(text)
    if kind == lexer.FLOAT:
        return literals.float_value(text)
    if kind == lexer.STRING:
        return literals.string_value(text)
    return literals.bytes_value(text)


def _balance(function: str, terms: list[Node], places: list[int], low: int, high: int) -> Node:
    """Build a shallow tree of a long row of `&&` or `||`: hundreds of terms are common."""
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balance(function, terms, places, low, middle - 1)
    right = (
        terms[middle + 1] if middle == high else _balance(function, terms, places, middle + 1, high)
    )
    return Call(places[middle], function, (left, right))
