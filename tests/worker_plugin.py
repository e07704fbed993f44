"""Keeps what workers of pytest-xdist report to what the controller shows.

xdist serializes six messages for each test, in Python: 1 ms of CPU time, as much as a short test
takes itself. Half of them report that a test begins, was set up and torn down, which is not shown.
`conftest.py` loads this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

SHORTEST = 0.005
"""Seconds from which on `--durations` shows a setup or a teardown."""


def pytest_configure(config: pytest.Config) -> None:
    # Both use what is left out.
    if config.option.verbose > 0 or config.option.xmlpath:
        return
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = partial(send, plugin.sendevent)


def send(sendevent: Callable[..., None], name: str, **content: Any) -> None:
    """Send a message to the controller if it shows something of it."""
    if name == "logstart" or (name == "testreport" and is_unseen(content["data"])):
        return
    sendevent(name, **content)


def is_unseen(report: Mapping[str, Any]) -> bool:
    """Report whether this is the successful setup or teardown of a test, and a short one."""
    passed: bool = report["outcome"] == "passed"
    return passed and report["when"] != "call" and bool(report["duration"] < SHORTEST)
