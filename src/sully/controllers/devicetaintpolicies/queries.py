"""Queries Prometheus for policies, again and again, beside the reconciles: a server may be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sully.api.sully.types import DeviceTaintPolicy, DeviceTaintPolicyPrometheus
from sully.client.transport import Key
from sully.domain.devicepolicies.prometheus import (
    QueryError,
    QueryResult,
    interval_of,
    parse_response,
)
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first

log = get_logger("controllers")

Fetch = Callable[[DeviceTaintPolicyPrometheus], Awaitable[bytes]]


@dataclass(slots=True)
class _Query:
    source: DeviceTaintPolicyPrometheus
    due: datetime
    result: QueryResult | None = None


@dataclass(slots=True)
class PrometheusQueries:
    """The queries of all policies, and their last results."""

    fetch: Fetch
    clock: Clock
    notify: Callable[[Key], None] = lambda _: None
    """Called with the policy that a different result is for."""
    _queries: dict[Key, dict[str, _Query]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def track(self, key: Key, policy: DeviceTaintPolicy) -> None:
        """Query what a policy specifies from now on; results of a changed query do not count."""
        old, now = self._queries.get(key, {}), self.clock.now()
        new = {
            source.name: old[source.name]
            if source.name in old and old[source.name].source == source.prometheus
            else _Query(source.prometheus, now)
            for source in policy.spec.sources
            if source.prometheus is not None
        }
        if new:
            self._queries[key] = new
        else:
            self._queries.pop(key, None)
        if any(query.result is None for query in new.values()):
            self._changed.set()

    def forget(self, key: Key) -> None:
        """Stop the queries of a policy."""
        self._queries.pop(key, None)

    def results(self, key: Key) -> Mapping[str, QueryResult]:
        """Return the last results of a policy, by source; nothing of what was not queried yet."""
        queries = self._queries.get(key, {})
        return {name: query.result for name, query in queries.items() if query.result is not None}

    async def run(self) -> None:
        """Query until cancelled."""
        while True:
            now = self.clock.now()
            due = [
                (key, query)
                for key, queries in self._queries.items()
                for query in queries.values()
                if query.due <= now
            ]
            await asyncio.gather(*(self._ask(key, query) for key, query in due))
            await self._pause()

    async def _pause(self) -> None:
        dues = [query.due for queries in self._queries.values() for query in queries.values()]
        waits: list[Awaitable[object]] = [self._changed.wait()]
        if dues:
            seconds = (min(dues) - self.clock.now()).total_seconds()
            waits.append(self.clock.sleep(max(0.0, seconds)))
        await wait_first(*waits)
        self._changed.clear()

    async def _ask(self, key: Key, query: _Query) -> None:
        query.due = self.clock.now() + interval_of(query.source)
        try:
            result = QueryResult(parse_response(query.source, await self.fetch(query.source)))
        except QueryError as error:
            result = QueryResult(problem=f"the query failed: {error}")
            if query.result != result:
                log.warning("query failed", policy=str(key), error=str(error))
        if query.result != result:
            query.result = result
            self.notify(key)
