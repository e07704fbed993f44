"""The rules by which pages are compared with what commands print."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from docs.console import Command, commands, matches, run_all, without_errors

MATCHES = {
    "nothing shown": ([], "whatever", True),
    "the same": (["a b"], "a b\n", True),
    "other spacing": (["NAME   AGE"], "NAME AGE   \n", True),
    "part of a line": (["x ... y"], "x 12 y\n", True),
    "some lines": (["a", "...", "d"], "a\nb\nc\nd\n", True),
    "another line": (["a"], "a\nb\n", False),
    "another word": (["a c"], "a b\n", False),
    "a dot is a dot": (["a.b"], "axb\n", False),
}


@pytest.mark.parametrize(("shown", "printed", "want"), MATCHES.values(), ids=MATCHES.keys())
def test_matches(shown: list[str], printed: str, want: bool) -> None:
    assert matches(shown, printed) == want


ERRORS = {
    "nothing on standard error": (["a"], "", [], ["a"]),
    "a line that is shown": (["warning: b 12", "a"], "warning: b  12\n", [], ["a"]),
    "a line that is shown in part": (["warning: ...", "a"], "warning: b\n", [], ["a"]),
    "a line that is not shown": (["a"], "warning: b\n", ["warning: b"], ["a"]),
    "some lines": (["...", "a"], "warning: b\n", [], ["...", "a"]),
    "nothing shown": ([], "warning: b\n", [], []),
}


@pytest.mark.parametrize(("shown", "printed", "missing", "rest"), ERRORS.values(), ids=ERRORS)
def test_what_is_printed_on_standard_error_is_shown(
    shown: list[str], printed: str, missing: list[str], rest: list[str]
) -> None:
    assert without_errors(shown, printed) == (missing, rest)


def test_commands_are_read_with_their_output() -> None:
    page = "```console\n$ one \\\n  more\nout\n$ two\n```\ntext\n```bash\n$ not me\n```\n"

    assert list(commands(page)) == [Command("one \\\n  more", ["out"]), Command("two")]


LEFT = {
    "nothing": ("true", True),
    "a file": ("touch left.json", False),
    "a file in a folder": ("mkdir -p examples && touch examples/left.json", False),
    "a file that is removed": ("touch left.json; rm left.json", True),
    "data of a server": ("mkdir data && touch data/store.db", True),
}


@pytest.mark.parametrize(("command", "clean"), LEFT.values(), ids=LEFT)
def test_a_page_leaves_no_files(command: str, clean: bool, tmp_path: Path) -> None:
    where, scratch = tmp_path / "checkout", tmp_path / "scratch"
    where.mkdir()
    scratch.mkdir()
    page = f"```console\n$ {command}\n```\n"
    kubectl = Path("/bin/true")

    with nullcontext() if clean else pytest.raises(AssertionError, match="left behind"):
        run_all(page, where=where, kubeconfig=tmp_path, kubectl=kubectl, scratch=scratch)
