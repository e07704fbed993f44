"""Runs one step of a release. The Makefile calls it, with the programs of requirements/release.txt.

python -m release dist | audit | lock [--upgrade]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from release import audit, bom, build, image, krew, lock, matrix, publish, site
from release.debian import PackageUnavailableError
from release.project import ROOT, ReleaseError, run


def main() -> int:
    """Run the step; print why it failed."""
    parser = argparse.ArgumentParser(prog="release")
    parser.add_argument("step", choices=STEPS)
    options, rest = parser.parse_known_args()
    try:
        return STEPS[options.step](*rest) or 0
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3 if isinstance(error, PackageUnavailableError) else 1


def dist() -> None:
    """Build, check, install and use the packages, and write what goes with them."""
    built = build.build()
    wheel = next(path for path in built if path.suffix == ".whl")
    build.check_contents(wheel, build.source_files())
    with tempfile.TemporaryDirectory(prefix="sully-dist-") as name:
        describe(Path(name) / "bom")
        matrix.check(wheel, Path(name))
        matrix.check_extras(wheel, Path(name) / "bom")
        matrix.check_launchers(wheel, Path(name) / "pipx")
    print(f"dist/{bom.write_checksums().name}")


def describe(folder: Path) -> None:
    """Write the SBOM and the licenses, from an environment with only the pinned packages."""
    environment = matrix.create("", Path(sys.executable), folder)
    for path in (
        bom.write_bom(environment.program("python")),
        bom.write_licenses(environment.program("python")),
    ):
        print(f"dist/{path.name}")


def release(version: str = "") -> None:
    """Write version and notes, build everything, and tag the commit."""
    publish.prepare(version)
    run(ROOT / ".venv/bin/python", "tools/generate_deploy.py")
    publish.commit(version)
    dist()
    publish.tag(version)
    print(f"v{version} is tagged; push the tag and upload the files in dist/")


STEPS: dict[str, Callable[..., int | None]] = {
    "dist": dist,
    "docs": site.docs,
    "audit": audit.audit,
    "lock": lock.lock,
    "image": image.image,
    "krew": krew.krew,
    "release": release,
}

if __name__ == "__main__":
    sys.exit(main())
