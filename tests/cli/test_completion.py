"""Completion: what the last word could become."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sully.cli.completion import SCRIPTS, candidates, kubectl
from sully.cli.main import COMMANDS, main
from sully.cli.names import TIMEOUT_SECONDS, TIMEOUT_VARIABLE
from sully.domain.planning.rules.taint_grammar import DEVICE_EFFECTS
from sully.testing.patience import PATIENCE


def _with(key: str, beginning: str) -> list[str]:
    return [f"{key}{effect}" for effect in DEVICE_EFFECTS if effect.startswith(beginning)]


CASES = {
    "commands": ([""], list(COMMANDS)),
    "nothing typed at all": ([], list(COMMANDS)),
    "the beginning of a command": (["dev"], ["devices"]),
    "flags": (["devices", "--t"], ["--tainted"]),
    "values of a flag": (["devices", "--output", ""], ["table", "wide", "json", "yaml", "name"]),
    "values of its short form": (["devices", "-o", "w"], ["wide"]),
    "a flag whose value is free": (["devices", "--node", ""], []),
    "a word with choices": (["evictions", "p"], ["pause"]),
    "behind a flag with a value": (["history", "--since", "1h", "r"], ["rule"]),
    "behind a flag without": (["evictions", "--watch", "re"], ["resume"]),
    "no more words": (["evictions", "pause", "x", ""], []),
    "shells": (["completion", ""], list(SCRIPTS)),
    "what to taint": (["taint", ""], ["device", "node", "class", "cluster"]),
    "an effect": (["taint", "device", "x", "a.b/c:NoE"], _with("a.b/c:", "NoE")),
    "an effect of clusters": (
        ["plan", "cluster", "x", "k:NoSelectI"],
        ["k:NoSelectIfNew"],
    ),
    "an effect of what clusters are called, too": (
        ["taint", "mcl", "x", "k:NoSelectI"],
        ["k:NoSelectIfNew"],
    ),
    "an effect where a colon is a word, as in bash": (
        ["taint", "device", "x", "a.b/c", ":", "NoS"],
        ["NoSchedule"],
    ),
    "values behind an equals sign": (["devices", "--output=j"], ["--output=json"]),
    "flags before the command": (["--context", "c", "evictions", "res"], ["resume"]),
    "a command behind flags": (["-n", "team", "--context=c", "ev"], ["evictions"]),
    "a whole command behind flags": (["-n", "team", "devices"], ["devices"]),
    "a flag before the command": (["--kubec"], ["--kubeconfig"]),
    "the value of a flag before the command": (["-n", "ev"], []),
    "the beginning of KIND/NAME": (["explain", "pl"], ["placement"]),
    "a flag whose value may be left out": (
        ["taint", "--dry-run", ""],
        ["device", "node", "class", "cluster"],
    ),
    "no command": (["nope", ""], []),
    "help about a command": (["help", "evi"], ["evictions"]),
}


@pytest.mark.parametrize(("arguments", "want"), CASES.values(), ids=CASES)
def test_candidates(
    arguments: list[str], want: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))  # no server, so no names

    assert candidates(arguments) == want


class Late(BaseHTTPRequestHandler):
    """Answers when whoever waits as usual has given up."""

    def do_GET(self) -> None:
        threading.Event().wait(1.5 * TIMEOUT_SECONDS)
        body = b'{"items": [{"metadata": {"name": "worker-0"}}]}'
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(("seconds", "want"), [("", []), (str(PATIENCE), ["worker-0"])])
def test_a_slow_server_may_be_waited_for(
    seconds: str, want: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setenv(TIMEOUT_VARIABLE, seconds)
    with ThreadingHTTPServer(("127.0.0.1", 0), Late) as server:
        config.write_text(
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
            "contexts: [{name: there, context: {cluster: c}}]\ncurrent-context: there\n"
        )
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        result = candidates(["devices", "--node", "wor"])
        server.shutdown()
        serving.join()

    assert result == want


def test_words_with_dashes_reach_the_completer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "complete", "--", "devices", "--"]) == 0

    assert "--tainted" in capsys.readouterr().out.split()


def test_kubectl_gets_a_directive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-sully", "devices", "--fr"])

    assert kubectl() == 0
    assert capsys.readouterr().out == "--free\n:4\n"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_are_right_for_their_shell(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)

    result = shutil.which(shell)
    if result is not None:
        subprocess.run([result, "-n", script], check=True)
    assert "sully completion complete --" in script.read_text()


@pytest.mark.slow
def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "sully").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sully.cli.main "$@"\n')
    (tmp_path / "sully").chmod(0o755)
    typed = """
    source <(sully completion bash)
    COMP_WORDS=(sully evictions --w) COMP_CWORD=2
    _sully
    echo "${COMPREPLY[@]}"
    """

    done = subprocess.run(
        ["bash", "-c", typed],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "--watch\n"


def test_the_program_answers_to_both_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for called, shown in (("/x/kubectl-sully", "kubectl sully devices"), ("/x/sully", "sully dev")):
        monkeypatch.setattr(sys, "argv", [called])

        assert main(["devices", "--help"]) == 0
        assert f"\nUsage:\n  {shown}" in capsys.readouterr().out
