"""What `sully cordon` prints about cordons that exist."""

from __future__ import annotations

import re

import pytest

from cli.terminals import environment, piped, terminal
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
    assert (
        "2 devices already cordoned.\nnote: X has another expiry: none -> X\n  to undo" in shorter
    )
    assert "2 devices already cordoned.\nnote: X expires at X; --for sets another time\n" in again


@pytest.mark.parametrize("command", ["cordon", "drain"])
def test_somebody_else_cordons_the_same_meanwhile(command: str) -> None:
    with serve(nodes=1, devices_per_node=2) as server:
        env = environment(server.kubeconfig)
        with terminal(command, "node", "worker-0000", env=env) as screen:
            screen.wait_for("to continue: ")
            assert piped("cordon", "node", "worker-0000", "--yes", env=env).returncode == 0
            screen.type("2\n")
            screen.wait_for("2 devices already cordoned.")
            assert screen.end() == 0


def test_a_rule_of_that_name_that_is_no_cordon_is_not_changed() -> None:
    with serve(nodes=1, devices_per_node=2) as server:
        env = environment(server.kubeconfig)
        names = piped("cordon", "node", "worker-0000", "--dry-run", "-o", "name", env=env).stdout
        name = names.strip().rpartition("/")[2]
        other = ("taint", "device", "worker-0000/gpu-0", "example.com/hot:NoSchedule", "--yes")
        with terminal("cordon", "node", "worker-0000", env=env) as screen:
            screen.wait_for("to continue: ")
            assert piped(*other, "--name", name, env=env).returncode == 0
            screen.type("2\n")
            screen.wait_for("exists and does not belong to a cordon")
            assert screen.end() == 1


def test_a_reason_that_replaces_another(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(nodes=1, devices_per_node=2) as server:

        def cordon(*words: str) -> str:
            command = ["cordon", "node", "worker-0000", *words, "--yes"]
            assert main([*command, "--kubeconfig", str(server.kubeconfig)]) == 0
            return re.sub(r"cordon-\S+", "X", capsys.readouterr().out)

        cordon("--reason", "fan broken")
        same = cordon("--reason", "fan broken")
        none = cordon()
        other = cordon("--reason", "sold")

    assert "another reason" not in same + none
    assert '\nnote: X has another reason: "fan broken" -> "sold"\n' in other


def test_uncordon_prints_the_deleted_rules(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(nodes=1, devices_per_node=2) as server:

        def run(*words: str) -> tuple[str, str]:
            assert main([*words, "--kubeconfig", str(server.kubeconfig)]) == 0
            printed = capsys.readouterr()
            return printed.out, printed.err

        written, _ = run("cordon", "node", "worker-0000", "--yes", "-o", "name")
        previewed, _ = run("uncordon", "node", "worker-0000", "--dry-run", "-o", "name")
        deleted, texts = run("uncordon", "node", "worker-0000", "-o", "name")

    assert written.startswith("devicetaintrule.resource.k8s.io/cordon-worker-0000-")
    assert deleted == previewed == written
    assert texts.endswith("2 devices uncordoned.\n")


def test_uncordon_asks_for_what_another_command_cordoned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = ("node", "worker-0000", "worker-0001")
    with serve(nodes=2, devices_per_node=2) as server:

        def run(*words: str) -> tuple[int, str]:
            code = main([*words, "--kubeconfig", str(server.kubeconfig)])
            printed = capsys.readouterr()
            return code, printed.out + printed.err

        run("cordon", "node", "worker-0001", "--yes")
        run("cordon", *both, "--yes")
        code, refused = run("uncordon", *both)
        assert code == 2
        assert "warning: other commands cordoned devices of this selection:" in refused
        assert "worker-0001/gpu-0" in refused
        assert "worker-0000/gpu-0" not in refused
        code, freed = run("uncordon", *both, "--yes")
        assert (code, "4 devices uncordoned." in freed) == (0, True)

        # What one command cordoned is one cordon, also when a part of it is gone.
        run("cordon", *both, "--yes")
        assert run("uncordon", "node", "worker-0000")[0] == 0
        assert run("uncordon", *both)[0] == 0
