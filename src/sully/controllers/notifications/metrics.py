"""The metrics of notifications."""

from __future__ import annotations

from sully.runtime.metrics import Metrics


class NotificationMetrics:
    """How many messages were sent, and what was lost."""

    def __init__(self, metrics: Metrics) -> None:
        self._sent = metrics.counter(
            "sully_notifications_sent_total",
            "Number of messages that a receiver accepted, by the kind of notification.",
            ("receiver", "kind"),
        )
        self._failed = metrics.counter(
            "sully_notifications_failed_total",
            "Number of messages that a receiver did not accept after several attempts.",
            ("receiver",),
        )
        self._dropped = metrics.counter(
            "sully_notifications_dropped_total",
            "Number of notifications that were dropped because too many waited for a receiver.",
            ("receiver",),
        )

    def sent(self, receiver: str, kind: str) -> None:
        """Count a message that was accepted."""
        self._sent.labels(receiver, kind).inc()

    def failed(self, receiver: str) -> None:
        """Count a message that was given up."""
        self._failed.labels(receiver).inc()

    def dropped(self, receiver: str) -> None:
        """Count a notification that was dropped."""
        self._dropped.labels(receiver).inc()
