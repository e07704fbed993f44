"""Addresses to which no request may go."""

import pytest

from sully.machinery.formats.addresses import is_refused


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("169.254.169.254", True),
        ("::ffff:169.254.169.254", True),
        ("fe80::1", True),
        ("0.0.0.0", True),
        ("224.0.0.1", True),
        ("10.0.0.1", False),
        ("127.0.0.1", False),
        ("example.com", False),
    ],
)
def test_where_nothing_is_sent(address: str, refused: bool) -> None:
    assert is_refused(address) is refused
