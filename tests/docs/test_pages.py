"""The rules by which it is known that every command of a page is run."""

import pytest

from docs.pages import flags, unexplained

START = "```bash\nsully up --hollow-nodes 3   # and more\nexport X=1\n```\n"
PAGES = {
    "nothing to run": ("text\n", []),
    "how it starts": (START, []),
    "what is run": ("text\n\n```console\n$ sully devices\n```\n", []),
    "no commands": ("text\n\n```yaml\nsully up \n```\n", []),
    "a block that nobody runs": ("text\n\n```bash\nkubectl get x\n```\n", ["kubectl get x\n"]),
    "one with a reason": (
        "<!-- not run: takes a cluster -->\n\n```bash\nkubectl get x\n```\n",
        [],
    ),
    "one with a reason right above": (
        "<!-- not run: takes a cluster -->\n```bash\nkubectl get x\n```\n",
        [],
    ),
    "an empty reason is none": (
        "<!-- not run: -->\n\n```bash\nkubectl get x\n```\n",
        ["kubectl get x\n"],
    ),
    "indented": ("text\n\n    X=1 sully devices\n\nmore\n", ["    X=1 sully devices\n"]),
    "indented, with a reason": ("<!-- not run: why -->\n\n    sully devices\n\nmore\n", []),
    "indented output": ("text\n\n    3 pods left\n\nmore\n", []),
}


@pytest.mark.parametrize(("page", "want"), PAGES.values(), ids=PAGES.keys())
def test_what_is_neither_run_nor_excused(page: str, want: list[str]) -> None:
    assert list(unexplained(f"# Title\n\n{page}")) == want


def test_the_flags_are_those_of_the_page() -> None:
    assert flags(f"# Title\n\n{START}") == ["--hollow-nodes", "3"]
    assert flags("# Title\n") == []
