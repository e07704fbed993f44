"""Which notifications are sent together, when, and in which words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sully.domain.notifications import batches
from sully.domain.notifications.batches import ReceiverQueue
from sully.domain.notifications.kinds import EVICTION_BEGUN, POLICY_STORM, TAINT_SET, Notification
from sully.domain.notifications.payloads import LINES_MAX, payload
from sully.domain.notifications.settings import (
    SLACK,
    Receiver,
    SettingsError,
    parse_settings,
)
from sully.machinery.formats.timestamps import format_time
from sully.testing.clock import NOON

OPS: dict[str, Any] = {"name": "ops", "url": "https://example.com/hook"}
RECEIVER = Receiver(name="ops", url="https://example.com/hook")


def at(seconds: float) -> Any:
    return NOON + timedelta(seconds=seconds)


def note(
    kind: str = TAINT_SET, about: str = "DeviceTaintRule/a", seconds: float = 0
) -> Notification:
    return Notification(kind, about, "why", at(seconds))


def test_notifications_wait_for_others_and_are_grouped_by_kind() -> None:
    queue = ReceiverQueue(RECEIVER)
    assert (queue.due(), queue.take(at(0))) == (None, [])
    queue.add(note())
    queue.add(note(EVICTION_BEGUN, "Pod/a/b", 3))
    queue.add(note(about="DeviceTaintRule/b", seconds=4))

    assert queue.due() == at(10)
    assert queue.take(at(9)) == []
    assert [(one.kind, len(one.notifications)) for one in queue.take(at(10))] == [
        (TAINT_SET, 2),
        (EVICTION_BEGUN, 1),
    ]
    assert queue.due() is None


def test_the_next_sending_waits_for_the_interval() -> None:
    queue = ReceiverQueue(RECEIVER)
    queue.add(note())
    queue.take(at(10))
    queue.add(note(about="x", seconds=11))

    assert queue.due() == at(70)


def test_the_same_about_the_same_object_is_not_repeated_for_an_hour() -> None:
    queue = ReceiverQueue(RECEIVER)
    for seconds in (0, 5, 3599):
        queue.add(note(seconds=seconds))
    assert len(queue.take(at(4000))[0].notifications) == 1
    queue.add(note(seconds=3600))
    assert queue.due() is not None


def test_only_what_the_receiver_wants() -> None:
    queue = ReceiverQueue(replace(RECEIVER, kinds=frozenset((POLICY_STORM,))))
    queue.add(note())
    assert queue.due() is None


def test_the_oldest_is_dropped() -> None:
    queue = ReceiverQueue(RECEIVER, queued_max=2, recent_max=1)

    assert [queue.add(note(about=name)) for name in "abc"] == [0, 0, 1]
    assert [one.about for one in queue.take(at(10))[0].notifications] == ["b", "c"]


def batch(count: int, about: str = "x") -> batches.Batch:
    return batches.Batch(TAINT_SET, tuple(note(about=f"{about}{n}") for n in range(count)))


def test_a_webhook_gets_the_notifications_as_json() -> None:
    body = payload(RECEIVER, batch(LINES_MAX + 2))

    assert (body["version"], body["kind"], body["count"]) == ("sully.dev/v1", TAINT_SET, 22)
    assert body["notifications"][0] == {
        "about": "x0",
        "message": "why",
        "time": format_time(NOON),
    }
    assert len(body["notifications"]) == LINES_MAX
    assert body["text"].splitlines()[0] == "Sully: devices are tainted (22)"
    assert body["text"].splitlines()[-1] == "and 2 more"


def test_slack_gets_a_text_that_mentions_nobody() -> None:
    body = payload(replace(RECEIVER, format=SLACK), batch(1, "<!channel>&"))

    assert body == {"text": "Sully: devices are tainted (1)\n&lt;!channel&gt;&amp;0: why"}


def test_a_template_chooses_the_text() -> None:
    (receiver,) = parse_settings({"receivers": [{**OPS, "template": "$kind: $count for $$1"}]})

    assert payload(receiver, batch(3))["text"] == "TaintSet: 3 for $1"


def test_what_the_file_reports() -> None:
    text = {
        "name": "b",
        "urlFile": "/u",
        "format": "Slack",
        "bearerTokenFile": "/t",
        "caFile": "/c",
        "kinds": ["PolicyStorm"],
        "groupWaitSeconds": 1,
        "intervalSeconds": 2,
        "repeatSeconds": 3,
    }
    first, second = parse_settings({"receivers": [OPS, text]})

    assert first.url == OPS["url"]
    assert first.kinds >= {TAINT_SET, POLICY_STORM}
    assert (second.url_file, second.token_file, second.ca_file) == ("/u", "/t", "/c")
    assert (second.format, second.kinds) == (SLACK, frozenset((POLICY_STORM,)))
    assert second.repeat == timedelta(seconds=3)


WRONG: dict[str, tuple[Any, str]] = {
    "no receivers": ({}, "receivers"),
    "not a mapping": ([], "object"),
    "a typing error": ({"receivers": [{**OPS, "ulr": "x"}]}, "ulr"),
    "no url": ({"receivers": [{"name": "a"}]}, "either url or urlFile"),
    "two urls": ({"receivers": [{**OPS, "urlFile": "/u"}]}, "either url or urlFile"),
    "a bad name": ({"receivers": [{**OPS, "name": "A b"}]}, "invalid name"),
    "a name twice": ({"receivers": [OPS, OPS]}, "used twice"),
    "plain http": ({"receivers": [{**OPS, "url": "http://example.com/"}]}, "https"),
    "a file": ({"receivers": [{**OPS, "url": "file:///etc/passwd"}]}, "https"),
    "no url at all": ({"receivers": [{**OPS, "url": "https://[x"}]}, "invalid URL"),
    "credentials": ({"receivers": [{**OPS, "url": "https://a:b@example.com"}]}, "credentials"),
    "metadata": ({"receivers": [{**OPS, "url": "https://169.254.169.254/"}]}, "link-local"),
    "format": ({"receivers": [{**OPS, "format": "Mail"}]}, "one of: Webhook, Slack"),
    "kind": ({"receivers": [{**OPS, "kinds": ["X"]}]}, "unknown value X"),
    "time": ({"receivers": [{**OPS, "intervalSeconds": -1}]}, "between 0 and 86400"),
    "template": ({"receivers": [{**OPS, "template": "$ x"}]}, "dollar sign"),
    "field": ({"receivers": [{**OPS, "template": "$secret"}]}, "unknown field secret"),
}


@pytest.mark.parametrize(("document", "text"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(document: Any, text: str) -> None:
    with pytest.raises(SettingsError, match=text.replace("$", "[$]")):
        parse_settings(document)
