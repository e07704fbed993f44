"""How a number of things is written."""

import pytest

from sully.machinery.formats.plurals import number_of


@pytest.mark.parametrize(("number", "want"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_number_of(number: int, want: str) -> None:
    assert number_of(number, "pod") == want
