"""Finds the test that leaves something open: `pytest --find-leaks`.

What a test leaves open is collected as garbage while another test runs, and that one fails. With
this option garbage is collected after each test that opened something, and the test itself fails,
with the stack that opened it. `conftest.py` loads this file; without the option it does nothing.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import traceback
import tracemalloc
import warnings
from collections.abc import Generator, Iterator
from importlib import import_module
from typing import Any
from weakref import WeakSet

import pytest

OPENING = frozenset(("open", "socket.__new__", "sqlite3.connect", "subprocess.Popen"))
"""Audit events of Python."""
FRAMES = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--find-leaks",
        action="store_true",
        help="fail each test that leaves a file, socket or task behind; PYTHONTRACEMALLOC=15 shows"
        " where a file or socket was opened",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--find-leaks"):
        config.pluginmanager.register(Leaks(), "leaks")


class Leaks:
    """Looks after each test for what can no longer be closed."""

    def __init__(self) -> None:
        self._opened = False
        self._transports: WeakSet[Any] = WeakSet()
        sys.addaudithook(self._note)
        self._follow_transports()

    def _note(self, event: str, _: tuple[Any, ...]) -> None:
        if event in OPENING:
            self._opened = True

    def _follow_transports(self) -> None:
        """Let each transport of asyncio know who opened it."""
        # Whatever connects or accepts by the loop of asyncio ends here, also below TLS.
        kind: Any = import_module("asyncio.selector_events")._SelectorTransport
        init = kind.__init__

        def noted(transport: Any, *args: Any, **kwargs: Any) -> None:
            init(transport, *args, **kwargs)
            transport.opened_by = "".join(traceback.format_stack(sys._getframe(1), FRAMES))
            self._transports.add(transport)

        kind.__init__ = noted

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        self._opened = False
        return (yield)

    # First: it then ends last, when fixtures and their loops are gone.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        result = yield
        if self._opened and (left := [*_garbage(), *self._orphans()]):
            pytest.fail("\n".join(("left behind:", *left)), pytrace=False)
        return result

    def _orphans(self) -> Iterator[str]:
        """Yield what nothing can end, because its loop is closed."""
        for transport in list(self._transports):
            if transport._sock is not None and transport._loop.is_closed():
                yield f"open on a closed loop: {transport!r}\n{transport.opened_by}"
        tasks: WeakSet[asyncio.Task[Any]] = vars(asyncio.tasks)["_all_tasks"]
        for task in list(tasks):
            if not task.done() and task.get_loop().is_closed():
                yield f"waits on a closed loop: {task!r}"


def _garbage() -> Iterator[str]:
    """Collect what nobody refers to, and yield what was not closed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    for warning in caught:
        yield f"{warning.message}\n{_origin(warning.source)}"


def _origin(source: object) -> str:
    if known := getattr(source, "opened_by", ""):
        return str(known)
    where = tracemalloc.get_object_traceback(source) if source is not None else None
    return "\n".join(where.format()) if where else ""
