"""The krew manifest, checked against the rules of krew, and the archive that it describes."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from release import krew

_TEXT = {"type": "string", "minLength": 1}
_PLATFORM = {
    "type": "object",
    "required": ["uri", "sha256", "bin", "selector"],
    "additionalProperties": False,
    "properties": {
        "uri": {"type": "string", "pattern": r"^https://[^\s]+\.(zip|tar\.gz)$"},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "bin": _TEXT,
        "files": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["from", "to"],
                "properties": {"from": _TEXT, "to": _TEXT},
            },
        },
        "selector": {
            "type": "object",
            "required": ["matchLabels"],
            "properties": {
                "matchLabels": {
                    "type": "object",
                    "properties": {
                        "os": {"enum": ["linux", "darwin", "windows"]},
                        "arch": {"enum": ["amd64", "arm64", "arm", "386", "ppc64le", "s390x"]},
                    },
                    "additionalProperties": False,
                }
            },
        },
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "krew.googlecontainertools.github.com/v1alpha2"},
        "kind": {"const": "Plugin"},
        "metadata": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "pattern": r"^[\w-]+$"}},
        },
        "spec": {
            "type": "object",
            "required": ["version", "shortDescription", "platforms"],
            "additionalProperties": False,
            "properties": {
                "version": {"type": "string", "pattern": r"^v\d+\.\d+\.\d+(-[\w.]+)?$"},
                "shortDescription": {**_TEXT, "maxLength": 50, "pattern": "[^.]$"},
                "description": _TEXT,
                "caveats": _TEXT,
                "homepage": _TEXT,
                "platforms": {"type": "array", "minItems": 1, "items": _PLATFORM},
            },
        },
    },
}
"""What krew requires of a manifest, and what its index asks for."""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    wheel = tmp_path / "sully-1.whl"
    wheel.write_bytes(b"a wheel")
    return krew.archive(wheel, tmp_path)


def test_the_manifest_is_valid(archive: Path) -> None:
    made = krew.manifest(archive, "https://example.com/releases/")

    assert jsonschema_rs.is_valid(SCHEMA, made)
    for platform in made["spec"]["platforms"]:
        assert platform["uri"] == f"https://example.com/releases/{archive.name}"
        assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_the_schema_refuses_what_krew_refuses(archive: Path) -> None:
    made = krew.manifest(archive, "https://example.com")
    made["spec"]["version"] = "1.0"

    assert not jsonschema_rs.is_valid(SCHEMA, made)


def test_two_archives_are_equal(archive: Path) -> None:
    first = archive.read_bytes()

    assert krew.archive(archive.parent / "sully-1.whl", archive.parent).read_bytes() == first


def test_the_archive_has_a_program_that_a_shell_understands(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as tar:
        modes = {entry.name: entry.mode & 0o111 for entry in tar}
        tar.extractall(tmp_path / "store", filter="data")
    program = tmp_path / "store/kubectl-sully"
    checked = subprocess.run(["sh", "-n", program], capture_output=True, text=True, check=False)

    assert [name for name, mode in modes.items() if mode] == ["kubectl-sully"]
    assert (checked.returncode, checked.stderr) == (0, "")
    assert not re.search(r"\bVERSION\b", program.read_text())
