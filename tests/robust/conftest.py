"""A directory that a server has used, to be damaged; made once and copied for each test."""

import shutil
from pathlib import Path

import pytest

import manifests
from e2e.raw import Raw
from sully.testing.cluster import process

KEPT = 30


def config_map(name: str, text: str = "kept") -> dict[str, object]:
    return manifests.config_map(name, {"text": text})


@pytest.fixture(scope="session")
def used_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory in which a server has written and ended well."""
    directory = tmp_path_factory.mktemp("used") / "data"
    with process("--log-level", "error", data_dir=directory) as up:
        raw = Raw.admin(up.kubeconfig, directory.parent)
        for number in range(KEPT):
            made = config_map(f"kept-{number}", "x" * 3000)
            assert raw.request("POST", "/api/v1/namespaces/default/configmaps", made).code == 201
    return directory


@pytest.fixture
def used(used_once: Path, tmp_path: Path) -> Path:
    """Return a copy of it for one test."""
    return Path(shutil.copytree(used_once, tmp_path / "data"))
