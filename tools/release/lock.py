"""The pinned versions: requirements/*.txt, with the hashes of all files on every platform.

Also requirements/image.sha256, the packages of Debian in the image.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from release import debian
from release.project import ROOT, run

_FLAGS = (
    "--quiet",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-annotate",
    "--no-header",
)
LOCKS: dict[str, tuple[str, ...]] = {
    "dev": (
        "pyproject.toml",
        "--extra=etcd",
        "--extra=monitor",
        "--extra=testing",
        "--group=dev",
    ),
    "run": ("pyproject.toml",),
    "etcd": ("pyproject.toml", "--extra=etcd"),
    "monitor": ("pyproject.toml", "--extra=monitor"),
    "build": ("--group=build",),
    "release": ("--group=release",),
}
"""What each file is made from. The first one decides versions that several have."""


def lock(*flags: str) -> None:
    """Write all files. Versions stay as they are unless pyproject.toml or a flag demands others."""
    first = next(iter(LOCKS))
    for name, sources in LOCKS.items():
        same = () if name == first else (f"--constraint=requirements/{first}.txt",)
        target = f"requirements/{name}.txt"
        run("uv", "pip", "compile", *_FLAGS, *same, *flags, *sources, "--output-file", target)
        print(f"{target}: {_packages(target)} packages")
    _lock_image()


def _lock_image() -> None:
    target = debian.PINS.relative_to(ROOT)
    if not debian.is_debian_12():
        print(f"{target}: not written, this is not Debian 12")
        return
    with tempfile.TemporaryDirectory(prefix="sully-lock-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        debian.write_pins(folder / "packages")
    print(f"{target}: {len(debian.pins(debian.PINS.read_text()))} packages of Debian")


def _packages(target: str) -> int:
    return sum("==" in line for line in (ROOT / target).read_text().splitlines())
