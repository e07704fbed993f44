"""The image: built from what is there, and run as nobody."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sully.install.manifests import manifests
from sully.install.workload import Settings

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
def test_it_writes_nothing_and_says_everything_at_once(setting: str) -> None:
    assert setting in steps("ENV")[0].split()
