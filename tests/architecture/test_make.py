"""`make` finds a Python that is new enough, or reports what is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from architecture.project import ROOT

NEW = '#!/bin/sh\ncase "$1" in -c) exit 0;; esac\nmkdir -p .venv/bin\necho "$0 $*" >.venv/bin/pip\n'
OLD = "#!/bin/sh\nexit 1\n"
HALF = NEW + "exit 1\n"
FOUND: dict[str, tuple[dict[str, str], str, str | None]] = {
    "the usual one": ({"python3": NEW, "python3.12": NEW}, "", "python3"),
    "an old one first": ({"python3": OLD, "python3.12": NEW}, "", "python3.12"),
    "none of the usual name": ({"python3.11": NEW}, "", "python3.11"),
    "the one that is asked for": ({"python3": NEW, "mine": NEW}, "PYTHON=mine", "mine"),
    "only old ones": ({"python3": OLD, "python3.11": OLD}, "", None),
    "an old one that is asked for": ({"python3": NEW, "mine": OLD}, "PYTHON=mine", None),
    "one that stops halfway": ({"python3": HALF}, "", None),
}


@pytest.mark.parametrize(("programs", "configured", "want"), FOUND.values(), ids=FOUND)
def test_make_finds_python(
    programs: dict[str, str], configured: str, want: str | None, tmp_path: Path
) -> None:
    for name, script in programs.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    for name in ("sh", "mkdir", "getconf", "expr"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    # What a first try left that was interrupted: it must not be taken for whole.
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").touch()

    ran = subprocess.run(
        [
            shutil.which("make") or "make",
            "-f",
            str(ROOT / "Makefile"),
            ".venv/bin/pip",
            configured or "PYTHON=",
        ],
        cwd=tmp_path,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    made = tmp_path / ".venv/bin/pip"
    used, *words = made.read_text().split() if made.exists() else ("",)
    assert (Path(used).name or None, ran.returncode == 0) == (want, want is not None), ran.stderr
    assert words == ([] if want is None else ["-m", "venv", "--clear", ".venv"])
