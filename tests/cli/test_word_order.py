"""Flags may stand before, between and behind words, as people type them."""

import pytest

from sully.cli.main import build_parser

EXPLAIN = (
    "explain -n lab pod worker",
    "explain pod -n lab worker",
    "explain pod worker -n lab",
    "explain pod worker --namespace=lab",
)
PLAN = (
    "plan --rate 5 device a/b/c key:NoExecute",
    "plan device --rate 5 a/b/c key:NoExecute",
    "plan device a/b/c key:NoExecute --rate 5",
)


@pytest.mark.parametrize("line", EXPLAIN)
def test_explain(line: str) -> None:
    found = build_parser("explain").parse_args(line.split())

    assert (found.kind, found.name, found.namespace) == ("pod", "worker", "lab")


@pytest.mark.parametrize("line", PLAN)
def test_plan(line: str) -> None:
    found = build_parser("plan").parse_args(line.split())

    assert (found.words, found.rate) == (["device", "a/b/c", "key:NoExecute"], 5)


def test_the_end_of_a_removed_taint_is_no_flag() -> None:
    found = build_parser("taint").parse_args(
        ["taint", "device", "a/b/c", "--yes", "key:NoExecute-"]
    )

    assert found.words == ["device", "a/b/c", "key:NoExecute-"]


def test_what_nobody_knows_is_still_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser("plan").parse_args(["plan", "device", "--what", "a/b/c"])

    assert "unrecognized arguments: --what" in capsys.readouterr().err
