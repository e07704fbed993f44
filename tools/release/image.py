"""The container image, built without a daemon and without a base image: `make image`.

Its files are Python and its libraries, from pinned packages of Debian 12 (debian.py), and the wheel
in `dist/` with its pinned requirements. There is no shell and no package manager in it.
buildah only turns the folder into an image and mounts it; deploy/Containerfile builds a similar one
from the official Python image.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from release import debian
from release.bom import write_checksums
from release.matrix import up
from release.project import DIST, ReleaseError, run, source_date, version

PYTHON = "/usr/bin/python3.11"
_UNUSED = ("usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/bug")
_USER = "65532:65532"
ENV = {
    "PATH": "/opt/sully/bin:/usr/bin",
    "PYTHONPATH": "/opt/sully/lib/python3.11/site-packages",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}
_SECRET = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/]{40}")


def image() -> None:
    """Build `dist/sully-VERSION-image.tar`, scan its files, and run it."""
    wheels = list(DIST.glob("sully-*.whl"))
    if len(wheels) != 1:
        raise ReleaseError("no wheel in dist/: run make dist first")
    if os.geteuid() != 0 or not debian.is_debian_12():
        raise ReleaseError("make image runs as root on Debian 12, also in a user namespace")
    with tempfile.TemporaryDirectory(prefix="sully-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        tree = files(folder, wheels[0])
        if found := list(findings(tree)):
            raise ReleaseError("\n".join(["the image has", *found]))
        path = _commit(folder, tree)
    write_checksums()
    print(f"dist/{path.name}: {path.stat().st_size >> 20} MiB, {digest(path)}")


def files(folder: Path, wheel: Path) -> Path:
    """Return a folder with the files of the image."""
    tree = folder / "tree"
    debian.unpack(debian.IMAGE, folder / "packages", tree)
    for unused in _UNUSED:
        shutil.rmtree(tree / unused, ignore_errors=True)
    for path in tree.rglob("*"):
        if not path.is_symlink() and path.stat().st_mode & 0o6000:
            path.chmod(path.stat().st_mode & 0o1777)
    install = ("uv", "pip", "install", "--quiet", "--no-deps", "--python", PYTHON)
    prefix = ("--prefix", str(tree / "opt/sully"))
    # Also the node agent for GPUs runs from this image.
    run(*install, *prefix, "--require-hashes", "--requirement", "requirements/monitor.txt")
    run(*install, *prefix, str(wheel))
    # Where uv found the wheel, and when: different on each machine.
    for path in (
        tree / "opt/sully/.lock",
        *tree.rglob("direct_url.json"),
        *tree.rglob("uv_*.json"),
    ):
        path.unlink(missing_ok=True)
    _compile(tree)
    return tree


def _compile(tree: Path) -> None:
    """Compile all modules, so that no start does; the same modules become the same bytes."""
    flags = ("-q", "-f", "-s", str(tree), "-p", "/", "--invalidation-mode", "unchecked-hash")
    folders = (tree / "usr/lib/python3.11", tree / "opt/sully/lib")
    run(Path(PYTHON), "-m", "compileall", *flags, *folders, env={"PYTHONHASHSEED": "0"})


def findings(tree: Path) -> Iterator[str]:
    """Yield what must not be in an image: privileges, secrets, files that anyone may change."""
    for path in sorted(tree.rglob("*")):
        if path.is_symlink():
            continue
        mode, name = path.stat().st_mode, path.relative_to(tree).as_posix()
        if mode & (stat.S_ISUID | stat.S_ISGID):
            yield f"a setuid or setgid file: {name}"
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            yield f"a file that anyone may change: {name}"
        if path.is_file() and _SECRET.search(path.read_bytes()):
            yield f"a private key: {name}"


def _commit(folder: Path, tree: Path) -> Path:
    programs = folder / "buildah"
    debian.unpack(debian.BUILDAH, folder / "buildah-packages", programs)
    (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    buildah = programs / "usr/bin/buildah"
    libraries = {"LD_LIBRARY_PATH": str(programs / "usr/lib/x86_64-linux-gnu")}
    storage: list[str | Path] = ["--root", folder / "storage", "--runroot", folder / "run"]
    storage += ["--storage-driver=vfs", "--registries-conf", "/dev/null"]
    policy = ("--signature-policy", folder / "policy.json")

    def call(*arguments: str | Path) -> str:
        return run(buildah, *storage, *arguments, env=libraries).strip()

    container = call("from", *policy, "scratch").splitlines()[-1]
    call("copy", container, tree, "/")
    call("config", *_config(), container)
    _use(Path(call("mount", container)))
    call("unmount", container)
    path = DIST / f"sully-{version()}-image.tar"
    path.unlink(missing_ok=True)
    stamp = f"--timestamp={source_date()}"
    flags = (*policy, stamp, "--disable-compression=false", "--quiet")
    call("commit", *flags, container, f"oci-archive:{path}")
    return path


def digest(path: Path) -> str:
    """Return the digest by which a registry names the image in an archive."""
    with tarfile.open(path) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        found: str = json.load(index)["manifests"][0]["digest"]
    return found


def _use(root: Path) -> None:
    """Run the program on the files of the image, as its user."""
    chroot = shutil.which("chroot") or "chroot"
    program = [chroot, f"--userspec={_USER}", str(root), "/opt/sully/bin/sully"]
    printed = run(Path(program[0]), *program[1:], "version", env=ENV).split()[1]
    ready, stopped = up(program, "/tmp/data", ENV)
    shutil.rmtree(root / "tmp/data")
    print(f"image, user {_USER}: {printed} ready after {ready} s, stopped with exit code {stopped}")


def _config() -> list[str]:
    labels = {"org.opencontainers.image.version": version()}
    return [
        *(f"--env={name}={value}" for name, value in ENV.items()),
        *(f"--label={name}={value}" for name, value in labels.items()),
        f"--user={_USER}",
        '--entrypoint=["sully"]',
        "--cmd=--help",
    ]
