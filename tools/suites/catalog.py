"""The suites: where their tests are in a checkout, and what they need installed."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """One foreign suite."""

    name: str
    """Also the name of its folder."""
    requirements: tuple[str, ...]
    tests: tuple[str, ...]
    """Arguments of pytest, in the folder of the checkout."""
    path: str = "."
    """What is imported from the checkout, relative to it; empty: what is installed."""
    version_module: str = ""
    """The module that only a build writes."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Folders of the checkout that belong into an installed package."""


SUITES = (
    Suite(
        "kopf",
        (
            *("pytest", "pytest-asyncio", "pytest-aiohttp", "pytest-cov", "pytest-mock"),
            *("pytest-timeout", "looptime", "kmock", "lxml", "astpath[xpath]", "freezegun"),
            *("certbuilder", "certvalidator", "pyngrok", "python-json-logger", "jsonpatch"),
            *("iso8601", "pyyaml", "click", "aiohttp", "pykube-ng", "kubernetes"),
        ),
        # When the client closes its connections does not depend on a server.
        ("tests/e2e", "--only-e2e", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"),
        version_module="kopf._cogs.helpers.versions",
    ),
    Suite(
        "kr8s",
        (
            *("pytest", "pytest-asyncio", "pytest-kind", "pytest-timeout", "pytest-cov"),
            *("pytest-rerunfailures", "trio", "lightkube", "kubernetes", "pykube-ng"),
            *("kubernetes-asyncio", "kubernetes-validate", "cryptography", "packaging", "pyyaml"),
            *("python-jsonpath", "anyio", "httpx", "httpx-ws", "python-box", "cachetools"),
            *("typing_extensions", "exceptiongroup"),
        ),
        ("kr8s/tests", "-p", "running_cluster", "--no-cov", "--timeout", "120"),
        version_module="kr8s._version",
    ),
    Suite(
        "lightkube",
        ("pytest", "pytest-asyncio", "httpx", "httpx-ws", "PyYAML", "lightkube-models"),
        ("e2e-tests",),
        path="",
        # Its models are in another distribution, in the same package.
        copies={"src/lightkube": "lightkube"},
    ),
    Suite(
        "python",
        ("pytest", "kubernetes"),
        ("--pyargs", "kubernetes.e2e_test"),
        path="",
        copies={"kubernetes/e2e_test": "kubernetes/e2e_test"},
    ),
)
