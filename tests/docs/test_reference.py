"""The generated pages say what the program does now."""

from generate_reference import stale_pages


def test_the_reference_is_fresh() -> None:
    assert list(stale_pages()) == [], "run `make generate`"
