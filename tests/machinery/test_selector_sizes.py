"""Selectors are limited before they are read: every object is compared with all of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sully.machinery.selectors import fieldselectors, labels

# name → (who reads it, the text, whether it is refused)
CASES: dict[str, tuple[Callable[[str], object], str, bool]] = {
    "many requirements": (labels.parse, ",".join(["a!=b"] * 100), False),
    "too many": (labels.parse, ",".join(["a!=b"] * 101), True),
    "many values": (labels.parse, f"a in ({','.join(map(str, range(1000)))})", False),
    "too many values": (labels.parse, f"a in ({','.join(map(str, range(1001)))})", True),
    "many fields": (fieldselectors.parse, ",".join(["a!=b"] * 100), False),
    "too many fields": (fieldselectors.parse, ",".join(["a!=b"] * 101), True),
}


@pytest.mark.parametrize("name", CASES)
def test_size(name: str) -> None:
    parse, text, refused = CASES[name]
    if not refused:
        parse(text)
        return
    with pytest.raises(labels.SelectorError, match="too many"):
        parse(text)
