"""Reports the branch coverage of `src/sully`, if SULLY_COVERAGE is set, as in `make test`.

A run of all tests fails below the minimum, `fail_under` in pyproject.toml. `conftest.py` loads
this file.
"""

import math
import os
import tempfile
from pathlib import Path

import pytest
from coverage import Coverage

from probes import importer, result
from probes.started import MEASURING
from suite_plugin import ROOT, is_whole

_FILE = "SULLY_COVERAGE_FILE"
_FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
_TOTAL = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    if MEASURING and not hasattr(config, "workerinput"):
        config.stash[_FOLDER] = folder = tempfile.TemporaryDirectory(prefix="sully-coverage-")
        # Workers of a run inherit it.
        os.environ[_FILE] = f"{folder.name}/hits"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not MEASURING:
        return
    file = Path(os.environ[_FILE])
    importer.save(file)
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    total = result.write(ROOT / "src" / "sully", importer.load(file))
    session.config.stash[_TOTAL] = total
    if total < _minimum() and is_whole(session.config) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if _TOTAL not in config.stash:
        return
    total, minimum = config.stash[_TOTAL], _minimum()
    terminalreporter.section("branch coverage of src")
    terminalreporter.write_line(
        f"{total:.2f} % of statements and branches; details: .venv/bin/coverage report"
    )
    if not is_whole(config):
        return
    if total < minimum:
        terminalreporter.write_line(f"FAILED: below the minimum of {minimum} %", red=True)
    elif (reached := math.floor(total * 10) / 10) > minimum:
        terminalreporter.write_line(f"above the minimum: raise fail_under to {reached}")


def _minimum() -> float:
    return float(str(Coverage().get_option("report:fail_under")))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _FOLDER in config.stash:
        config.stash[_FOLDER].cleanup()
        del os.environ[_FILE]
