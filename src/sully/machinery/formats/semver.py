"""Semantic versions (https://semver.org, 2.0.0): reading, order, and the lenient form.

Driver versions of devices are attributes of this kind; selectors compare them through the CEL
library next to this module. Attributes are always strict; expressions may ask for the lenient form.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from sully.machinery.memo import memoized

_IDENTIFIER: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-({_IDENTIFIER}))?(?:\+({_IDENTIFIER}))?",
    re.ASCII,
)
_MAX_NUMBER: Final = 2**64 - 1
_MAX_DIGITS: Final = 20


class SemverError(ValueError):
    """The reason why a text is not a semantic version."""


@total_ordering
class Semver:
    """A version; build metadata is kept, but ignored by comparisons."""

    __slots__ = ("_order", "build", "major", "minor", "patch", "prerelease")

    def __init__(
        self,
        major: int,
        minor: int,
        patch: int,
        prerelease: tuple[str, ...] = (),
        build: tuple[str, ...] = (),
    ) -> None:
        self.major = major
        self.minor = minor
        self.patch = patch
        self.prerelease = prerelease
        self.build = build
        self._order = (major, minor, patch, not prerelease, tuple(map(_rank, prerelease)))

    def compare(self, other: Semver) -> int:
        """Return -1, 0 or 1 as this version is lower than, equal to or higher than the other."""
        return (self._order > other._order) - (self._order < other._order)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order == other._order

    def __lt__(self, other: Semver) -> bool:
        return self._order < other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += f"-{'.'.join(self.prerelease)}"
        return f"{text}+{'.'.join(self.build)}" if self.build else text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"


def _rank(identifier: str) -> tuple[bool, int, str]:
    """Return the sort key of one part of a prerelease: numbers first, then text."""
    if identifier.isdigit():
        # A longer number is a larger one: identifiers have no leading zeros.
        return False, len(identifier), identifier
    return True, 0, identifier


def parse_semver(text: str, *, normalize: bool = False) -> Semver:
    """Read a version.

    With `normalize`, a leading `v`, missing minor and patch numbers and leading zeros are accepted.
    """
    return _parse(_normalized(text) if normalize else text)


@memoized(4096)
def _parse(text: str) -> Semver:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise SemverError(_problem(text))
    numbers = match.group(1, 2, 3)
    for number in numbers:
        if len(number) > _MAX_DIGITS or int(number) > _MAX_NUMBER:
            raise SemverError(f'strconv.ParseUint: parsing "{number}": value out of range')
    major, minor, patch = map(int, numbers)
    prerelease = tuple(match.group(4).split(".")) if match.group(4) else ()
    build = tuple(match.group(5).split(".")) if match.group(5) else ()
    for part in prerelease:
        if part.isdigit() and len(part) > 1 and part[0] == "0":
            raise SemverError(
                f'Numeric PreRelease version must not contain leading zeroes "{part}"'
            )
    return Semver(major, minor, patch, prerelease, build)


def _problem(text: str) -> str:
    """Return the error text of the library that Kubernetes uses."""
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) != 3:
        return "No Major.Minor.Patch elements found"
    core = re.split(r"[+-]", parts[2], maxsplit=1)[0]
    for name, part in zip(("major", "minor", "patch"), (parts[0], parts[1], core), strict=True):
        if not re.fullmatch(r"[0-9]+", part, re.ASCII):
            return f'Invalid character(s) found in {name} number "{part}"'
        if len(part) > 1 and part[0] == "0":
            return f'{name.title()} number must not contain leading zeroes "{part}"'
    return f'Invalid character(s) found in prerelease or build meta data "{parts[2]}"'


def _normalized(text: str) -> str:
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise SemverError("short version cannot contain PreRelease/Build meta data")
    return ".".join((*parts, "0", "0")[:3])


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isdigit() else f"0{stripped}"
