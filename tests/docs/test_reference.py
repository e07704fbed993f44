"""The generated pages say what the program does now."""

import re

from generate_picture import PICTURE, ROOT, picture
from generate_reference import cli_page, stale_pages


def test_the_reference_is_fresh() -> None:
    assert list(stale_pages()) == [], "run `make generate`"


def test_the_picture_is_of_what_the_program_prints() -> None:
    assert (ROOT / PICTURE).read_text() == picture(), "run `make generate`"


def test_defaults_are_as_users_write_them() -> None:
    page = "\n".join(cli_page())

    assert "| `30d` | How long to keep records" in page
    assert re.findall(r"\| `(\[.*?\]|\d+\.0|None|True)` \|", page) == []
