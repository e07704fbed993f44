"""Field selectors: `metadata.name=a,spec.nodeName!=b`.

Only fields that a kind declares as selectable can be used (ResourceType.selectable); this module
reads and evaluates the text and leaves it to the server to refuse unknown fields. Selectors over
labels are in labels.py.
"""

from collections.abc import Iterator, Mapping

import msgspec

from sully.machinery.selectors.labels import MAX_REQUIREMENTS, SelectorError, check_size


class FieldRequirement(msgspec.Struct, frozen=True):
    """One field that must, or must not, have one value."""

    field: str
    negated: bool
    value: str

    def matches(self, values: Mapping[str, str]) -> bool:
        """Report whether the fields meet this condition; an absent field is empty."""
        return (values.get(self.field, "") == self.value) is not self.negated

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{escape(self.value)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """Conditions on fields that must all hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, values: Mapping[str, str]) -> bool:
        """Report whether an object with these fields matches."""
        return all(requirement.matches(values) for requirement in self.requirements)

    def exact(self, field: str) -> str | None:
        """Return the one value the field must have, or None if it may have several."""
        for requirement in self.requirements:
            if requirement.field == field and not requirement.negated:
                return requirement.value
        return None

    @property
    def everything(self) -> bool:
        """Report whether every object matches."""
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def parse(text: str) -> FieldSelector:
    """Read the string form; empty terms are skipped, also those with an operator."""
    check_size(text, MAX_REQUIREMENTS)
    terms = (_term(part, text) for part in sorted(_split(text)) if part)
    return FieldSelector(tuple(term for term in terms if term.field or term.value))


def escape(value: str) -> str:
    """Write a value so that it survives parsing."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _split(text: str) -> Iterator[str]:
    start, escaped = 0, False
    for position, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _term(part: str, whole: str) -> FieldRequirement:
    for position in range(len(part)):
        for operator in ("!=", "==", "="):
            if part.startswith(operator, position):
                value = _unescape(part[position + len(operator) :])
                return FieldRequirement(part[:position], operator == "!=", value)
    raise SelectorError(f"invalid selector: '{whole}'; can't understand '{part}'")


def _unescape(text: str) -> str:
    result, escaped = "", False
    for char in text:
        if escaped:
            if char not in "\\,=":
                raise _bad_escape(f"\\{char}")
            result, escaped = result + char, False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            # Clients know this text with the character's number.
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(char)}"
            )
        else:
            result += char
    if escaped:
        raise _bad_escape("\\")
    return result


def _bad_escape(sequence: str) -> SelectorError:
    return SelectorError(f"invalid field selector: invalid escape sequence: {sequence}")
