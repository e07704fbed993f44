"""The rules by which pages are compared with what commands print."""

import pytest

from docs.console import Command, commands, matches

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


def test_commands_are_read_with_their_output() -> None:
    page = "```console\n$ one \\\n  more\nout\n$ two\n```\ntext\n```bash\n$ not me\n```\n"

    assert list(commands(page)) == [Command("one \\\n  more", ["out"]), Command("two")]
