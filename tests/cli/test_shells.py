"""Completion in real shells: what is on the line after a tab, with names from a running server.

zsh is driven in a pseudo-terminal, for only there it completes; fish and bash can be asked. The
shells are unpacked beside the project where they are not installed (tools/fetch-shells).
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.terminals import Terminal, environment
from e2e.cluster import Cluster
from suite_plugin import ROOT
from sully.cli.names import TIMEOUT_VARIABLE
from sully.testing.cluster import process
from sully.testing.patience import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
SHELLS = ROOT / ".cache/shells"
RULE = """
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: overheated}
spec: {deviceSelector: {pool: none}, taint: {key: example.com/hot, effect: NoSchedule}}
"""
# what is typed → what it becomes with a tab
LINES = {
    "a command": ("sully evic", "sully evictions "),
    "a flag": ("sully devices --tain", "sully devices --tainted "),
    "a value of a flag": ("sully devices -o js", "sully devices -o json "),
    "a rule": ("sully evictions pause over", "sully evictions pause overheated "),
    "a namespace": ("sully devices -n kube-pub", "sully devices -n kube-public "),
    "a namespace before the command": ("sully -n kube-pub", "sully -n kube-public "),
    "a command behind it": ("sully -n kube-public expl", "sully -n kube-public explain "),
    "a kind and a name in one word": ("sully explain rule/over", "sully explain rule/overheated "),
    "part of a device": (
        "sully devices gpu.sully.dev/wor",
        "sully devices gpu.sully.dev/worker-0000/",
    ),
    "another device": (
        "sully devices x gpu.sully.dev/wor",
        "sully devices x gpu.sully.dev/worker-0000/",
    ),
    "a key to remove": (
        "sully untaint device gpu.sully.dev/worker-0000/gpu-0 example.c",
        "sully untaint device gpu.sully.dev/worker-0000/gpu-0 example.com/hot ",
    ),
    "a whole device": (
        "sully taint device gpu.sully.dev/worker-0000/",
        "sully taint device gpu.sully.dev/worker-0000/gpu-0 ",
    ),
}


@pytest.fixture(scope="module")
def shells() -> Path:
    subprocess.run([ROOT / "tools/fetch-shells", SHELLS], check=True)
    return SHELLS


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, any_kubectl: Path) -> Iterator[dict[str, str]]:
    """Return what a shell runs in: our program on the PATH, and a server with names."""
    folder = tmp_path_factory.mktemp("bin")
    for name, module in (("sully", "main"), ("kubectl-sully", "main")):
        _script(folder / name, f'"{sys.executable}" -m sully.cli.{module} "$@"')
    code = "import sys; from sully.cli.completion import kubectl; sys.exit(kubectl())"
    _script(folder / "kubectl_complete-sully", f'"{sys.executable}" -c "{code}" "$@"')
    flags = ("--store", "memory", "--simulated-nodes", "1", "--devices-per-node", "1")
    with process(*flags) as up:
        result = environment(up.kubeconfig)
        apply = [str(any_kubectl), "apply", "-f", "-"]
        subprocess.run(apply, input=RULE, env=result, text=True, check=True, capture_output=True)
        # `kubectl wait` fails if there is no node yet: the server creates them when it is ready.
        cluster = Cluster(any_kubectl, up.kubeconfig, folder)
        cluster.listed(bool, "resourceslices")
        path = f"{folder}:{result['PATH']}"
        yield result | {"PATH": path, "HOME": str(folder), TIMEOUT_VARIABLE: str(PATIENCE)}


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\nexec {text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(("typed", "want"), LINES.values(), ids=LINES)
def test_bash(typed: str, want: str, env: dict[str, str]) -> None:
    words = typed.split(" ")
    listed = " ".join(f"'{word}'" for word in words)
    asked = f"""
    source <(sully completion bash)
    COMP_WORDS=({listed}) COMP_CWORD={len(words) - 1}
    compopt() {{ :; }}
    _sully
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(
        ["bash", "-c", asked], env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == [want.split(" ")[len(words) - 1]]
    assert done.stderr == ""


@pytest.mark.parametrize(("typed", "want"), LINES.values(), ids=LINES)
def test_fish(typed: str, want: str, env: dict[str, str], shells: Path) -> None:
    asked = f"sully completion fish | source; complete -C '{typed}'"

    done = subprocess.run(
        [shells / "fish", "--no-config", "-c", asked],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == [want.split(" ")[len(typed.split(" ")) - 1]]


@contextmanager
def zsh(shells: Path, env: dict[str, str], folder: Path) -> Iterator[Terminal]:
    """Run a zsh that completes, as one does after compinit in ~/.zshrc."""
    (folder / ".zshenv").write_text('[[ -n "$ZSH_MODULES" ]] && module_path=("$ZSH_MODULES")\n')
    (folder / ".zshrc").write_text(
        "unsetopt prompt_cr prompt_sp beep\nPS1='> '\n"
        f"autoload -Uz compinit && compinit -u -d '{folder}/dump'\n"
        "source <(sully completion zsh)\necho ready\n"
    )
    keyboard, screen = pty.openpty()
    child = subprocess.Popen(
        [shells / "zsh", "-i"],
        env=env | {"ZDOTDIR": str(folder), "TERM": "dumb", "COLUMNS": "200"},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    )
    os.close(screen)
    try:
        yield Terminal(child, keyboard)
    finally:
        child.kill()
        child.wait()
        os.close(keyboard)


def test_zsh(env: dict[str, str], shells: Path, tmp_path: Path) -> None:
    with zsh(shells, env, tmp_path) as screen:
        screen.wait_for("ready")
        for typed, want in LINES.values():
            screen.wait_for("> ")
            screen.type(f"{typed}\t")
            screen.wait_for(want)
            screen.type("\x15\n")  # empties the line


def test_kubectl(env: dict[str, str], any_kubectl: Path) -> None:
    """kubectl's own completion asks the plugin; that is what shells run for `kubectl sully …`."""
    for typed, want in LINES.values():
        words = typed.split(" ")[1:]

        done = subprocess.run(
            [any_kubectl, "__complete", "sully", *words],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )

        assert done.stdout.splitlines()[0] == want.split(" ")[len(words)], done


def test_a_server_that_is_unreachable_has_no_names(env: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: there, context: {cluster: c}}]\ncurrent-context: there\n"
    )
    asked = ["sully", "completion", "complete", "--", "evictions", "pause"]
    away: dict[str, Any] = {
        "env": env | {"KUBECONFIG": str(config)},
        "capture_output": True,
        "text": True,
    }

    names = subprocess.run([*asked, ""], check=True, **away)
    contexts = subprocess.run([*asked, "--context", ""], check=True, **away)

    assert (names.stdout, names.stderr) == ("", "")
    assert contexts.stdout == "there\n"
