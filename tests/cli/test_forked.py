"""Functions that run in a process of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from sully.cli.run.up.forked import ForkedCall


def where(argument: str) -> tuple[str, int]:
    return argument, os.getpid()


def killed_there(parent: int) -> int:
    """Return who runs this, unless that is another process."""
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def refused(text: str) -> None:
    raise ValueError(text)


def load_where() -> Callable[[str], tuple[str, int]]:
    return where


def test_the_function_runs_in_another_process() -> None:
    argument, pid = ForkedCall(load_where)("hello")

    assert argument == "hello"
    assert pid != os.getpid()


def test_large_values_pass() -> None:
    large = "x" * 1_000_000

    assert ForkedCall(load_where)(large)[0] == large


def test_it_runs_here_if_the_other_process_dies() -> None:
    call = ForkedCall(lambda: killed_there)

    assert call(os.getpid()) == os.getpid()


def test_it_runs_here_if_the_other_process_cannot_load_it() -> None:
    here = os.getpid()

    def load() -> Callable[[str], tuple[str, int]]:
        if os.getpid() != here:
            raise ImportError("not there")
        return where

    assert ForkedCall(load)("hello") == ("hello", here)


def test_errors_are_raised_here() -> None:
    call = ForkedCall(lambda: refused)

    with pytest.raises(ValueError, match=r"^no$"):
        call("no")


def test_no_process_is_left() -> None:
    _, pid = ForkedCall(load_where)("hello")

    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
