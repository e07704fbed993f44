"""`sully rules`: which sources of taints are listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import manifests
from manifests import DRIVER
from sully.cli.main import main

LABELLED = {
    "of a rule": ("team=hardware", ["a", "both"]),
    "of one of several": ("part=1", ["both"]),
    "of a patch": ("app=p", ["p"]),
    "of nothing": ("team=nobody", []),
    "absent": ("!team", ["p", DRIVER]),
}


@pytest.mark.parametrize(("selector", "names"), LABELLED.values(), ids=LABELLED)
def test_rules_with_labels(
    selector: str, names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    together = {"sully.dev/taint": "both", "team": "hardware"}
    tainted = {"name": "gpu-0", "taints": [{"key": "example.com/xid", "effect": "NoSchedule"}]}
    objects = [
        manifests.rule("a", "NoSchedule", labels={"team": "hardware"}),
        manifests.rule("b-0", "NoSchedule", labels=together | {"part": "0"}),
        manifests.rule("b-1", "NoSchedule", labels=together | {"part": "1"}),
        manifests.patch("p", {"taints": tainted["taints"]}, labels={"app": "p"}),
        manifests.slice_("s", "n1", devices=[tainted]),
    ]
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    flags = ("-A", "-l", selector, "--snapshot", str(file))
    assert main(["rules", "-o", "jsonpath={.sources[*].name}", *flags]) == 0
    assert capsys.readouterr().out.split() == names
