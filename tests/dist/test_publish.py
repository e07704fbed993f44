"""`make release`: what it writes, and when it refuses."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from architecture.project import ROOT
from release.project import ReleaseError
from release.publish import commit, prepare, rename_image, tag
from sully import __version__

PAGE = "docs/guides/kubernetes.md"
_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *_AUTHOR, *arguments], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a version, notes and the settings of this project."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.com")
    package = tmp_path / "src/sully"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""A package."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / "docs/guides").mkdir(parents=True)
    (tmp_path / PAGE).write_text("Data of 0.1.0. --image registry.example/sully:0.1.0\n")
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/README.md").write_text("# Fragments\n")
    (tmp_path / "changes/+fan.feature.md").write_text("Fans turn ([guide](../docs/a.md)).\n")
    (tmp_path / "changes/+0.2.0.summary.md").write_text("Everything about fans.\n")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    # Not ours: that has more releases with each one, this one among them some day.
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changes\n\n<!-- towncrier release notes start -->\n\n## 0.1.0 (2026-01-01)\n"
    )
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Start")
    return tmp_path


def test_a_release_has_version_notes_and_a_tag(project: Path) -> None:
    prepare("0.2.0", project)
    commit("0.2.0", project)
    tag("0.2.0", project)

    notes = (project / "CHANGELOG.md").read_text()
    assert '__version__ = "0.2.0"' in (project / "src/sully/__init__.py").read_text()
    lines = ("## 0.2.0 (", "- Everything", "- Fans turn ([guide](docs/a.md)).", "## 0.1.0 (")
    assert [line for line in lines if line in notes] == sorted(lines, key=notes.index)
    assert (project / PAGE).read_text() == "Data of 0.1.0. --image registry.example/sully:0.2.0\n"
    assert [path.name for path in (project / "changes").iterdir()] == ["README.md"]
    assert git(project, "describe", "--exact-match") == "v0.2.0"
    assert git(project, "status", "--porcelain") == ""


IMAGES = {
    "a flag": ("--image x/sully:0.1.0", "--image x/sully:0.2.0"),
    "a tag of kustomize": ("{newTag: 0.1.0}", "{newTag: 0.2.0}"),
    "at the end of a sentence": ("sully:0.1.0, then", "sully:0.2.0, then"),
    "another version": ("sully:0.1.01", "sully:0.1.01"),
    "another image": ("gully:0.1.0", "gully:0.1.0"),
    "what an older release did": ("since 0.1.0", "since 0.1.0"),
}


@pytest.mark.parametrize(("text", "want"), IMAGES.values(), ids=IMAGES)
def test_pages_name_the_image_of_the_release(text: str, want: str) -> None:
    assert rename_image(text, "0.1.0", "0.2.0") == want


def test_guides_name_the_image_of_this_version() -> None:
    text = (ROOT / PAGE).read_text()

    assert set(re.findall(r"\bsully:(\d[\w.]*)|newTag: (\S+?)}", text)) == {
        (__version__, ""),
        ("", __version__),
    }


REFUSED = {
    "no version": ("", "invalid version"),
    "another form": ("v0.2", "invalid version"),
    "the same": ("0.1.0", "not after 0.1.0"),
    "an older one": ("0.0.9", "not after 0.1.0"),
}


@pytest.mark.parametrize(("version", "text"), REFUSED.values(), ids=REFUSED)
def test_versions_that_are_refused(project: Path, version: str, text: str) -> None:
    with pytest.raises(ReleaseError, match=text):
        prepare(version, project)

    assert git(project, "status", "--porcelain") == ""


def test_a_tree_with_changes_is_refused(project: Path) -> None:
    (project / "new.txt").write_text("x")

    with pytest.raises(ReleaseError, match="not clean"):
        prepare("0.2.0", project)
