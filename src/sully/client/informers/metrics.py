"""Metrics of informers: how fresh each cache is, and its requests.

Kubernetes components no longer publish such metrics, so the names are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sully.client.informers.informer import Informer
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.runtime.metrics import Metrics

if TYPE_CHECKING:
    from prometheus_client import Counter

LABELS = ("resource", "type", "selector")
"""The type distinguishes informers that read different fields of the same resource."""


class InformerMetrics:
    """The metrics of all informers."""

    def __init__(self, metrics: Metrics) -> None:
        self._age = metrics.gauge(
            "sully_informer_age_seconds",
            "Seconds since the server last confirmed that a cache is complete.",
            LABELS,
        )
        self._connected = metrics.gauge(
            "sully_informer_connected", "1 while a cache is connected and up to date.", LABELS
        )
        self._objects = metrics.gauge("sully_informer_objects", "Objects in a cache.", LABELS)
        self._lists = metrics.counter(
            "sully_informer_lists_total", "Complete lists of a collection.", LABELS
        )
        self._watches = metrics.counter(
            "sully_informer_watches_total", "Watches opened, including resumed ones.", LABELS
        )
        self._events = metrics.counter(
            "sully_informer_events_total", "Watch events received, including bookmarks.", LABELS
        )
        self._failures = metrics.counter(
            "sully_informer_failures_total", "Failed lists and watches.", LABELS
        )
        self._expired = metrics.counter(
            "sully_informer_expired_total",
            "Watches whose resourceVersion had expired (410).",
            LABELS,
        )

    def follow(self, informer: Informer[Any], selector: ObjectSelector) -> InformerObserver:
        """Publish the freshness of an informer; return the observer that counts for it."""
        labels, freshness = _labels(informer.kind, selector), informer.freshness
        self._age.labels(*labels).set_function(lambda: freshness.age)
        self._objects.labels(*labels).set_function(lambda: len(informer))
        connected = self._connected.labels(*labels)
        connected.set_function(lambda: informer.synced and freshness.problem is None)
        return InformerObserver(
            self._lists.labels(*labels),
            self._watches.labels(*labels),
            self._events.labels(*labels),
            self._failures.labels(*labels),
            self._expired.labels(*labels),
        )


class InformerObserver(msgspec.Struct, frozen=True):
    """Counts for one informer; implements `reflector.Observer`."""

    lists: Counter
    watches: Counter
    events: Counter
    failures: Counter
    expired: Counter

    def listed(self) -> None:
        """Count a complete list."""
        self.lists.inc()

    def watched(self) -> None:
        """Count a watch."""
        self.watches.inc()

    def event_received(self) -> None:
        """Count a watch event."""
        self.events.inc()

    def failed(self, *, expired: bool) -> None:
        """Count a failure; it is `expired` if the resourceVersion was too old (410)."""
        (self.expired if expired else self.failures).inc()


def _labels(kind: Kind[Any], selector: ObjectSelector) -> tuple[str, str, str]:
    parts = (selector.namespace, selector.label_selector, selector.field_selector)
    resource = f"{kind.plural}.{kind.group}".rstrip(".")
    type_ = kind.kind if kind.untyped else kind.type.__name__
    return resource, type_, " ".join(filter(None, parts))
