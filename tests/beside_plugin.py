"""Runs every end-to-end test with the controllers inside the server, and again beside it.

A test that takes the fixture `where` gets both forms, unless `e2e/beside.py` reports why not; an
end-to-end test that is neither there nor takes it is an error. `conftest.py` loads this file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import rights, trail
from e2e.beside import WHERE, Planes, forms
from suite_plugin import is_whole

TESTS = Path(__file__).resolve().parent
_FOLDER = pytest.StashKey[str]()
_SILENT_FOLDERS = frozenset(("robust",))
"""Whose tests start servers, too, without that they are marked so."""


@pytest.fixture(scope="session")
def where(request: pytest.FixtureRequest) -> str:
    """Print where the controllers are in this round."""
    param: str = request.param
    return param


@pytest.fixture(scope="session")
def planes() -> Iterator[Planes]:
    """Keep one control plane of each form for all tests that only use it."""
    made = Planes("--store", "sqlite", "--log-level", "error")
    yield made
    made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "where" not in metafunc.fixturenames:
        return
    if any("where" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")):
        return
    chosen = forms(_path(metafunc.definition), metafunc.function.__name__)
    metafunc.parametrize("where", chosen, indirect=True, scope="session")


def _path(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    undecided = {
        item.nodeid.partition("[")[0]
        for item in items
        if _is_end_to_end(item) and not _decided(item)
    }
    if undecided:
        raise pytest.UsageError(
            "end-to-end tests with controllers in one place only: take the fixture `where`, or"
            " explain why not in tests/e2e/beside.py:\n  " + "\n  ".join(sorted(undecided))
        )


def _is_end_to_end(item: pytest.Item) -> bool:
    silent = _path(item).partition("/")[0] in _SILENT_FOLDERS
    return silent or item.get_closest_marker("e2e") is not None


def _decided(item: pytest.Item) -> bool:
    name = getattr(item, "originalname", item.name)
    return forms(_path(item), name) != WHERE or "where" in getattr(item, "fixturenames", ())


def pytest_configure(config: pytest.Config) -> None:
    # Workers of a run inherit it; who wants to read it afterwards names a folder of his own.
    if trail.FOLDER not in os.environ:
        config.stash[_FOLDER] = os.environ[trail.FOLDER] = tempfile.mkdtemp(prefix="sully-trail-")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if hasattr(config, "workerinput"):
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or reporter.stats.get("skipped") or not is_whole(config):
        return
    if session.exitstatus == pytest.ExitCode.OK:
        _judge(session, reporter, trail.recorded_uses(Path(os.environ[trail.FOLDER])))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER])
        del os.environ[trail.FOLDER]


def _judge(
    session: pytest.Session, reporter: pytest.TerminalReporter, used: set[trail.Use]
) -> None:
    unused = sorted(rights.unused(used))
    if not unused:
        return
    reporter.section("RIGHTS THAT THE CONTROLLERS HAVE AND NEVER USE", sep="!", red=True)
    for item in unused:
        reporter.write_line(str(item))
    reporter.write_line("remove them, or state in tests/e2e/unused.py what they are for")
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
