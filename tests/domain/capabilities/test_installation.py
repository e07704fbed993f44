"""The flags of controllers that are installed."""

from __future__ import annotations

import pytest

from sully.domain.capabilities.installation import Installation, read_arguments

CASES = {
    "none": ((), Installation()),
    "as install writes them": (
        ("controllers", "--evictor=sully", "--lease=a/b", "--only=expiry,history"),
        Installation(evictor="sully", only=frozenset(("expiry", "history"))),
    ),
    "as people write them": (
        ("controllers", "--evictor", "server", "--only", "expiry"),
        Installation(evictor="server", only=frozenset(("expiry",))),
    ),
    "a flag without its value": (("controllers", "--only"), Installation()),
    "unknown": (("controllers", "--evictor=nobody"), Installation()),
}


@pytest.mark.parametrize(("arguments", "want"), CASES.values(), ids=CASES)
def test_flags(arguments: tuple[str, ...], want: Installation) -> None:
    assert read_arguments(arguments) == want
