"""Values that are wrong in few places: what is wrong everywhere is refused immediately."""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("SULLY_FUZZ_EXAMPLES", "0")) * 20 or 60
"""`make robust` tries more."""
SETTINGS = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

odd = st.sampled_from(
    ["", "m", "a/b", "1Gi", "-1", "50%", "NaN", "null", "2026-01-01T00:00:00Z", "é", "\0", "\ud800"]
) | st.text(max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | odd
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of everything inside a value."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    results = [(*path, key) for key, _ in inner]
    for key, item in inner:
        results += places(item, (*path, key))
    return results


@st.composite
def changed(draw: st.DrawFn, good: dict[str, Any]) -> dict[str, Any]:
    """Change a good object in a few places."""
    body = deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(places(body)))
        at: Any = body
        for key in above:
            at = at[key]
        if isinstance(at, dict) and draw(st.booleans()):
            at[draw(odd)] = draw(values)
        else:
            at[last] = draw(values)
        if not places(body):
            break
    return body


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """Change, insert, repeat or cut off a few bytes."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 4)))
        data[start:end] = draw(st.binary(max_size=4) | st.just(bytes(data[start:end]) * 2))
        if draw(st.integers(0, 9)) == 0:
            del data[draw(st.integers(0, len(data))) :]
    return bytes(data)
