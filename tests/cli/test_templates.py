"""`-o jsonpath=` and `-o custom-columns=` of all commands that print JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sully.cli.main import main
from sully.cli.output.printers import print_document, print_event
from sully.cli.output.templates import check

DOCUMENT: dict[str, Any] = {
    "devices": [
        {"device": "gpu-0", "node": "n1", "free": True, "taints": [{"key": "hot"}, {"key": "fw"}]},
        {"device": "gpu-1", "node": "n1", "free": False, "capacity": {"memory": {"value": "80Gi"}}},
    ],
    "total": 2,
}
PRINTED = {
    "one value": ("jsonpath={.total}", "2"),
    "with a root": ("jsonpath={$.total}", "2"),
    "several values": ("jsonpath={.devices[*].device}", "gpu-0 gpu-1"),
    "text around it": ("jsonpath=total: {.total}!", "total: 2!"),
    "quoted text": (r'jsonpath={.total}{"\n"}{"\t"}', "2\n\t"),
    "nothing there": ("jsonpath={.missing.name}", ""),
    "a boolean": ("jsonpath={.devices[0].free}", "true"),
    "a map": ("jsonpath={.devices[1].capacity}", '{"memory":{"value":"80Gi"}}'),
    "a filter": ("jsonpath={.devices[?(@.free==true)].device}", "gpu-0"),
    "a range": (
        'jsonpath={range .devices[*]}{.device} {.free}{"\\n"}{end}',
        "gpu-0 true\ngpu-1 false\n",
    ),
    "a range in a range": (
        "jsonpath={range .devices[*]}{.device}:{range .taints[*]}{.key},{end};{end}",
        "gpu-0:hot,fw,;gpu-1:;",
    ),
    "columns": (
        "custom-columns=DEVICE:.device,TAINTS:.taints[*].key",
        "DEVICE  TAINTS\ngpu-0   hot,fw\ngpu-1   <none>\n",
    ),
    "columns without dots and in braces": (
        "custom-columns=N:node,F:{.free}",
        "N   F\nn1  true\nn1  false\n",
    ),
}


@pytest.mark.parametrize(("output", "want"), PRINTED.values(), ids=PRINTED)
def test_printed(output: str, want: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(output)
    print_document(DOCUMENT, output, ("devices",))

    assert capsys.readouterr().out == want


def test_each_of_a_stream_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for type_ in ("ADDED", "DELETED"):
        print_event({"type": type_}, "jsonpath={.type}")

    assert capsys.readouterr().out == "ADDED\nDELETED\n"


REFUSED = {
    "no path": ("jsonpath=.total", "no path in braces"),
    "nothing": ("jsonpath=", "no path in braces"),
    "an open brace": ("jsonpath={.total", "invalid braces"),
    "an open range": ("jsonpath={range .devices[*]}{.node}", "{range} without {end}"),
    "an end too many": ("jsonpath={.total}{end}", "{end} without {range}"),
    "any depth": ("jsonpath={..name}", "unsupported at '..name'"),
    "a slice": ("jsonpath={.devices[0:2]}", "unsupported at '[0:2]'"),
    "a column without a path": ("custom-columns=NODE", 'invalid column "NODE"'),
    "no column": ("custom-columns=", 'invalid column ""'),
}


@pytest.mark.parametrize(("output", "text"), REFUSED.values(), ids=REFUSED)
def test_refused(output: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a server is asked: there is none here."""
    assert main(["devices", "-o", output, "--kubeconfig", "/nowhere"]) == 2
    assert text in capsys.readouterr().err


SNAPSHOT = Path(__file__).parents[2] / "examples/saved/fleet.yaml"
LISTS = {
    "devices": "custom-columns=NAME:.device",
    "rules": "custom-columns=NAME:.name,STATE:.state",
    "evictions": "custom-columns=NAME:.rule",
    "status": "custom-columns=NAME:.class",
}


@pytest.mark.parametrize(("command", "output"), LISTS.items(), ids=LISTS)
def test_rows_of_lists(command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    def lines(*flags: str) -> list[str]:
        assert main([command, "-o", output, "--snapshot", str(SNAPSHOT), *flags]) == 0
        return capsys.readouterr().out.splitlines()

    title, *rows = lines()

    assert title.startswith("NAME")
    assert lines("--no-headers") == rows
