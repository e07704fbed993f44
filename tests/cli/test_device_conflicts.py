"""`sully devices` shows devices that were allocated to claims that cannot all use them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sully.cli.inspect.devices.printer import row
from sully.cli.main import main
from sully.cli.output.tables import Cell
from sully.client.objects import to_body
from sully.testing.builders import GPU, claim, device, pod, slice_
from sully.testing.clock import NOON
from sully.views.devices.device_views import DeviceViews
from sully.views.kinds import CLAIMS, CONSUMER_PODS, PATCHES, SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot

OBJECTS = (
    (SLICES, slice_("s", device(), device("gpu-1"))),
    (CLAIMS, claim("a", GPU, pods=("p",))),
    (CLAIMS, claim("b", GPU, pods=("q",), namespace="other")),
    (CONSUMER_PODS, pod("p", "a")),
    (CONSUMER_PODS, pod("q", "b", namespace="other")),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([to_body(kind, body) for kind, body in OBJECTS]))
    return path


def test_table_and_remedy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--snapshot", str(file)]) == 0

    printed = capsys.readouterr()
    assert "default/p, other/q (conflict: allocated to 2 claims)" in printed.out
    assert printed.err.count("conflict") == 0
    assert (
        f"warning: 1 device is allocated to claims that cannot all use it: delete the pods that"
        f" use such a device; see 'sully explain device {GPU}'"
    ) in printed.err


def test_document(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--snapshot", str(file), "-o", "json"]) == 0

    first, second = json.loads(capsys.readouterr().out)["devices"]
    assert first["conflict"] == {
        "reason": "AllocatedTwice",
        "claims": [{"namespace": "default", "name": "a"}, {"namespace": "other", "name": "b"}],
    }
    assert "conflict" not in second


def test_color() -> None:
    kinds = {
        kind: [body for of, body in OBJECTS if of is kind]
        for kind in (SLICES, CLAIMS, CONSUMER_PODS)
    }
    snapshot = Snapshot([Objects(kind, bodies) for kind, bodies in kinds.items()], taken=NOON)
    views = DeviceViews(
        snapshot.inventory, snapshot.usage, snapshot.of(PATCHES), plane=snapshot.control_plane
    )

    styles = [
        [cell.style for cell in row(view, NOON, wide=False) if isinstance(cell, Cell)]
        for view in views.all(NOON)
    ]

    assert styles == [["", "red"], ["", ""]]
