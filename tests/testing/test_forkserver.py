"""Forked commands behave as started ones: streams, environment, folder, signals, exit codes."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sully import __version__
from sully.testing import forkserver
from sully.testing.forkserver import COMMAND, run, start, start_module
from sully.testing.patience import PATIENCE


def started(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    """Run a command with an interpreter of its own."""
    done = subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def forked(
    *arguments: str, stdin: str | None = None, env: dict[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a command in a forked process."""
    done = run(*arguments, stdin_text=stdin, env=env)
    return done.returncode, done.stdout, done.stderr


COMMANDS: dict[str, tuple[str, ...]] = {
    "success": ("version",),
    "help": ("devices", "--help"),
    "wrong usage": ("devices", "--no-such-flag"),
    "unknown command": ("no-such-command",),
    "failure": ("devices", "--kubeconfig", "no-such-file"),
    "letters outside of ASCII": ("devices", "--kubeconfig", "Gerät-😀"),
    "bytes that are not text": ("devices", "--kubeconfig", os.fsdecode(b"\xff")),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_same_output_and_exit_code(arguments: tuple[str, ...]) -> None:
    assert forked(*arguments) == started(*arguments)


def test_output_that_cannot_be_written_is_reported() -> None:
    with Path("/dev/full").open("w") as full:
        done = run("version", stdout=full)
        alone = subprocess.run(
            [*COMMAND, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (done.returncode, done.stderr) == (alone.returncode, alone.stderr)
    assert "No space left on device" in done.stderr


def test_environment_is_replaced(tmp_path: Path) -> None:
    missing = tmp_path / "other"
    code, _, error = forked("devices", env={"KUBECONFIG": str(missing), "PATH": os.environ["PATH"]})

    assert code == 1
    assert str(missing) in error


def test_input_is_read(tmp_path: Path) -> None:
    arguments = ("plan", "-f", "-", "--kubeconfig", str(tmp_path / "none"))

    assert forked(*arguments, stdin="{") == started(*arguments, stdin="{")


@pytest.fixture
def server(tmp_path: Path) -> Callable[[], "forkserver.ForkedProcess"]:
    """Return a function that starts a server in a folder and waits until it is ready."""

    def up() -> forkserver.ForkedProcess:
        child = start(
            *("up", "--data-dir", "data", "--listen", "127.0.0.1:0"),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            text=True,
        )
        assert child.stdout is not None
        assert any(line.startswith("ready after") for line in child.stdout)
        return child

    return up


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -9)]
)
def test_a_server_is_a_child_that_signals_reach(
    server: Callable[[], forkserver.ForkedProcess], tmp_path: Path, sent: int, code: int
) -> None:
    with server() as child:
        status = Path(f"/proc/{child.pid}/status").read_text().split("\n")
        assert f"PPid:\t{os.getpid()}" in status
        assert Path(f"/proc/{child.pid}/cwd").readlink() == tmp_path
        assert os.getsid(child.pid) == child.pid
        assert (tmp_path / "data").is_dir()
        child.send_signal(sent)
        assert child.wait(PATIENCE) == code


def command_line(pid: int) -> list[bytes]:
    """Return the words a process was started with; it has none for a moment while it starts."""
    while not (text := Path(f"/proc/{pid}/cmdline").read_bytes()):
        assert "zombie" not in Path(f"/proc/{pid}/status").read_text()
    return text.split(b"\0")


PLAIN = {
    "another locale": {"LC_ALL": "en_US.ISO-8859-1"},
    "a setting of Python": {"PYTHONWARNINGS": "error::UserWarning"},
    "another time zone": {"TZ": "America/New_York"},
}


@pytest.mark.parametrize("more", PLAIN.values(), ids=PLAIN)
def test_what_a_fork_cannot_do_starts_an_interpreter(more: dict[str, str]) -> None:
    with start("version", env=os.environ | more, stdout=subprocess.PIPE, text=True) as child:
        # A forked process shows the command line of the fork server.
        words = command_line(child.pid)
        printed, _ = child.communicate()

    assert b"sully.cli.main" in words
    assert printed.startswith(f"sully {__version__}")


PRINTS = """
import os, sys
print(sys.argv[1:], os.getcwd(), __name__, "sully.app" in sys.modules)
sys.exit(3)
"""


def test_a_module_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "prints.py").write_text(PRINTS)
    with start_module(
        *("prints", "a", "b"), folder=tmp_path, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as child:
        printed, _ = child.communicate()

    assert child.returncode == 3
    # Sully is loaded already.
    assert printed == f"['a', 'b'] {tmp_path} __main__ True\n"


def test_a_function_that_would_fork_the_caller_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "called"

    with pytest.raises(ValueError, match="preexec_fn is not supported"):
        start("version", preexec_fn=marker.touch)

    assert not marker.exists()


def test_another_user_gets_an_interpreter() -> None:
    own = os.getuid()
    with start("version", user=own, stdout=subprocess.PIPE, text=True) as child:
        words = command_line(child.pid)
        printed, _ = child.communicate()

    assert b"sully.cli.main" in words
    assert printed.startswith(f"sully {__version__}")
