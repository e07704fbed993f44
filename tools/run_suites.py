"""Starts a server for each suite, runs the suite in its own environment, and prints a table.

Fails if a case neither passes nor is out of scope (suites/out-of-scope.toml).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suites.catalog import SUITES, Suite
from suites.outcomes import HEADER, Judgment, judge, read, row

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tools" / "suites"
ENVIRONMENTS = ROOT / ".cache" / "suites"
SECONDS = 1800
"""How long a suite may take."""


def main() -> int:
    """Run the suites; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with one checkout per suite")
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], action="append")
    arguments = parser.parse_args()
    # Servers are stopped also then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    reasons = tomllib.loads((HERE / "out-of-scope.toml").read_text())
    chosen = [suite for suite in SUITES if not arguments.only or suite.name in arguments.only]
    judgments = {suite.name: _run(suite, arguments.folder, reasons) for suite in chosen}
    _print(judgments)
    ran = [judgment for judgment in judgments.values() if judgment is not None]
    return 0 if ran and all(judgment.holds for judgment in ran) else 1


def _run(suite: Suite, folder: Path, reasons: dict[str, dict[str, str]]) -> Judgment | None:
    checkout = (folder / suite.name).resolve()
    if not checkout.is_dir():
        return None
    python = _environment(suite, checkout)
    with tempfile.TemporaryDirectory() as scratch, _server(Path(scratch)) as kubeconfig:
        report = Path(scratch) / "report.xml"
        paths = [str(HERE / "plugins"), *([str(checkout / suite.path)] if suite.path else [])]
        environment = os.environ | {
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": os.pathsep.join(paths),
            "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        }
        command = [str(python.parent / "pytest"), "-p", "no:cacheprovider", "-q", "--tb=short"]
        if suite.version_module:
            environment["CHECKOUT_VERSION_MODULE"] = suite.version_module
            command += ["-p", "checkout_version"]
        command += [*suite.tests, f"--junitxml={report}"]
        subprocess.run(command, cwd=checkout, env=environment, timeout=SECONDS, check=False)
        cases = read(report.read_text()) if report.exists() else []
        return judge(cases, reasons.get(suite.name, {}))


def _environment(suite: Suite, checkout: Path) -> Path:
    """Return the Python of a suite's own virtual environment; install what it needs, once."""
    folder = ENVIRONMENTS / suite.name
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *suite.requirements], check=True)
        stamp.touch()
    for source, package in suite.copies.items():
        (site,) = folder.glob("lib/python*/site-packages")
        shutil.copytree(checkout / source, site / package, dirs_exist_ok=True)
    return python


@contextmanager
def _server(scratch: Path) -> Iterator[Path]:
    """Run `sully up` with a few simulated nodes; yield its kubeconfig."""
    data = scratch / "data"
    command = [str(Path(sys.executable).parent / "sully"), "up", "--data-dir", str(data)]
    command += ["--listen", "127.0.0.1:0", "--simulated-nodes", "3"]
    with (
        (scratch / "server.log").open("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("ready after"):
                    break
            else:
                raise SystemExit((scratch / "server.log").read_text())
            _prepare(data / "kubeconfig")
            yield data / "kubeconfig"
        finally:
            process.terminate()


def _prepare(kubeconfig: Path) -> None:
    kubectl = ["kubectl", "--kubeconfig", str(kubeconfig)]
    manifest = str(HERE / "kube-system.yaml")
    subprocess.run([*kubectl, "apply", "-f", manifest], check=True)
    ready = ["wait", "-f", manifest, "--for=condition=Ready", "--timeout=300s"]
    subprocess.run([*kubectl, *ready], check=True)


def _print(judgments: dict[str, Judgment | None]) -> None:
    lines = ["", HEADER, *(row(name, judgment) for name, judgment in judgments.items())]
    for name, judgment in judgments.items():
        if judgment is not None:
            lines += [
                f"unexpected in {name}: {case.name}: {case.outcome}: {case.text[:200]}"
                for case in judgment.unexpected
            ]
            lines += [f"no longer needed in {name}: {pattern}" for pattern in judgment.stale]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
