"""Counting requests, under the names Kubernetes uses; the numbers live in runtime/metrics.py."""

from sully.runtime.metrics import CONTENT_TYPE, Metrics, RequestLabels
from sully.server.http.exchange import Exchange
from sully.server.requests import Target

_MUTATING = frozenset(("POST", "PUT", "PATCH", "DELETE"))


class RequestCounter:
    """Counts requests and serves the page."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._requests = metrics.requests
        self._labels: dict[tuple[str, str], RequestLabels] = {}

    def begin(self, exchange: Exchange) -> None:
        """Count a request that is being served."""
        self._gauge(exchange).inc()

    def end(self, exchange: Exchange, verb: str, target: Target | None, seconds: float) -> None:
        """Count a finished request."""
        self._gauge(exchange).dec()
        labels = _labels(verb, target, exchange)
        if verb == "WATCH":
            self._requests.counted(labels, exchange.code)
        else:
            self._requests.answered(labels, exchange.code, seconds)

    def _gauge(self, exchange: Exchange):  # type: ignore[no-untyped-def]  # the library's gauge
        mutating = exchange.method in _MUTATING
        return self._requests.mutating if mutating else self._requests.reading

    async def page(self, exchange: Exchange) -> None:
        """Answer /metrics."""
        await exchange.answer(200, self._metrics.render(), CONTENT_TYPE)


def _labels(verb: str, target: Target | None, exchange: Exchange) -> RequestLabels:
    if target is None:
        return RequestLabels(verb)
    scope = "resource" if target.name else "namespace" if target.namespace else "cluster"
    resource = target.resource
    return RequestLabels(
        verb,
        resource.group,
        target.version,
        resource.plural,
        target.subresource,
        scope,
        "All" if exchange.query.get("dryRun") == "All" else "",
    )
