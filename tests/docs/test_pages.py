"""The rules by which it is known that every command of a page is run."""

import pytest

from docs.pages import flags, mentioned, unexplained

START = "```bash\nsully up --simulated-nodes 3   # and more\nexport X=1\n```\n"
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
    assert flags(f"# Title\n\n{START}") == ["--simulated-nodes", "3"]
    assert flags("# Title\n") == []


MENTIONED = {
    "a command": ("Type `sully plan -f a.yaml` here.", ["sully plan -f a.yaml"]),
    "over two lines": ("Type `sully plan\n-f a.yaml` here.", ["sully plan -f a.yaml"]),
    "as a plugin": ("`kubectl sully plan -f a.yaml`", ["sully plan -f a.yaml"]),
    "its name": ("`sully evictions pause` and `kubectl describe pod`", []),
    "a place for a name": ("`sully explain pod NAME`, `sully devices … -o wide`", []),
    "what continues": ("`sully up --simulated-nodes 3`", []),
    "in a block": ("text\n\n```bash\n`sully plan -f a.yaml`\n```\n", []),
}


@pytest.mark.parametrize(("page", "want"), MENTIONED.values(), ids=MENTIONED)
def test_the_commands_of_a_text(page: str, want: list[str]) -> None:
    assert list(mentioned(f"# Title\n\n{page}\n")) == want
