"""A bash in which `kubectl` is the program under test and talks to the control plane under test."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.kubectls import Kubectl
from e2e.session import settle
from sully.testing.patience import PATIENCE

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands in a folder of their own."""

    folder: Path
    namespace: str
    environment: dict[str, str]

    @classmethod
    def prepare(
        cls, kubectl: Kubectl, kubeconfig: str, namespace: str, folder: Path, home: Path
    ) -> "Shell":
        """Write what the commands find: a kubeconfig, a `kubectl`, the examples."""
        programs, work = folder / "bin", folder / "work"
        programs.mkdir()
        work.mkdir()
        home.mkdir(exist_ok=True)
        (programs / "kubectl").write_text(f'#!/bin/sh\nexec "{kubectl.path}" "$@"\n')
        (programs / "kubectl").chmod(0o755)
        (folder / "kubeconfig").write_text(kubeconfig)
        (work / "examples").symlink_to(_EXAMPLES)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(home),
            "KUBECONFIG": str(folder / "kubeconfig"),
            "NS": namespace,
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            # kubectl ends before it pays to collect garbage: a seventh of its processor time.
            "GOGC": "off",
        }
        return cls(work, namespace, environment)

    def run(self, command: str) -> str:
        """Run a command to its end; return what it printed, and its exit code if that is not 0."""
        with self.start(command) as child:
            try:
                printed, _ = child.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                printed = child.communicate()[0] + f"\n[still running after {PATIENCE} s]"
        code = f"[exit {child.returncode}]\n" if child.returncode else ""
        newline = "\n" if code and printed and not printed.endswith("\n") else ""
        return settle(printed + newline + code, self.namespace)

    def start(self, command: str) -> "subprocess.Popen[str]":
        """Start a command; the caller ends it."""
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
