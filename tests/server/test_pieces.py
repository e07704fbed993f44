"""Large lists are sent in pieces: together they are the list."""

from __future__ import annotations

import pytest

from sully.server.http.lists import list_pieces

LARGE = 128 * 1024


@pytest.mark.parametrize(
    "sizes", [[], [1], [LARGE], [LARGE, 1], [1] * 5, [LARGE // 3] * 7, [1, LARGE, 1]]
)
def test_pieces_of_a_list_make_the_list(sizes: list[int]) -> None:
    items = [b"x" * size for size in sizes]

    pieces = list(list_pieces(b"[", iter(items)))

    assert b"".join(pieces) == b"[" + b",".join(items) + b"]}\n"
    assert all(len(piece) < 2 * LARGE + 9 for piece in pieces)
