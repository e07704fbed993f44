"""Remembering who is gone."""

from __future__ import annotations

from typing import Any

from sully.client.informers.informer import Informer
from sully.client.transport import EventType, WatchEvent
from sully.controllers.claims import releasing
from sully.controllers.claims.releasing import DeletedPods
from sully.domain.claims.pods import Pod, PodMetadata
from sully.testing.clock import FakeClock
from sully.views.kinds import CONSUMER_PODS


class Feed:
    """An informer that a test feeds by hand."""

    def __init__(self) -> None:
        no_server: Any = None
        self.informer: Informer[Any] = Informer(no_server, CONSUMER_PODS, clock=FakeClock())

    def send(self, type_: EventType, uid: str) -> None:
        pod = Pod(metadata=PodMetadata(name=uid, namespace="a", uid=uid, resource_version="1"))
        self.informer.change(WatchEvent(type_, pod, "1"))


def test_who_went_is_recorded_until_it_comes_back() -> None:
    feed = Feed()
    gone = DeletedPods(feed.informer)

    feed.send("ADDED", "u")
    assert "u" not in gone
    feed.send("DELETED", "u")
    assert "u" in gone
    feed.send("ADDED", "u")
    assert "u" not in gone


def test_the_longest_gone_are_forgotten() -> None:
    feed = Feed()
    gone = DeletedPods(feed.informer)

    for index in range(releasing.MAX_DELETED_PODS + 1):
        feed.send("ADDED", str(index))
        feed.send("DELETED", str(index))

    assert len(gone) == releasing.MAX_DELETED_PODS
    assert "0" not in gone
    assert str(releasing.MAX_DELETED_PODS) in gone
