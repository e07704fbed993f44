"""Networks that can be cut: who reaches whom, and what is reported where there can be none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from robust.reaching import CUTS
from sully.testing.network import SYSTEM, Network, NetworkError, entered

ROOT = Path(__file__).parent.parent.parent
TOOLS = ROOT / ".cache" / "iproute2"
ALL = frozenset(("client > one", "two > one", "one > three", "one > one", "two > three"))


@pytest.fixture(scope="module")
def reachable() -> dict[str, dict[str, bool]]:
    subprocess.run([ROOT / "tools" / "fetch-iproute2", TOOLS], check=True)
    program = [sys.executable, str(Path(__file__).with_name("reaching.py"))]
    command, environment = entered(program, paths=(*SYSTEM, str(TOOLS)))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_takes_away_what_it_should_and_nothing_more(
    cut: str, reachable: dict[str, dict[str, bool]]
) -> None:
    assert {way for way, reached in reachable[cut].items() if not reached} == CUTS[cut]
    assert reachable[cut].keys() == ALL


PROGRAMS = {
    "no ip": (("unshare", "nsenter", "setpriv", "tc"), "there is no `ip`: install iproute2"),
    "no unshare": (("ip", "nsenter", "tc", "setpriv"), "no `unshare`: install util-linux"),
    "no rights": (
        ("ip", "tc", "unshare", "nsenter", "setpriv"),
        "no network namespaces for us .*not today.*run it as root",
    ),
}


@pytest.mark.parametrize(("there", "reported"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_missing_is_reported(
    there: tuple[str, ...], reported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NetworkError, match=reported):
        entered(["true"], paths=())


def test_nobody_touches_the_network_outside() -> None:
    assert "SULLY_NETWORK" not in os.environ
    with pytest.raises(NetworkError, match="not started by `entered`"):
        Network(3).__enter__()
