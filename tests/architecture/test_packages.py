"""Every package states what it is, and packages import only packages below them."""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from architecture.project import ROOT, SOURCE, modules, short

PACKAGES = [path for path in modules() if path.name == "__init__.py" and path.parent != SOURCE]


@pytest.mark.parametrize("path", PACKAGES, ids=short)
def test_a_package_states_what_it_owns_never_does_and_where_to_start(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""

    missing = [word for word in ("Owns", "Never", "Start at") if not _has_sentence(word, text)]

    assert missing == []


def _has_sentence(word: str, text: str) -> bool:
    return re.search(rf"^{word}:? +\S", text, re.MULTILINE) is not None


def test_the_program_itself_points_to_its_architecture() -> None:
    text = ast.get_docstring(ast.parse((SOURCE / "__init__.py").read_text())) or ""

    assert "docs/architecture.md" in text


def test_the_architecture_names_every_package() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    names = {path.relative_to(SOURCE).parts[0] for path in modules()} - {"__init__.py"}

    expected = {name: name if name.endswith(".py") else f"**{name}** (" for name in names}
    assert [name for name, text in expected.items() if text not in page] == []


@pytest.mark.parametrize("path", modules(), ids=short)
def test_a_module_states_why_it_exists(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_a_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in modules()}

    assert [
        short(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()
    ] == []


def test_a_folder_has_about_a_dozen_modules() -> None:
    folders = Counter(path.parent for path in modules() if path.name != "__init__.py")

    assert {short(folder): count for folder, count in folders.items() if count > 14} == {}


def test_packages_import_only_packages_below_them() -> None:
    linter = Path(sys.executable).parent / "lint-imports"

    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_files_that_the_source_names_exist() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("[bst]*/**/*.py")]
    named = re.compile(r"(?<![\w/.])([a-z_][\w/]*\.py)\b")

    missing = [
        f"{short(path)}: {name}"
        for path in modules()
        for name in named.findall(path.read_text())
        if not any(file == name or file.endswith(f"/{name}") for file in files)
    ]

    assert missing == []
