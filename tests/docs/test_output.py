"""docs/reference/output.md names every field that commands print for programs, and no other."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from architecture.project import ROOT
from cli.shapes import paths, type_paths
from sully.cli.main import main
from sully.client.transport import Key
from sully.domain.planning.report import Plan
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.testing.builders import rule, select
from sully.testing.clock import NOON
from sully.views.evictions import EvictionProgress
from sully.views.history import HistoryEntry

PAGE = (ROOT / "docs/reference/output.md").read_text()
CLI = Path(__file__).parent.parent / "cli"
DIAGNOSIS = "evictions[].replacement.diagnosis."
COMMANDS = {
    "sully devices": ("devices", "screens"),
    "sully evictions": ("evictions", "screens"),
    "sully history": ("history", "screens"),
}
SELDOM = {
    "devices[].users[].tolerations[].value",
    "evictions[].taint.value",
    "evictions[].evictedAtLeast",
    "evictions[].terminatingPods",
    "evictions[].terminatingPods[].namespace",
    "evictions[].terminatingPods[].name",
    "evictions[].terminatingPods[].graceEndTime",
    "history[].mayInclude",
    "history[].taint.value",
    "history[].causes[].value",
    "history[].deviceSelector.selectors",
}
"""Fields that the cluster of the tests has no use for; test_seldom_fields fills them."""


def told(section: str) -> set[str]:
    """Return the fields that the page has in a section."""
    text = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (found,) = (each for each in text if each.startswith(f"{section}\n"))
    return set(re.findall(r"^\| `([^`]+)` \|", found, re.MULTILINE))


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main([*words, "-o", "json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("section", "command"), COMMANDS.items(), ids=COMMANDS)
def test_fields(section: str, command: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    name, folder = command

    found = answer(capsys, name, "--snapshot", str(CLI / folder / "cluster.yaml"))

    assert set(paths(found)) == told(section) - SELDOM


def test_fields_of_a_plan(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CLI / "plans")
    device = answer(capsys, "plan", "-f", "everything.yaml", "--snapshot", "cluster.yaml")
    fleet = answer(capsys, "plan", "cluster", "eu-2", "x:NoSelect", "--snapshot", "cluster.yaml")

    can = {each for each in type_paths(Plan) if not each.startswith(DIAGNOSIS)}
    does = {
        each for one in (device, fleet) for each in paths(one) if not each.startswith(DIAGNOSIS)
    }
    assert told("sully plan") == can | {"kind", "notRescheduled", "unsatisfiedPlacements"}
    assert does <= told("sully plan")


def test_fields_of_a_diagnosis() -> None:
    assert told("A diagnosis") == set(type_paths(Diagnosis))


def test_fields_of_an_explanation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CLI / "explained")
    first = (CLI / "explained/pipe/pod-json.txt").read_text().partition("\n")[0]
    words = shlex.split(first.removeprefix("$ sully ").replace(" -o json", ""))

    found = answer(capsys, *words, "--snapshot", "cluster.yaml")

    assert set(paths(found)) == told("sully explain")


def test_seldom_fields() -> None:
    """What the page says of them is what the code writes."""
    from sully.api.resource.types import DeviceToleration
    from sully.cli.inspect.device_printer import _toleration_document

    written = _toleration_document(DeviceToleration(key="k", operator="Equal", value="v"))

    assert set(written) == {"key", "operator", "value"}
    assert set(told("sully devices")) >= {f"devices[].users[].tolerations[].{x}" for x in written}


def test_seldom_fields_of_evictions() -> None:
    from sully.cli.inspect.eviction_printer import document

    found = EvictionProgress(
        rule=rule("r", select()),
        pending={},
        terminating={Key("ns", "p"): NOON},
        evicted=1,
        complete=False,
        devices=1,
        state="terminating",
    )
    written = set(paths({"evictions": [document(found)]}))

    assert written <= told("sully evictions")
    assert written >= {each for each in SELDOM if "terminatingPods" in each or "AtLeast" in each}


def test_seldom_fields_of_history() -> None:
    from sully.cli.inspect.history_printer import document

    written = set(
        paths({"history": [document(HistoryEntry(time=NOON, what="tainted", uncertain=True))]})
    )

    assert "history[].mayInclude" in written
    assert written <= told("sully history")


def test_fields_of_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(answer(capsys, "version")) == told("sully version")
