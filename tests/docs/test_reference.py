"""The generated pages show what the program does now."""

import re

from generate_picture import PICTURE, ROOT, picture
from generate_reference import cli_page, stale_pages


def test_kubernetes_is_fresh() -> None:
    assert list(stale_pages()) == [], "run `make generate`"


def test_the_picture_is_of_what_the_program_prints() -> None:
    assert (ROOT / PICTURE).read_text() == picture(), "run `make generate`"


def test_defaults_are_as_users_write_them() -> None:
    page = "\n".join(cli_page())

    assert "| `30d` | How long to keep records" in page
    assert re.findall(r"\| `(\[.*?\]|\d+\.0|None|True)` \|", page) == []


def test_kubernetes_has_every_metric() -> None:
    created = re.compile(r'\.(?:counter|gauge|histogram|computed)\(\s*"([a-z_0-9]+)"')
    sources = (path.read_text() for path in (ROOT / "src").rglob("*.py"))
    names = {name for source in sources for name in created.findall(source)}
    page = (ROOT / "docs/reference/metrics.md").read_text()

    assert names - set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == set()
    assert len(names) > 40
