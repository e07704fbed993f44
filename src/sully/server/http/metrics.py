"""Counting requests, under the names Kubernetes uses; the numbers live in runtime/metrics.py."""

from collections.abc import Iterator
from contextlib import contextmanager

from sully.runtime.metrics import CONTENT_TYPE, Metrics, RequestLabels
from sully.server.http.http_request import HttpRequest
from sully.server.requests import Target

_MUTATING = frozenset(("POST", "PUT", "PATCH", "DELETE"))


class RequestCounter:
    """Counts requests and serves the page."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._requests = metrics.requests

    def begin(self, http_request: HttpRequest) -> None:
        """Count a request that is being served."""
        self._requests.inflight[_kind(http_request)] += 1

    def end(
        self, http_request: HttpRequest, verb: str, target: Target | None, seconds: float
    ) -> None:
        """Count a finished request."""
        self._requests.inflight[_kind(http_request)] -= 1
        labels = _labels(verb, target, http_request)
        if verb == "WATCH":
            self._requests.counted(labels, http_request.code)
        else:
            self._requests.answered(labels, http_request.code, seconds)

    @contextmanager
    def open_watch(self, http_request: HttpRequest, target: Target) -> Iterator[None]:
        """Count a watch while the block runs."""
        gauge = self._requests.long_running(_labels("WATCH", target, http_request))
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    async def page(self, http_request: HttpRequest) -> None:
        """Serve `/metrics`."""
        await http_request.respond(200, self._metrics.render(), CONTENT_TYPE)


def _kind(http_request: HttpRequest) -> str:
    return "mutating" if http_request.method in _MUTATING else "readOnly"


def _labels(verb: str, target: Target | None, http_request: HttpRequest) -> RequestLabels:
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
        "All" if http_request.query.get("dryRun") == "All" else "",
    )
