"""The commands of a guide work, and prints what the guide shows.

A guide is a page in docs/guides; its commands run one after the other against a control plane of
its own, with the flags that the page starts it with, in a copy of the examples.
"""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from architecture.project import ROOT
from docs.console import commands, run_all
from docs.pages import flags, mentioned, unexplained
from e2e.beside import plane as controlled
from kube.columns import cells
from sully.testing.cluster import process
from sully.testing.remote import controllers

QUICK = ("--simulated-start-seconds", "0", "--simulated-stop-seconds", "0")
"""Pods that start and stop immediately, where there are nodes for them."""
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs/guides").glob("*.md"))}
ITSELF = ("backup", "controllers", "etcd")
"""About the process and its files: these run once, with everything inside, on a disk."""
RUN = {name: page for name, page in PAGES.items() if any(commands(page))}


@pytest.mark.e2e
@pytest.mark.parametrize("guide", [name for name in RUN if name not in ITSELF])
def test_the_commands_of_a_guide_run(
    guide: str, where: str, any_kubectl: Path, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    arguments = flags(PAGES[guide])
    quick = QUICK if "--simulated-nodes" in arguments else ()
    with controlled(where, "--store", "memory", *quick, *arguments) as plane:
        run_all(
            PAGES[guide],
            where=tmp_path,
            scratch=tmp_path,
            kubeconfig=plane.kubeconfig,
            kubectl=any_kubectl,
        )


@pytest.mark.e2e
@pytest.mark.parametrize("guide", [name for name in RUN if name in ITSELF])
def test_the_commands_of_a_guide_about_the_server_run(
    guide: str, any_kubectl: Path, tmp_path: Path
) -> None:
    arguments = flags(PAGES[guide])
    with ExitStack() as running:
        plane = running.enter_context(process(*arguments, data_dir=tmp_path / "data"))
        if "--disable-controllers" in arguments:
            # As the page does in the next line, which continues until a user stops it.
            running.enter_context(controllers(plane.kubeconfig)).wait_for("leading since")
        run_all(
            PAGES[guide],
            where=tmp_path,
            scratch=tmp_path,
            kubeconfig=plane.kubeconfig,
            kubectl=any_kubectl,
        )


@pytest.mark.parametrize("guide", PAGES)
def test_every_command_is_run_or_reports_why_not(guide: str) -> None:
    assert list(unexplained(PAGES[guide])) == []


@pytest.mark.parametrize("guide", PAGES)
def test_a_command_in_the_text_is_run_as_well(guide: str) -> None:
    ran = [command.text for command in commands(PAGES[guide])]
    if guide == "kubernetes":
        # Those of its table run on five servers in tests/kube/test_honest_table.py.
        ran += [cell.command for cell in cells()]

    assert [item for item in mentioned(PAGES[guide]) if not any(item in text for text in ran)] == []


def test_the_stories_are_run() -> None:
    stories = {"degraded-device", "firmware-update", "decommission", "cluster-maintenance"}
    stories |= {"cluster-offline", "explain", "health-monitor"}

    assert stories <= RUN.keys()
    assert all(len(list(commands(RUN[name]))) >= 3 for name in stories)
