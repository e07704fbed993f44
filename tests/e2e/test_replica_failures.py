"""Three machines with a replica and a member of etcd each, of which one is always with failures.

The short form of `make robust ARGS=replicas`: a leader is killed while a member of etcd hangs, and
the machine of another is cut off, while pods come and go. What is checked is in tools/replicas;
tests/robust/test_replica_checks.py shows that those checks can fail.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sully.testing.network import SYSTEM, NetworkError, entered

ROOT = Path(__file__).parent.parent.parent
PODS = 80
SEED = 20261116


@pytest.mark.e2e
@pytest.mark.slow
def test_nothing_is_lost_nothing_done_twice_and_controllers_move(tmp_path: Path) -> None:
    try:
        entered((), paths=(*SYSTEM, str(ROOT / ".cache" / "iproute2")))
    except NetworkError as error:
        pytest.skip(str(error))
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(ROOT / "tools" / "fault_injection.py"), "replicas"]
    command += ["--pods", str(PODS), "--faults", "2", "--seed", str(SEED)]
    done = subprocess.run([*command, "--figures", str(figures)], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(figures.read_text())
    assert document["problems"] == []
    assert document["bound"] == PODS
    assert PODS / 2 < document["evicted"] == document["records"] < PODS
    # Else nothing was proved: two leaders were lost, and clients and watches had to go elsewhere.
    assert len(document["failovers"]) == 2
    assert document["terms"] >= 3
    assert document["elsewhere"] > 0
    assert min(document["moves"], document["reads"], document["writes"]) > 50
