"""The packages of Debian 12 that the image is made of, pinned by version and SHA-256.

There is no base image: these files are the base, and requirements/image.sha256 lists them, as
`sha256sum --check` reads them. `make lock` writes it again from what Debian offers.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from urllib.parse import unquote

from release.project import ROOT, ReleaseError, run

PINS = ROOT / "requirements/image.sha256"
IMAGE = (
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libssl3", "libexpat1", "libffi8"),
    *("liblzma5", "libbz2-1.0", "libuuid1", "libcrypt1", "libsqlite3-0"),
    *("libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal", "python3.11"),
    *("tzdata", "netbase", "base-files", "media-types"),
)
BUILDAH = ("buildah", "libsubid4", "libgpgme11", "libassuan0", "libdevmapper1.02.1")
_RELEASE = Path("/etc/os-release")


class PackageUnavailableError(ReleaseError):
    """A pinned version that Debian no longer has, or a mirror that cannot be reached."""


def is_debian_12() -> bool:
    """Report whether this machine can download and unpack the packages."""
    lines = _RELEASE.read_text().splitlines() if _RELEASE.exists() else []
    return "VERSION_CODENAME=bookworm" in lines and shutil.which("apt-get") is not None


def pins(text: str) -> dict[str, tuple[str, str]]:
    """Return version and SHA-256 of each package in a list of files."""
    found = {}
    for line in text.splitlines():
        digest, name = line.split()
        package, version, _ = unquote(name).split("_")
        found[package] = (version, digest)
    return found


def unpack(packages: tuple[str, ...], scratch: Path, to: Path) -> None:
    """Download the pinned versions, compare their hashes, and unpack them into a folder."""
    pinned = pins(PINS.read_text())
    asked = [f"{name}={pinned[name][0]}" for name in packages]
    try:
        files = _download(asked, scratch)
    except ReleaseError as error:
        raise PackageUnavailableError(
            f"{error}  a pinned package cannot be had: if Debian has a newer one, run make lock"
        ) from error
    for path in files:
        package = path.name.split("_")[0]
        if _digest(path) != pinned[package][1]:
            raise ReleaseError(f"{path.name} is not the file of {PINS.relative_to(ROOT)}")
        run(Path("dpkg"), "--extract", path, to)


def write_pins(scratch: Path) -> None:
    """Write the list from the packages that Debian offers now."""
    files = _download([*IMAGE, *BUILDAH], scratch)
    PINS.write_text("".join(f"{_digest(path)}  {path.name}\n" for path in files))


def _download(packages: list[str], folder: Path) -> list[Path]:
    folder.mkdir()
    folder.chmod(0o777)  # apt downloads as a user without privileges
    run(Path("apt-get"), "--quiet", "download", *packages, cwd=folder)
    return sorted(folder.glob("*.deb"))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
