"""The trace of an eviction: from the fault to the replacement, as OpenTelemetry has it.

A trace is built when everything in it has ended, so nothing has to be stored elsewhere. Its
identifiers follow from the uid of the pod: after a restart the same eviction has the same trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from sully.domain.observability.evictions import Eviction

EVICTION: Final = "eviction"
FAULT: Final = "fault"
TAINT: Final = "taint"
TERMINATE: Final = "terminate"
REPLACE: Final = "replace"
_INTERNAL: Final = 1
"""The kind of a span that is not a request."""


class Cause(msgspec.Struct, frozen=True):
    """Why a pod was evicted."""

    taint: str = ""
    source: str = ""
    fault: datetime | None = None
    """When a source of a policy reported the fault."""
    tainted: datetime | None = None


class EvictionTrace(msgspec.Struct):
    """An eviction with what is known about it so far."""

    eviction: Eviction
    cause: Cause
    gone: datetime | None = None
    replaced: datetime | None = None
    replacement: str = ""
    node: str = ""
    """The node of the replacement."""

    @property
    def complete(self) -> bool:
        """Report whether nothing more happens: a pod without a controller is not replaced."""
        return self.gone is not None and (self.replaced is not None or not self.eviction.owner)


class Span(msgspec.Struct, frozen=True):
    """A part of a trace; the parent of all others has no parent itself."""

    name: str
    start: datetime
    end: datetime
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)


def spans(trace: EvictionTrace) -> list[Span]:
    """Return the spans of a trace; the first one contains the others."""
    eviction, cause, began = trace.eviction, trace.cause, trace.eviction.began
    tainted = min(cause.tainted or began, began)
    parts = [Span(TAINT, tainted, began, {"sully.taint": cause.taint})] if cause.tainted else []
    if cause.fault is not None and cause.fault <= tainted:
        parts.insert(0, Span(FAULT, cause.fault, tainted, {"sully.source": cause.source}))
    if trace.gone is not None:
        parts.append(Span(TERMINATE, began, max(began, trace.gone)))
    if trace.replaced is not None:
        named = {"k8s.pod.name": trace.replacement, "k8s.node.name": trace.node}
        parts.append(Span(REPLACE, began, max(began, trace.replaced), named))
    about = {
        "k8s.namespace.name": eviction.namespace,
        "k8s.pod.name": eviction.name,
        "k8s.pod.uid": eviction.uid,
        "k8s.node.name": eviction.node,
        "sully.reason": eviction.reason,
        "sully.source": cause.source,
        "sully.taint": cause.taint,
    }
    start = min((part.start for part in parts), default=began)
    end = max((part.end for part in parts), default=began)
    return [Span(EVICTION, start, end, {k: v for k, v in about.items() if v}), *parts]


def otlp(traces: Iterable[EvictionTrace], version: str) -> dict[str, Any]:
    """Return the body of a request to a collector: OTLP in JSON."""
    resource = {"service.name": "sully", "service.version": version}
    encoded = [
        _span(trace.eviction.uid, span, parent="" if number == 0 else EVICTION)
        for trace in traces
        for number, span in enumerate(spans(trace))
    ]
    scope = {"name": "sully.evictions", "version": version}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": encoded}],
            }
        ]
    }


def _span(uid: str, span: Span, *, parent: str) -> dict[str, Any]:
    return {
        "traceId": _identifier(uid, 16),
        "spanId": _identifier(f"{uid} {span.name}", 8),
        **({"parentSpanId": _identifier(f"{uid} {parent}", 8)} if parent else {}),
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
    }


def _identifier(text: str, length: int) -> str:
    return sha256(text.encode()).digest()[:length].hex()


def _nanoseconds(time: datetime) -> str:
    return str(int(time.timestamp() * 1_000_000) * 1000)


def _attributes(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
