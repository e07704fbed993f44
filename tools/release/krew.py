"""The kubectl plugin for krew: an archive, and the manifest that describes it.

krew only unpacks. So the archive has the wheel, its pinned requirements, and a launcher that
installs both into an environment of its own the first time.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import yaml

from release.bom import write_checksums
from release.project import DIST, ROOT, ReleaseError, run, source_date, version

_SYSTEMS = (("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64"))
LAUNCHER = """\
#!/bin/sh
# Runs Sully from an environment of its own, which the first run creates.
set -eu
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
home=${XDG_CACHE_HOME:-$HOME/.cache}/sully/VERSION
if [ ! -e "$home/installed" ]; then
  for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
    python=
  done
  [ -n "$python" ] || { echo "error: kubectl sully needs Python 3.11 or newer" >&2; exit 1; }
  echo "installing Sully VERSION into $home" >&2
  "$python" -m venv --clear "$home"
  "$home/bin/python" -m pip install --quiet --no-deps --require-hashes -r "$here/run.txt" >&2
  "$home/bin/python" -m pip install --quiet --no-deps "$here"/*.whl >&2
  touch "$home/installed"
fi
exec "$home/bin/kubectl-sully" "$@"
"""


def archive(wheel: Path, folder: Path = DIST) -> Path:
    """Write the archive; equal contents are equal bytes."""
    path = folder / f"sully-{version()}-krew.tar.gz"
    contents = {
        "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
        "kubectl-sully": (LAUNCHER.replace("VERSION", version()).encode(), 0o755),
        "run.txt": ((ROOT / "requirements/run.txt").read_bytes(), 0o644),
        wheel.name: (wheel.read_bytes(), 0o644),
    }
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=source_date()) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, (content, mode) in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), mode, source_date()
            tar.addfile(entry, io.BytesIO(content))
    return path


def manifest(path: Path, url: str) -> dict[str, Any]:
    """Return what krew has to know about an archive that can be downloaded below this URL."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    platforms = [
        {
            "selector": {"matchLabels": {"os": system, "arch": machine}},
            "uri": f"{url.rstrip('/')}/{path.name}",
            "sha256": digest,
            "files": [{"from": "*", "to": "."}],
            "bin": "kubectl-sully",
        }
        for system, machine in _SYSTEMS
    ]
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "sully"},
        "spec": {
            "version": f"v{version()}",
            "shortDescription": "Taint, drain and explain devices",
            "description": "Shows devices of clusters that use DRA, with their taints and the pods"
            " that use them, and which pods would be evicted before you change anything.\n",
            "caveats": "Needs Python 3.11 or newer. The first run installs it into your cache.\n",
            "platforms": platforms,
        },
    }


def krew(url: str = "") -> None:
    """Write archive and manifest from the wheel in `dist/`; use them as krew does."""
    if not url.startswith("https://"):
        raise ReleaseError("usage: make krew URL=https://HOST/PATH, where the archive will be")
    wheels = list(DIST.glob("sully-*.whl"))
    if len(wheels) != 1:
        raise ReleaseError("no wheel in dist/: run make dist first")
    path = archive(wheels[0])
    write_checksums()
    (DIST / "sully.krew.yaml").write_text(yaml.safe_dump(manifest(path, url), sort_keys=False))
    print(f"dist/{path.name}, dist/sully.krew.yaml: {use(path)}")


def use(path: Path) -> str:
    """Unpack an archive, link to the launcher and run it twice; return what it printed."""
    with tempfile.TemporaryDirectory(prefix="sully-krew-") as name:
        plugin, program = Path(name) / "store", Path(name) / "kubectl-sully"
        with tarfile.open(path) as tar:
            tar.extractall(plugin, filter="data")
        program.symlink_to(plugin / "kubectl-sully")
        cache = {"XDG_CACHE_HOME": f"{name}/cache"}
        run(program, "version", env=cache)
        return run(program, "version", env=cache).strip()
