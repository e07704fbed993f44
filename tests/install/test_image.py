"""The image: built from what is there, and run as nobody.

Its steps are taken here one by one, in a folder instead of in a container: what is copied, the
build, the environment, the user. What only a container engine can show is the base image.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.beside import APPLY, sully
from sully.install.manifests import manifests
from sully.install.workload import Settings
from sully.testing.cluster import process
from sully.testing.patience import PATIENCE

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "deploy" / "Containerfile").read_text().replace("\\\n", " ").splitlines()


def steps(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_what_is_copied_is_there() -> None:
    from_here = [text.split()[:-1] for text in steps("COPY") if not text.startswith("--from")]

    assert [name for names in from_here for name in names if not (ROOT / name).exists()] == []


def test_its_user_is_that_of_the_deployment() -> None:
    deployment = manifests(Settings())["controllers"][1]
    context = deployment["spec"]["template"]["spec"]["securityContext"]

    assert steps("USER") == [f"{context['runAsUser']}:{context['runAsGroup']}"]
    assert context["runAsUser"] > 0


def test_it_runs_a_program_of_the_project() -> None:
    (program,) = json.loads(steps("ENTRYPOINT")[0])

    assert re.search(rf'^{program} = "', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


@pytest.mark.parametrize("setting", ["PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"])
def test_it_writes_nothing_and_reports_everything_together(setting: str) -> None:
    assert setting in steps("ENV")[0].split()


@dataclass(frozen=True)
class Image:
    """What the steps brought about: the files below a folder, and how a container would run."""

    root: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run the program as the image does: its environment, its user, nothing it could write."""
        env = dict(part.split("=", 1) for part in steps("ENV")[0].split())
        env["PATH"] = env["PATH"].replace("/opt", f"{self.root}/opt").replace("$PATH", "/bin")
        program = shutil.which(json.loads(steps("ENTRYPOINT")[0])[0], path=env["PATH"])
        assert program is not None
        return subprocess.Popen(
            [*_nobody(), program, *arguments],
            env=env,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def files(self) -> dict[str, float]:
        """Return every file with when it was written."""
        return {str(path): path.lstat().st_mtime for path in self.root.rglob("*")}


def _nobody() -> list[str]:
    """Return what takes every right from a program: root may write also what is read-only."""
    if os.geteuid() != 0:
        return []
    value = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    # The user of the image must be able to reach the interpreter, which may be in a home.
    reachable = all(parent.stat().st_mode & 0o001 for parent in Path(sys.base_prefix).parents)
    user, _, group = steps("USER")[0].partition(":")
    become = [f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    return value + become if reachable else value


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """Take the steps of the build."""
    with tempfile.TemporaryDirectory(prefix="sully-image-") as name:
        root, build = Path(name), Path(name) / "build"
        root.chmod(0o755)
        build.mkdir()
        for text in steps("COPY"):
            if not text.startswith("--from"):
                _copy(text.split()[:-1], build)
        (step,) = steps("RUN")
        step = step.replace("/opt/sully", f"{root}/opt/sully")
        path = f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", step],
            cwd=build,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if "No matching distribution found" in done.stderr:
            pytest.skip("no package index: the image's packages cannot be had")
        assert done.returncode == 0, done.stderr
        shutil.rmtree(build)
        for item in (root / "opt").rglob("*"):
            if not item.is_symlink():
                item.chmod(item.stat().st_mode & ~0o222)
        yield Image(root)
        for item in (path for path in (root / "opt").rglob("*") if path.is_dir()):
            item.chmod(0o755)


def _copy(names: list[str], to: Path) -> None:
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, to)


@pytest.mark.slow
def test_the_program_runs_from_what_was_built(image: Image) -> None:
    before = image.files()
    asked = [image.start("version"), image.start(*json.loads(steps("CMD")[0]))]
    items = [item.communicate(timeout=PATIENCE)[0] for item in asked]

    assert [item.returncode for item in asked] == [0, 0], items
    assert "Usage:\n  sully COMMAND" in items[1]
    assert image.files() == before
    assert any(path.endswith("site-packages/sully/cli/main.py") for path in before)


@pytest.mark.slow
def test_it_does_what_the_deployment_reports(image: Image) -> None:
    deployment = manifests(Settings())["controllers"][1]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    listen = ["--metrics-listen=127.0.0.1:0" if "metrics" in a else a for a in container["args"]]
    with process("--disable-controllers", "--store", "memory") as up:
        assert sully(up.kubeconfig, *APPLY).returncode == 0
        config = image.root / "kubeconfig"
        config.write_text(up.kubeconfig.read_text())
        config.chmod(0o644)
        child = image.start(*listen, f"--kubeconfig={config}")
        assert child.stdout is not None
        led = next((line for line in child.stdout if "leading since" in line), "")
        child.terminate()
        rest, _ = child.communicate(timeout=PATIENCE)

    assert "lease sully-system/sully-controllers" in led
    assert (child.returncode, "stopped" in rest) == (0, True)
