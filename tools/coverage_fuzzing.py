"""Searches for input that Sully does not refuse properly, guided by coverage (atheris).

    python tools/coverage_fuzzing.py TARGET [flags of libFuzzer] [folders with inputs]

`make robust ARGS=atheris` runs it for each target of tests/robust/inputs/targets.py, for a time
each, with the corpus there. New inputs are kept in build/fuzz/TARGET. An input that breaks a
target is printed and kept too: add it to the corpus with the fix.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOUND = ROOT / "build/fuzz"
LONGEST_SECONDS, MOST_MEMORY = 20, 2048
"""What one input may take: seconds, and MiB of the whole process."""
MISSING = "atheris is not installed: .venv/bin/pip install atheris (Linux, Python 3.11 to 3.13)"


def run(seconds: int, seed: int) -> int:
    """Fuzz each target for some seconds; 0 if nothing was found."""
    if importlib.util.find_spec("atheris") is None:
        print(f"  PROBLEM {MISSING}")
        return 1
    names = _targets().NAMES
    failed = [name for name in names if not _fuzz(name, seconds, seed)]
    print(f"  {len(names)} targets, {seconds} s each, broken: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def _fuzz(name: str, seconds: int, seed: int) -> bool:
    kept = FOUND / name
    kept.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={seconds}",
        f"-seed={seed % 2**31 or 1}",
        f"-timeout={LONGEST_SECONDS}",
        f"-rss_limit_mb={MOST_MEMORY}",
        f"-artifact_prefix={kept}/broken-",
        "-max_len=4096",
    ]
    seeds = ROOT / "tests/robust/inputs/corpus" / name
    command = [sys.executable, __file__, name, *flags, str(kept), str(seeds)]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    lines = done.stderr.splitlines()
    runs = next((line for line in reversed(lines) if line.startswith("Done ")), "no end")
    print(f"  {name}: {runs}", flush=True)
    if done.returncode:
        print("\n".join(lines[-40:]))
    return done.returncode == 0


def _targets() -> Any:
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
    return importlib.import_module("robust.inputs.targets")


def main() -> None:
    """Be the process that fuzzes one target."""
    import atheris

    with atheris.instrument_imports(include=["sully"]):
        read = _targets().target(sys.argv[1])
    atheris.Setup([sys.argv[0], *sys.argv[2:]], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
