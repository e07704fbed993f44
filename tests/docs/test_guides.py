"""What a guide says to type works, and prints what the guide shows.

A guide is a page in docs/guides; its commands run one after the other against a control plane of
its own, in a copy of the examples.
"""

import shutil
from pathlib import Path

import pytest

from docs.console import run_all
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
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    page = (ROOT / f"docs/guides/{guide}.md").read_text()
    with process(*QUICK, *GUIDES[guide]) as plane:
        where = {"where": tmp_path, "scratch": tmp_path}
        ran = run_all(page, kubeconfig=plane.kubeconfig, kubectl=any_kubectl, **where)
    assert ran >= 3
