"""What a guide says to type works, and prints what the guide shows.

A guide is a page in docs/guides; its commands run one after the other against a control plane of
its own, in a copy of the examples.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.console import commands, matches
from house.project import ROOT
from sully.testing.cluster import process

QUICK = ("--store", "memory", "--hollow-start-seconds", "0", "--hollow-stop-seconds", "0")
# guide → the flags of its control plane
GUIDES = {
    "cluster-maintenance": ("--hollow-nodes", "1", "--hollow-clusters", "3"),
    "degraded-device": ("--hollow-nodes", "3", "--devices-per-node", "2"),
    "firmware-update": ("--hollow-nodes", "3", "--devices-per-node", "2"),
    "health-monitor": ("--hollow-nodes", "2", "--devices-per-node", "2"),
    "explain": ("--hollow-nodes", "2", "--devices-per-node", "3"),
    "seeing": ("--hollow-nodes", "2", "--devices-per-node", "3"),
}


@pytest.mark.e2e
@pytest.mark.parametrize("guide", GUIDES)
def test_the_commands_of_a_guide_run(guide: str, any_kubectl: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(any_kubectl)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = 0
    with process(*QUICK, *GUIDES[guide]) as plane:
        environment = os.environ | {"KUBECONFIG": str(plane.kubeconfig), "PATH": path}
        for command in commands((ROOT / f"docs/guides/{guide}.md").read_text()):
            done = subprocess.run(
                ["bash", "-c", command.text],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            ran += 1
            assert done.returncode == 0, f"$ {command.text}\n{done.stdout}{done.stderr}"
            assert matches(command.output, done.stdout), f"$ {command.text}\n{done.stdout}"
    assert ran >= 3
