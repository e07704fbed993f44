"""What the scan of an image finds in its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.image import findings

# Written so that no scanner takes this file for a key.
KEY = "-----BEGIN " + "PRIVATE KEY-----\n" + "A" * 64
FILES = {
    "a program": ("bin/x", "x", 0o755, []),
    "a setuid program": ("bin/x", "x", 0o4755, ["a setuid or setgid file: bin/x"]),
    "a setgid program": ("bin/x", "x", 0o2755, ["a setuid or setgid file: bin/x"]),
    "a file for everybody": ("etc/x", "x", 0o666, ["a file that anyone may change: etc/x"]),
    "a key": ("etc/x", KEY, 0o600, ["a private key: etc/x"]),
    "code that looks for keys": ("lib/x.py", "'-----BEGIN " + "PRIVATE KEY-----'", 0o644, []),
}


@pytest.mark.parametrize(("name", "text", "mode", "want"), FILES.values(), ids=FILES)
def test_findings(name: str, text: str, mode: int, want: list[str], tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(mode)

    assert list(findings(tmp_path)) == want


def test_a_shared_folder_keeps_the_files_of_each_user(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)

    assert list(findings(tmp_path)) == []
