"""Whole screens of `sully plan` on the cluster in plans/cluster.yaml, to the letter.

Each .txt in plans/ begins with a command; what follows is what it prints, and `[exit N]` at the end
if that is not 0. Those in plans/terminal/ are of 80 columns.
"""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.terminals import environment, piped, terminal
from sully.cli.change.plan.printer import summary
from sully.cli.main import main
from sully.domain.planning.report import DecisionChange, Plan

PLANS = Path(__file__).parent / "plans"
PIPED = {path.stem: path for path in sorted(PLANS.glob("*.txt"))}
SHOWN = {path.stem: path for path in sorted((PLANS / "terminal").glob("*.txt"))}


def _command(path: Path) -> tuple[list[str], str]:
    first, _, rest = path.read_text().partition("\n")
    return [*shlex.split(first.removeprefix("$ sully ")), "--snapshot", "cluster.yaml"], rest


def _whole(printed: str, code: int) -> str:
    return printed + (f"[exit {code}]\n" if code else "")


@pytest.mark.parametrize("path", PIPED.values(), ids=PIPED)
def test_in_a_pipe(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PLANS)
    arguments, want = _command(path)

    code = main(arguments)

    shown = capsys.readouterr()
    assert _whole(shown.out + shown.err, code) == want


@pytest.mark.slow
@pytest.mark.parametrize("path", SHOWN.values(), ids=SHOWN)
def test_in_a_terminal(path: Path) -> None:
    arguments, want = _command(path)

    with terminal(*arguments, env=environment(), cwd=PLANS) as screen:
        code = screen.end()

    assert _whole(screen.shown, code) == want
    assert max(len(line) for line in screen.shown.splitlines()) <= 80


@pytest.mark.slow
def test_a_rule_from_the_standard_input() -> None:
    arguments = ("plan", "-f", "-", "--snapshot", "cluster.yaml", "-o", "json")
    input_text = (PLANS / "rule.yaml").read_text()

    done = piped(*arguments, env=environment(), input_text=input_text, cwd=PLANS)

    plan = json.loads(done.stdout)
    assert (done.returncode, plan["kind"], plan["notRescheduled"]) == (0, "Plan", 0)
    assert [eviction["name"] for eviction in plan["evictions"]] == ["web-1", "train-0"]
    assert plan["evictions"][0]["replacement"]["node"] == "node-3"


def test_no_limits_as_text_are_not_limits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PLANS)
    plain = ["plan", "device", "*", "x:NoExecute", "--rate", "0", "--snapshot", "cluster.yaml"]
    limits = ["--default-evictions-per-second", "0", "--max-evictions-per-minute", "0"]

    codes = [main(plain), main([*plain, *limits])]

    shown = capsys.readouterr().out
    assert codes[0] == codes[1]
    assert shown == shown[: len(shown) // 2] * 2


WRONG = {
    "nothing to try": (["plan"], "specify either -f FILE, or a taint"),
    "both": (["plan", "-f", "rule.yaml", "device", "x:NoExecute"], "specify either"),
    "a kind without plans": (["plan", "-f", "node.yaml"], 'plans do not support kind "Node"'),
    "devices and clusters": (
        ["plan", "-f", "rule.yaml", "-f", "placement.yaml"],
        "cannot be planned together",
    ),
    "no such file": (["plan", "-f", "absent.yaml"], "absent.yaml"),
    "a page of the web": (
        ["plan", "-f", "https://example.com/a?b"],
        "URLs are not supported\n  curl -sSfL 'https://example.com/a?b' | sully plan -f -",
    ),
    "flags of a taint for a file": (
        ["plan", "-f", "rule.yaml", "--rate", "3", "--for", "2h"],
        "--for, --rate: cannot be used with -f; set it in the file",
    ),
    "to overwrite from a file": (["plan", "-f", "rule.yaml", "--overwrite"], "--overwrite: cannot"),
    "neither device nor cluster": (
        ["plan", "pod", "x:NoExecute"],
        'unknown value "pod" (one of: device, node, class, cluster)',
    ),
    "no taint": (["plan", "device", "a/b/c"], "no taint specified"),
    "no effect": (["plan", "device", "a", "x:Never"], 'unknown effect "Never"'),
    "no key": (["plan", "device", "a", ":NoExecute"], "no key"),
    "no devices": (["plan", "device", "x:NoExecute"], "no devices specified"),
    "half a pattern": (["plan", "device", "a//b", "x:NoExecute"], "DRIVER/POOL/DEVICE"),
    "a glob that matches nothing": (
        ["plan", "device", "z*", "x:NoExecute"],
        'no driver matches "z*"',
    ),
    "an invalid key": (
        ["plan", "device", "*", "x y:NoExecute"],
        'invalid taint "x y:NoExecute": key',
    ),
    "invalid CEL": (["plan", "device", "--cel", "}", "x:NoExecute"], "--cel }: compile error"),
    "no such cluster": (
        ["plan", "cluster", "mars", "x:NoSelect"],
        'managedcluster "mars" not found',
    ),
    "a device's effect for a cluster": (["plan", "cluster", "eu-1", "x:NoExecute"], "NoSelect"),
    "a taint that is not there": (["plan", "cluster", "eu-1", "x-"], "has no taint x"),
    "a name that is a number": (
        ["plan", "-f", "number.yaml", "--delete"],
        "metadata.name must be a string, not 5",
    ),
    "a rule that is not there": (
        ["plan", "-f", "rule.yaml", "--delete"],
        'devicetaintrule "firmware" not found',
    ),
}


@pytest.mark.parametrize(("arguments", "text"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_named(
    arguments: list[str],
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(PLANS)

    code = main([*arguments, "--snapshot", "cluster.yaml"])

    assert code in (1, 2)
    assert text in capsys.readouterr().err


def test_a_placement_that_only_loses_a_cluster_at_another_time_changes() -> None:
    """As with a taint that is set again: tolerationSeconds restart, and the result is the same."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    move = DecisionChange(
        time=now,
        after_seconds=600,
        placement="shop/front",
        removed_clusters=("us-1",),
        added_clusters=("eu-1",),
    )
    plan = Plan(start_time=now, subject="clusters", changes=(), decision_changes=(move,))

    assert summary(plan) == "1 placement would change."
