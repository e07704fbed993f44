"""What a release is made of: the SBOM (CycloneDX), the licenses, and the checksums."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from release.project import DIST, ROOT, ReleaseError, run, version

_PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)(?: ; (.*))? \\$", re.MULTILINE)
CHECKSUMS = "SHA256SUMS"


def write_bom(python: Path) -> Path:
    """Write the SBOM of an environment that has exactly the pinned packages."""
    path = DIST / f"sully-{version()}.cdx.json"
    flags = ["--pyproject=pyproject.toml", "--mc-type=application"]
    flags += ["--output-reproducible", "--output-format=JSON", f"--output-file={path}"]
    run("cyclonedx-py", "environment", *flags, python)
    if found := missing(json.loads(path.read_text()), (ROOT / "requirements/run.txt").read_text()):
        raise ReleaseError(f"{path.name} lacks {', '.join(found)}")
    return path


def missing(bom: dict[str, Any], lock: str) -> list[str]:
    """Return the packages of a lock that apply everywhere and are not in the SBOM."""
    listed = {(normal(part["name"]), part["version"]) for part in bom["components"]}
    pinned = [(normal(n), v) for n, v, marker in _PINNED.findall(lock) if not marker]
    return [f"{name} {number}" for name, number in pinned if (name, number) not in listed]


def normal(name: str) -> str:
    """Return the name of a package as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_licenses(python: Path) -> Path:
    """Write the license of every package; fail for one that has none."""
    path = DIST / f"sully-{version()}.licenses.json"
    text = run(
        "pip-licenses", f"--python={python}", "--from=mixed", "--format=json", "--order=name"
    )
    unknown = [part["Name"] for part in json.loads(text) if part["License"] in ("", "UNKNOWN")]
    if unknown:
        raise ReleaseError(f"no license is known of {', '.join(unknown)}")
    path.write_text(text)
    return path


def write_checksums() -> Path:
    """Write the SHA-256 of every file of the release, as `sha256sum --check` reads them."""
    files = sorted(path for path in DIST.iterdir() if path.name.startswith("sully-"))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    path = DIST / CHECKSUMS
    path.write_text("\n".join(sums) + "\n")
    return path
