"""A release: the version, the collected notes, a commit and the tag. Nothing is uploaded."""

from __future__ import annotations

import re
from pathlib import Path

from release.project import ROOT, ReleaseError, run

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LINE = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def prepare(version: str, root: Path = ROOT) -> None:
    """Write the version and collect the notes; fail where that would not be a release."""
    path = root / "src/sully/__init__.py"
    text = path.read_text()
    found = _LINE.search(text)
    if found is None or _VERSION.fullmatch(version) is None:
        raise ReleaseError(f'invalid version "{version}" (for example 0.2.0)')
    if _numbers(version) <= _numbers(found[1]):
        raise ReleaseError(f"version {version} is not after {found[1]}")
    if run(Path("git"), "status", "--porcelain", cwd=root):
        raise ReleaseError("the tree is not clean: commit or remove what is there")
    path.write_text(_LINE.sub(f'__version__ = "{version}"', text))
    for page in sorted((root / "docs").rglob("*.md")):
        page.write_text(rename_image(page.read_text(), found[1], version))
    run("towncrier", "build", "--yes", "--version", version, cwd=root)
    notes = root / "CHANGELOG.md"
    # Links of a fragment start in changes/, those of the notes one folder above.
    notes.write_text(notes.read_text().replace("](../", "]("))


def rename_image(text: str, old: str, new: str) -> str:
    """Return a page that names the image of the new release where it named that of the old one."""
    return re.sub(rf"(\bsully:|\bnewTag: ){re.escape(old)}(?![\w.])", rf"\g<1>{new}", text)


def commit(version: str, root: Path = ROOT) -> None:
    """Commit what `prepare` and `make generate` wrote."""
    run(Path("git"), "add", "--all", cwd=root)
    run(Path("git"), "commit", "--message", f"Release {version}", cwd=root)


def tag(version: str, root: Path = ROOT) -> None:
    """Tag the commit."""
    run(Path("git"), "tag", "--annotate", "--message", f"Sully {version}", f"v{version}", cwd=root)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
