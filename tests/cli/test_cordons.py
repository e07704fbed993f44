"""What `sully cordon` prints about cordons that exist."""

from __future__ import annotations

import re

import pytest

from sully.cli.main import main
from sully.testing.server import serve

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def test_cordons_of_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(nodes=2, devices_per_node=2) as server:

        def cordon(*words: str) -> str:
            assert main(["cordon", *words, "--yes", "--kubeconfig", str(server.kubeconfig)]) == 0
            return re.sub(rf"cordon-\S+|{TIME}", "X", capsys.readouterr().out)

        first = cordon("node", "worker-0000")
        wider = cordon("device", "gpu.sully.dev/worker-000[01]/*")
        shorter = cordon("node", "worker-0000", "--for", "1h")
        again = cordon("node", "worker-0000")

    assert "\n2 devices cordoned.\n  to undo" in first
    assert "\n2 devices cordoned, 2 devices already cordoned.\nnote: devices that" in wider
    assert "2 devices already cordoned.\nnote: X expires at no time -> X\n  to undo" in shorter
    assert "2 devices already cordoned.\nnote: X expires at X; --for sets another time\n" in again
