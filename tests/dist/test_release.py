"""What the checks of a release find, and what no lock may contain."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from architecture.project import ROOT
from release.audit import verdict
from release.bom import missing
from release.build import problems, source_files
from release.lock import LOCKS

SOURCES = ["sully/cli/main.py", "sully/py.typed", "sully/testing/cluster.py"]
WHEELS: dict[str, tuple[dict[str, int], list[str]]] = {
    "as it should be": ({"sully-1.dist-info/METADATA": 1}, []),
    "a cache": ({"sully/__pycache__/x.pyc": 1}, ["does not belong there: sully/__pycache__/x.pyc"]),
    "another package": ({"tests/x.py": 1}, ["does not belong there: tests/x.py"]),
    "a key": ({"sully/ca.key": 1}, ["does not belong there: sully/ca.key"]),
    "a large file": (
        {"sully-1.dist-info/x": 2 << 20},
        ["larger than 1 MiB: sully-1.dist-info/x"],
    ),
}


@pytest.mark.parametrize(("more", "want"), WHEELS.values(), ids=WHEELS)
def test_problems_of_a_wheel(more: dict[str, int], want: list[str]) -> None:
    assert problems(dict.fromkeys(SOURCES, 1) | more, SOURCES) == want


def test_a_wheel_without_a_source_file() -> None:
    assert problems({SOURCES[0]: 1, SOURCES[2]: 1}, SOURCES[:1] + SOURCES[2:]) == [
        "missing: sully/py.typed"
    ]


def test_tables_of_fields_are_part_of_a_wheel() -> None:
    assert "sully/api/resource/resource.fields" in source_files()


LOCK = "Some_Name==1.0 \\\n    --hash=1\nuvloop==2.0 ; sys_platform == 'linux' \\\n    --hash=2\n"


@pytest.mark.parametrize(
    ("listed", "want"),
    [([("some-name", "1.0")], []), ([("some-name", "1.1")], ["some-name 1.0"])],
)
def test_packages_missing_from_an_sbom(listed: list[tuple[str, str]], want: list[str]) -> None:
    bom = {"components": [{"name": name, "version": number} for name, number in listed]}

    assert missing(bom, LOCK) == want


@pytest.mark.parametrize("name", LOCKS)
def test_every_pinned_package_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / f"requirements/{name}.txt").read_text()
    blocks = re.split(r"\n(?=[A-Za-z])", text.strip())

    assert len(blocks) > 2
    assert [block for block in blocks if "--hash=sha256:" not in block] == []
    assert "://" not in text


INSTALLERS = (
    "Makefile",
    "deploy/Containerfile",
    *(f"tools/release/{name}.py" for name in ("image", "krew", "matrix")),
)


@pytest.mark.parametrize("path", INSTALLERS)
def test_no_install_from_a_lock_looks_for_newer_versions(path: str) -> None:
    # A package with extras is not pinned by its name alone for pip: it took the newest version that
    # had been published, and that has no hash.
    text = (ROOT / path).read_text()

    assert text.count("--require-hashes") >= 1
    assert text.count("--no-deps") >= text.count("--require-hashes")


def test_the_lock_of_development_lacks_no_dependency() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", LOCKS)
def test_what_several_locks_pin_has_one_version(name: str) -> None:
    def pins(lock: str) -> dict[str, str]:
        lines = re.findall(r"^(\S+)==(\S+)([^\\]*)", lock, re.MULTILINE)
        return {package + marker: version for package, version, marker in lines}

    everything = pins((ROOT / "requirements/dev.txt").read_text())
    here = pins((ROOT / f"requirements/{name}.txt").read_text())
    differs = {k: v for k, v in here.items() if everything.get(k, v) != v}

    assert differs == {}


def test_the_locks_have_what_the_project_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [re.split(r"[\[<>=;]", text)[0] for text in project["project"]["dependencies"]]
    pinned = re.findall(r"^(\S+)==", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)

    assert [name for name in needed if name not in pinned] == []


def test_the_build_backend_is_the_pinned_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (backend,) = project["build-system"]["requires"]

    assert f"\n{backend} \\\n" in (ROOT / "requirements/build.txt").read_text()


AUDITS = {
    "nothing found": ("No known vulnerabilities found\n", False, 0, "No known vulnerabilities"),
    "a vulnerability": ("click 1.0 PYSEC-1\n", True, 1, "PYSEC-1"),
    "no network": ("x\nConnectionError: no such host\n", True, 2, "is unreachable"),
    "a mirror without a database": (
        "click  Dependency not found on PyPI and could not be audited: click (8.5.1)\n",
        False,
        2,
        "1 packages not audited",
    ),
}


@pytest.mark.parametrize(("reported", "failed", "code", "text"), AUDITS.values(), ids=AUDITS)
def test_verdict_of_an_audit(reported: str, failed: bool, code: int, text: str) -> None:
    result, printed = verdict(reported, failed=failed)

    assert (result, text in printed) == (code, True)
