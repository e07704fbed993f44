"""What is offered to a user who asks about a name that is unknown."""

from __future__ import annotations

import pytest

from explain.worlds import DRIVER, claim, device, evicted, pod, rule, slice_, snapshot
from sully.client.transport import Key
from sully.explain.reader import Reader
from sully.explain.suggestions import suggest

READER = Reader(
    snapshot(
        [
            slice_(device("gpu-0"), device("gpu-1")),
            pod("web-7f-a"),
            pod("web-7f-b"),
            pod("trainer"),
            claim("gpus"),
            evicted("web-7f-gone"),
            rule("fw-update"),
        ]
    )
)

CASES = {
    "the same in another namespace": ("pod", Key("default", "trainer"), ("team/trainer",)),
    "the name of its deployment": (
        "pod",
        Key("team", "web"),
        ("team/web-7f-a", "team/web-7f-b", "team/web-7f-gone"),
    ),
    "the name of a deployment elsewhere": (
        "pod",
        Key("default", "web"),
        ("team/web-7f-a", "team/web-7f-b", "team/web-7f-gone"),
    ),
    "a letter is missing": ("pod", Key("team", "trainr"), ("team/trainer",)),
    "a letter too many in the name of its deployment": (
        "pod",
        Key("team", "webb"),
        ("team/web-7f-a",),
    ),
    "a pool": ("device", Key("", "n1"), (f"{DRIVER}/n1/gpu-0", f"{DRIVER}/n1/gpu-1")),
    "a rule": ("rule", Key("", "fw-updat"), ("fw-update",)),
    "the end of a device": (
        "device",
        Key("", "n1/gpu-00"),
        (f"{DRIVER}/n1/gpu-0", f"{DRIVER}/n1/gpu-1"),
    ),
    "nothing like it": ("claim", Key("team", "zzz"), ()),
}


@pytest.mark.parametrize(("kind", "key", "want"), CASES.values(), ids=CASES.keys())
def test_suggest(kind: str, key: Key, want: tuple[str, ...]) -> None:
    assert suggest(READER, kind, key) == want
