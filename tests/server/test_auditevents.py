"""What an audited request looks like, and that a client cannot make it long."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sully.api import build_scheme
from sully.server.audit.events import TRUNCATED, AuditEvent, bounded, bounded_user, line, truncate
from sully.server.requests import Target, User

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
HUGE = "x" * 1_000_000
CONFIGMAPS: Any = build_scheme().find("", "v1", "configmaps")
MOST = 12 << 10

TEXTS = {
    "short": ("kubectl/1.37", "kubectl/1.37"),
    "as long as it may be": ("x" * 1024, "x" * 1024),
    "one too long": ("x" * 1025, "x" * 1024 + TRUNCATED),
    "counted as it is written": ("\x01" * 400, "\x01" * 170 + TRUNCATED),
    "letters of many bytes": ("日" * 400, "日" * 341 + TRUNCATED),
    "no text in UTF-8": ("a\ud800b", "a?b"),
}


@pytest.mark.parametrize(("text", "want"), TEXTS.values(), ids=TEXTS.keys())
def test_cut(text: str, want: str) -> None:
    assert truncate(text, 1024) == want


ENTRIES: dict[str, dict[str, Any]] = {
    "verb": {"verb": HUGE},
    "uri": {"uri": HUGE},
    "user agent": {"agent": HUGE},
    "user agent of control characters": {"agent": "\x00" * 100_000},
    "name in the body": {"name": HUGE, "target": Target(CONFIGMAPS, "v1", "a")},
    "name in the path": {"target": Target(CONFIGMAPS, "v1", HUGE, HUGE)},
    "user": {"user": User(HUGE, (HUGE,), HUGE, {HUGE: (HUGE,)})},
    "many groups": {"acting": User("a", tuple(f"group-{n}" for n in range(10_000)))},
    "many empty groups": {"acting": User("a", ("",) * 100_000)},
    "many extras": {"acting": User("a", extra={f"key-{n}": ("v",) * 100 for n in range(1000)})},
    "reason": {"annotations": {"authorization.k8s.io/reason": HUGE}},
}


@pytest.mark.parametrize("fields", ENTRIES.values(), ids=ENTRIES.keys())
def test_one_long_field(fields: dict[str, Any]) -> None:
    written = line(bounded(AuditEvent(**{"id": "1", "verb": "get", "uri": "/", **TIMES, **fields})))

    assert len(written) < MOST / 3
    assert "TRUNCATED" in json.dumps(json.loads(written))


TIMES = {"received": NOW, "ended": NOW, "code": 403}


def test_everything_long() -> None:
    user = User(HUGE, (HUGE,) * 100, HUGE, {f"{n}{HUGE}": (HUGE,) * 9 for n in range(99)})
    fields: dict[str, Any] = {}
    for item in ENTRIES.values():
        fields |= item
    entry = AuditEvent(**{"id": "1", **TIMES, **fields, "user": user, "acting": user})

    assert len(line(bounded(entry))) < MOST


def test_groups_that_decide_are_not_pushed_out() -> None:
    others = tuple(f"system:{'x' * 200}{n}" for n in range(1000))

    result = bounded_user(User("a", (*others, "system:masters", "system:authenticated")))

    assert result.groups[0] == "system:masters"
    assert result.groups[-1] == TRUNCATED


def test_an_ordinary_user_is_not_copied() -> None:
    account = "system:serviceaccount:kube-system:device-taint-eviction-controller"
    groups = (
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
        "system:authenticated",
    )
    extra = {"authentication.kubernetes.io/credential-id": (f"JTI={'0' * 36}",)}
    user = User(account, groups, "0" * 36, extra)

    assert bounded_user(user) is user
