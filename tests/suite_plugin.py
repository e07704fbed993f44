"""What the whole suite shares: real clients, no silent skips, no time limits, and any order.

A suite whose tool cannot be had is skipped, but never quietly: it is named at the end of the run,
and in CI, where every tool can be had, a skip fails the run. `conftest.py` loads this file.
"""

import gc
import os
import random
import shutil
import signal
from collections.abc import Generator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from property_examples import examples

# On a busy machine every limit on time fails some day. Everything else is as Hypothesis has it, in
# CI as in its profile for CI: `settings()` is the one that it loaded.
settings.register_profile(
    "suite",
    settings(),
    deadline=None,
    max_examples=examples(settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
DEBIAN_KUBECTL = ROOT / ".cache/debian-kubectl/usr/bin/kubectl"


def find_kubectl(which: str) -> Path | None:
    """Return a kubectl: `debian` is the old one `make test` fetches, `newest` the one on PATH."""
    if which == "debian":
        return DEBIAN_KUBECTL if DEBIAN_KUBECTL.exists() else None
    result = shutil.which("kubectl")
    return Path(result) if result else None


def need_kubectl(*choices: str) -> Path:
    """Return the first kubectl there is, or skip with what to do about it."""
    for which in choices:
        if kubectl := find_kubectl(which):
            return kubectl
    pytest.skip(f"no kubectl ({' or '.join(choices)}): `make test` on Debian fetches one")


@pytest.fixture(scope="session")
def any_kubectl() -> Path:
    """Return some kubectl, the newest there is."""
    return need_kubectl("newest", "debian")


@pytest.fixture(scope="session")
def debian_kubectl() -> Path:
    """Return Debian's kubectl, which is years older than the API we serve."""
    return need_kubectl("debian")


def pytest_configure() -> None:
    # A shell starts what is to run in the background with Ctrl-C ignored, and so would be every
    # program that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--random-order-seed",
        type=int,
        metavar="N",
        help="shuffle the files, and the tests of each; the same number is the same order",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # All tests and their modules stay until the end: to search them for garbage again and again
    # would take a part of the whole run.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(50_000, 20, 100)  # as in `sully up`


# First: pytest then brings together again what shares a fixture with parameters.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--random-order-seed")
    if seed is not None:
        items[:] = shuffled(items, random.Random(seed))
        return
    # What takes long begins first, so that no worker is left alone with it in the end.
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("e2e", "slow"))))


def shuffled(items: list[pytest.Item], rng: random.Random) -> list[pytest.Item]:
    """Return the items in a random order, those of one file together."""
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    for file in files:
        rng.shuffle(file)
    rng.shuffle(files)
    return [item for file in files for item in file]


def is_whole(config: pytest.Config) -> bool:
    """Report whether a run had all tests: only then is what was not used not needed."""
    options = config.option
    narrowed = (options.keyword, options.markexpr, options.deselect, config.getoption("lf", False))
    everything = config.args in ([str(ROOT / "tests")], ["tests"], [str(ROOT)])
    return everything and not any(narrowed) and not options.collectonly


def in_ci() -> bool:
    """Report whether a skip is a failure."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    if not skipped:
        return
    what = "SKIPPED, WHICH FAILS A RUN IN CI" if in_ci() else "SKIPPED: NOT EVERYTHING WAS TESTED"
    terminalreporter.section(what, sep="!", red=True, bold=True)
    for reason in sorted({_reason(report) for report in skipped}):
        number = sum(1 for report in skipped if _reason(report) == reason)
        terminalreporter.write_line(f"{number:>4}  {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    where = report.nodeid.partition("::")[0]
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return f"{where}: {text.removeprefix('Skipped: ')}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = bool(reporter and reporter.stats.get("skipped"))
    if skipped and in_ci() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
