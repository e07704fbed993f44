"""The files of the project, for tests about the project itself."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src/sully"
FOLDERS = (".ci", "bench", "changes", "docs", "examples", "src", "tests", "tools")
_BUILT = (".coverage", "__pycache__", ".egg-info")


def files(*suffixes: str) -> Iterator[Path]:
    """Go through the files people write; with suffixes only those that end so."""
    candidates = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        candidates += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(candidates):
        built = any(part.endswith(_BUILT) for part in path.parts)
        if not built and (not suffixes or path.suffix in suffixes):
            yield path


def short(path: Path) -> str:
    """Return a path as people write it."""
    return path.relative_to(ROOT).as_posix()


def modules() -> list[Path]:
    """Return every module of the program."""
    return sorted(SOURCE.rglob("*.py"))
