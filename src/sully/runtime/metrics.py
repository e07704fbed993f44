"""The metrics at `/metrics`, under the names of Kubernetes.

Each `Metrics` has its own registry, so that two control planes in one process, as in tests, do
not mix. Only app.py and remote.py create one. Labels are few and bounded: a series per device
would take longer to print than anyone waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from sully.machinery.gates import Gates, stage_of
from sully.runtime.workqueue import Running

if TYPE_CHECKING:
    # Imported with the first Metrics, see there.
    from prometheus_client import Counter, Gauge, Histogram
    from prometheus_client.core import GaugeMetricFamily

    Metric = TypeVar("Metric", Counter, Gauge, Histogram)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_BUCKETS = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0),
    *(3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)


Values = Mapping[tuple[str, ...], float]
"""The values of a gauge, by the values of its labels."""


class RequestLabels(NamedTuple):
    """What a request was about, as Kubernetes labels it."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    dry_run: str = ""
    component: str = "apiserver"


class Metrics:
    """A registry, and the metrics of requests and work queues."""

    def __init__(self) -> None:
        # Not imported with this module: it brings a web server with it, which a command that
        # prints a table should not pay for.
        import prometheus_client

        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no type here
        self._library = prometheus_client
        self.registry = prometheus_client.CollectorRegistry()
        self._registered: dict[str, Counter | Gauge | Histogram] = {}
        self._computed: dict[str, _ComputedGauge] = {}
        self.requests = RequestMetrics(self)
        self._queues = _QueueFamilies(self)

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Return a counter, the same one each time; its name ends in `_total`."""
        new = self._library.Counter
        return self._once(name, lambda: new(name, text, labels, registry=self.registry))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Return a gauge, the same one each time."""
        new = self._library.Gauge
        return self._once(name, lambda: new(name, text, labels, registry=self.registry))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]
    ) -> Histogram:
        """Return a histogram, the same one each time."""
        new = self._library.Histogram
        return self._once(
            name, lambda: new(name, text, labels, registry=self.registry, buckets=buckets)
        )

    def computed(
        self, name: str, text: str, labels: Sequence[str], values: Callable[[], Values]
    ) -> None:
        """Export a gauge whose values are read on each scrape; the last registration counts.

        For labels whose values come and go, such as the names of objects.
        """
        computed = self._computed.get(name)
        if computed is None:
            computed = self._computed[name] = _ComputedGauge(name, text, labels)
            self.registry.register(computed)
        computed.values = values

    def _once(self, name: str, new: Callable[[], Metric]) -> Metric:
        # Controllers are constructed again each time they are elected.
        metric = self._registered.get(name)
        if metric is None:
            metric = self._registered[name] = new()
        return cast("Metric", metric)

    def queue(self, name: str) -> QueueMetrics:
        """Return the observer of the work queue with this name."""
        return QueueMetrics(self._queues, name)

    def render(self) -> bytes:
        """Return the page that Prometheus reads, as `CONTENT_TYPE`."""
        return self._library.generate_latest(self.registry)


class _ComputedGauge:
    """A gauge that is read on each scrape, as the library's custom collectors."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self._name, self._text, self._labels = name, text, labels
        self.values: Callable[[], Values] = dict

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauge without values, so that no other metric gets its name."""
        yield self._family()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauge with its values, in the order of their labels."""
        family = self._family()
        for labels, value in sorted(self.values().items()):
            family.add_metric(labels, value)
        yield family

    def _family(self) -> GaugeMetricFamily:
        from prometheus_client.core import GaugeMetricFamily

        return GaugeMetricFamily(self._name, self._text, labels=self._labels)


def publish_gates(metrics: Metrics, gates: Gates, *, without: frozenset[str] = frozenset()) -> None:
    """Publish feature gates as every component of Kubernetes does, some of them left out."""
    gauge = metrics.gauge(
        "kubernetes_feature_enabled", "Feature gates: 1 if enabled, 0 if not.", ("name", "stage")
    )
    for name, enabled in gates.all().items():
        if name in without:
            continue
        gauge.labels(name, stage_of(name)).set(int(enabled))


def publish_tasks(metrics: Metrics, count: Callable[[], int]) -> None:
    """Publish how many tasks the event loop has: a number that only grows is a leak."""
    gauge = metrics.gauge("sully_asyncio_tasks", "Number of asyncio tasks of the process.")
    gauge.set_function(count)


class RequestMetrics:
    """What the API server counts about its requests."""

    def __init__(self, metrics: Metrics) -> None:
        names = RequestLabels._fields
        self._total = metrics.counter(
            "apiserver_request_total", "Requests answered, by what they did.", (*names, "code")
        )
        self._seconds = metrics.histogram(
            "apiserver_request_duration_seconds",
            "Seconds until a request was answered.",
            names,
            buckets=REQUEST_BUCKETS,
        )
        self._inflight = metrics.gauge(
            "apiserver_current_inflight_requests", "Requests being answered.", ("request_kind",)
        )
        self._long_running = metrics.gauge(
            "apiserver_longrunning_requests",
            "Requests that stay open, such as watches.",
            tuple(name for name in names if name != "dry_run"),
        )
        # Finding a child by its labels takes longer than counting with it.
        self._counters: dict[tuple[RequestLabels, int], Counter] = {}
        self._timers: dict[RequestLabels, Histogram] = {}
        self.inflight = {"readOnly": 0, "mutating": 0}
        """How many requests are being answered, by their kind; read on each scrape."""
        for kind in self.inflight:
            gauge = self._inflight.labels(kind)
            gauge.set_function(partial(self.inflight.__getitem__, kind))

    def answered(self, labels: RequestLabels, code: int, seconds: float) -> None:
        """Count one answered request."""
        self.counted(labels, code)
        timer = self._timers.get(labels)
        if timer is None:
            timer = self._timers[labels] = self._seconds.labels(*labels)
        timer.observe(seconds)

    def counted(self, labels: RequestLabels, code: int) -> None:
        """Count one request whose duration has no meaning, such as a watch."""
        counter = self._counters.get((labels, code))
        if counter is None:
            counter = self._counters[labels, code] = self._total.labels(*labels, str(code))
        counter.inc()

    def long_running(self, labels: RequestLabels) -> Gauge:
        """Return the gauge of open requests of this kind, to be moved up and down."""
        chosen = {key: value for key, value in labels._asdict().items() if key != "dry_run"}
        return self._long_running.labels(**chosen)


class _QueueFamilies:
    """The metrics of all work queues, labeled by name."""

    def __init__(self, metrics: Metrics) -> None:
        label = ("name",)
        self.depth = metrics.gauge("workqueue_depth", "Keys in the queue.", label)
        self.adds = metrics.counter("workqueue_adds_total", "Keys queued.", label)
        self.retries = metrics.counter("workqueue_retries_total", "Keys that were retried.", label)
        self.unfinished = metrics.gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds spent so far on keys that are being processed.",
            label,
        )
        self.longest = metrics.gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds spent so far on the key that has been processed longest.",
            label,
        )
        self.waited = metrics.histogram(
            "workqueue_queue_duration_seconds",
            "Seconds a key was queued.",
            label,
            buckets=QUEUE_BUCKETS,
        )
        self.worked = metrics.histogram(
            "workqueue_work_duration_seconds",
            "Seconds it took to process a key.",
            label,
            buckets=QUEUE_BUCKETS,
        )


@dataclass(slots=True, init=False)
class QueueMetrics:
    """Observes one work queue; implements `workqueue.QueueObserver`."""

    _depth: Gauge
    _unfinished: Gauge
    _longest: Gauge
    _adds: Counter
    _retries: Counter
    _waited: Histogram
    _worked: Histogram

    def __init__(self, families: _QueueFamilies, name: str) -> None:
        self._depth = families.depth.labels(name)
        self._unfinished = families.unfinished.labels(name)
        self._longest = families.longest.labels(name)
        self._adds = families.adds.labels(name)
        self._retries = families.retries.labels(name)
        self._waited = families.waited.labels(name)
        self._worked = families.worked.labels(name)

    def added(self) -> None:
        """Count a queued key."""
        self._adds.inc()

    def started(self, waited: float) -> None:
        """Observe how long a key was queued."""
        self._waited.observe(waited)

    def finished(self, worked: float) -> None:
        """Observe how long a key was processed."""
        self._worked.observe(worked)

    def retried(self) -> None:
        """Count a retry."""
        self._retries.inc()

    def observe(self, queue: Running) -> None:
        """Publish the waiting and unfinished work of a queue."""
        self._depth.set_function(queue.__len__)
        self._unfinished.set_function(queue.unfinished)
        self._longest.set_function(queue.longest)
