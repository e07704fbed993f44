"""Whether a name matches a glob, for the arguments of all commands."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

ANY = "*"


def is_glob(text: str) -> bool:
    """Report whether a text can match several names."""
    return any(char in text for char in "*?[")


def glob_matches(pattern: str, name: str) -> bool:
    """Report whether a name is the pattern, or matches it as a glob; case matters."""
    return pattern in (ANY, name) or fnmatchcase(name, pattern)


def any_glob_matches(patterns: Sequence[str], name: str) -> bool:
    """Report whether a name matches one of the patterns; without patterns all names do."""
    return not patterns or any(glob_matches(pattern, name) for pattern in patterns)
