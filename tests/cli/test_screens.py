"""Whole screens: what a command prints about the cluster in screens/cluster.yaml, to the letter.

Each file in screens/pipe and screens/terminal begins with a command; what follows is what it
prints, and `[exit N]` at the end if it fails. Files in screens/terminal are of 80 columns, those in
screens/terminal-120 of 120.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cli.terminals import environment, piped, terminal
from sully.cli.main import main

SCREENS = Path(__file__).parent / "screens"
CLUSTER = str(SCREENS / "cluster.yaml")


def _screens(folder: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((SCREENS / folder).glob("*.txt"))}


def _command(path: Path) -> tuple[list[str], str]:
    first, _, rest = path.read_text().partition("\n")
    arguments = shlex.split(first.removeprefix("$ sully "))
    return [*arguments, "--snapshot", CLUSTER], rest


def _whole(printed: str, code: int) -> str:
    return printed + (f"[exit {code}]\n" if code else "")


@pytest.mark.parametrize("path", _screens("pipe").values(), ids=_screens("pipe"))
def test_in_a_pipe(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, want = _command(path)

    code = main(arguments)

    shown = capsys.readouterr()
    assert _whole(shown.out + shown.err, code) == want


SHOWN = {
    f"{name}-{columns}": (path, columns)
    for folder, columns in (("terminal", 80), ("terminal-120", 120))
    for name, path in _screens(folder).items()
}


@pytest.mark.slow
@pytest.mark.parametrize(("path", "columns"), SHOWN.values(), ids=SHOWN)
def test_in_a_terminal(path: Path, columns: int) -> None:
    arguments, want = _command(path)
    coloured = "colour" in path.stem
    env = environment(NO_COLOR="" if coloured else "1")

    with terminal(*arguments, env=env, columns=columns) as screen:
        code = screen.end()

    assert _whole(screen.shown.replace("\x1b", "ESC"), code) == want
    if not coloured:
        assert max(len(line) for line in screen.shown.splitlines()) <= columns


EXPANDED = {
    "devices": ["devices", "a", "b"],
    "evictions": ["evictions", "list", "a", "b"],
    "rules": ["rules", "a", "b"],
}


@pytest.mark.parametrize("arguments", EXPANDED.values(), ids=EXPANDED)
def test_a_star_that_the_shell_expanded(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)

    code = main([*arguments, "--snapshot", CLUSTER])

    hint = "these are files of the current folder, as if the shell had expanded a *"
    assert code == 1
    assert capsys.readouterr().err.endswith(f"  {hint}; quote patterns: '*'\n")


@pytest.mark.slow
def test_a_file_from_the_standard_input() -> None:
    want = (SCREENS / "pipe" / "devices.txt").read_text().partition("\n")[2]

    done = piped(
        "devices", "--snapshot", "-", env=environment(), input_text=Path(CLUSTER).read_text()
    )

    assert (done.returncode, done.stdout) == (0, want)


REFUSED = {
    "no such file": (["devices", "--snapshot", "absent"], "absent"),
    "no objects": (["devices", "--snapshot", "/dev/null"], "no object of a supported kind"),
    "a watch of a file": (["devices", "--watch", "--snapshot", CLUSTER], "needs a server"),
    "a pause in a file": (["evictions", "pause", "x", "--snapshot", CLUSTER], "needs a server"),
    "pause without a rule": (
        ["evictions", "pause", "--snapshot", CLUSTER],
        "missing argument: RULE, or -l",
    ),
    "history without a name": (
        ["history", "pod", "--snapshot", CLUSTER],
        "missing argument: NAME",
    ),
    "a node that there is not": (
        ["devices", "worker-0", "--snapshot", CLUSTER],
        'error: device "worker-0" not found',
    ),
    "an action with a typo": (
        ["evictions", "pauze", "--snapshot", CLUSTER],
        'unknown value "pauze" (one of: list, watch, pause, resume) (did you mean "pause"?)',
    ),
    "an action that there is not": (
        ["evictions", "stop", "overheated", "--snapshot", CLUSTER],
        'unknown value "stop" (one of: list, watch, pause, resume)',
    ),
    "a policy that there is not": (
        ["policies", "x", "--snapshot", CLUSTER],
        'devicetaintpolicy "x" not found',
    ),
    "half a pattern": (["devices", "a//b", "--snapshot", CLUSTER], "DRIVER/POOL/DEVICE"),
    "an unknown class": (
        ["devices", "--class", "x", "--snapshot", CLUSTER],
        'deviceclass "x" not found',
    ),
    "an expression that fails": (
        ["devices", "--cel", "device.", "--snapshot", CLUSTER],
        "--cel device.:",
    ),
    "labels of no node": (["devices", "-l", "zone=a", "--snapshot", CLUSTER], "-l zone=a"),
    "a watch of records in a file": (["history", "-w", "--snapshot", CLUSTER], "needs a server"),
    "no kubeconfig": (["devices", "--kubeconfig", "absent"], "absent: no such file or directory"),
}


@pytest.mark.parametrize(("arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments)

    err = capsys.readouterr().err
    assert code in (1, 2)
    assert err.startswith("error: ")
    assert text in err
