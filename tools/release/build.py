"""Wheel and sdist: built twice, and the bytes compared.

The second build starts from the unpacked sdist of the first, in another folder: so the sdist is
complete, and neither paths nor the times of files are part of the result.
"""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from release.project import DIST, ROOT, ReleaseError, run, version

_NEEDED = ("sully/py.typed", "sully/cli/main.py", "sully/testing/cluster.py")
_UNWANTED = ("__pycache__", ".pyc", ".git", "tests/", ".env", ".key", ".pem")
_LARGEST = 1 << 20


def build() -> list[Path]:
    """Build into `dist/`, again elsewhere, and compare; return wheel and sdist."""
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("sully*"):  # also what was made from an older wheel
        old.unlink()
    built = _build(ROOT, DIST)
    with tempfile.TemporaryDirectory(prefix="sully-dist-") as name:
        sdist = next(path for path in built if path.suffix == ".gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(name, filter="data")
        again = _build(Path(name) / f"sully-{version()}", Path(name) / "dist")
        _compare(built, again)
    run("twine", "check", "--strict", *built)
    for path in built:
        print(f"dist/{path.name}: {path.stat().st_size // 1024} KiB, reproducible")
    return built


def _build(source: Path, to: Path) -> list[Path]:
    run("pyproject-build", "--no-isolation", "--outdir", to, source)
    return sorted((*to.glob("*.whl"), *to.glob("*.tar.gz")))


def _compare(first: list[Path], second: list[Path]) -> None:
    if [path.name for path in first] != [path.name for path in second]:
        raise ReleaseError(f"the second build has other files: {second}")
    for one, other in zip(first, second, strict=True):
        if one.read_bytes() != other.read_bytes():
            raise ReleaseError(f"{one.name} differs between two builds of the same source")


def check_contents(wheel: Path, sources: list[str]) -> None:
    """Fail if the wheel lacks a source file, or has something else."""
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    if found := problems(sizes, sources):
        raise ReleaseError("\n".join([f"{wheel.name}:", *found]))
    print(f"dist/{wheel.name}: {len(sizes)} files, as in src")


def problems(sizes: dict[str, int], sources: list[str]) -> list[str]:
    """Return what is wrong with the files of a wheel."""
    missing = [f"missing: {name}" for name in (*sources, *_NEEDED) if name not in sizes]
    tops = {name: PurePosixPath(name).parts[0] for name in sizes}
    strange = [
        f"does not belong there: {name}"
        for name, top in tops.items()
        if any(part in name for part in _UNWANTED)
        or (name not in sources and not top.endswith(".dist-info"))
    ]
    large = [f"larger than 1 MiB: {name}" for name, size in sizes.items() if size > _LARGEST]
    return missing + strange + large


def source_files() -> list[str]:
    """Return the files of the program, as a wheel names them."""
    folder = ROOT / "src"
    paths = (path for path in (folder / "sully").rglob("*") if path.is_file())
    return sorted(
        path.relative_to(folder).as_posix() for path in paths if "__pycache__" not in path.parts
    )
