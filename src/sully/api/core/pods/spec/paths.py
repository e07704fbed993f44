"""Paths of files in volumes."""

from sully.api.core.checks import Errors
from sully.machinery.fields import Path


def no_backsteps(path: str, at: Path) -> Errors:
    """Check that a path has no `..`."""
    if has_backsteps(path):
        yield at.invalid(path, "must not contain '..'")


def has_backsteps(path: str) -> bool:
    """Report whether a path contains ".."."""
    return ".." in path.split("/")


def descending(path: str, at: Path) -> Errors:
    """Check that a path is relative and has no `..`."""
    if path.startswith("/"):
        yield at.invalid(path, "must be a relative path")
    yield from no_backsteps(path, at)
