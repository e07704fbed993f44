"""Queries Prometheus for policies, again and again, beside the reconciles: a server may be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final

import msgspec

from sully.api.sully.types import DeviceTaintPolicy, DeviceTaintPolicyPrometheus
from sully.client.transport import Key
from sully.domain.devicepolicies.sources.prometheus import (
    QueryError,
    QueryResult,
    interval_of,
    lifetime_of,
    parse_response,
)
from sully.runtime.clock import Clock, Moment
from sully.runtime.log import get_logger

log = get_logger("controllers")

_SMALL: Final = 1 << 16
"""Bytes of a response that is parsed on the event loop; larger ones in a thread."""
_EXPIRED: Final = QueryResult(problem="the last result of the query is too old")

Fetch = Callable[[DeviceTaintPolicyPrometheus], Awaitable[bytes]]


class _Query(msgspec.Struct):
    source: DeviceTaintPolicyPrometheus
    result: QueryResult | None = None
    executed: Moment | None = None
    """When the query of the result was sent."""
    task: asyncio.Task[None] | None = None

    def expires_in(self, clock: Clock) -> timedelta:
        """Return how long the result counts; nothing if it does not, or if there is none."""
        if self.executed is None:
            return timedelta(0)
        age = timedelta(seconds=self.executed.since(clock))
        return max(timedelta(0), lifetime_of(self.source) - age)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class PrometheusQueries(msgspec.Struct):
    """The queries of all policies, and their last results."""

    fetch: Fetch
    clock: Clock
    notify: Callable[[Key], None] = lambda _: None
    """Called with the policy that a different result is for."""
    _queries: dict[Key, dict[str, _Query]] = msgspec.field(default_factory=dict)
    _changed: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def track(self, key: Key, policy: DeviceTaintPolicy) -> None:
        """Query what a policy specifies from now on; results of a changed query do not count."""
        old = self._queries.get(key, {})
        new = {
            source.name: old[source.name]
            if source.name in old and old[source.name].source == source.prometheus
            else _Query(source.prometheus)
            for source in policy.spec.sources
            if source.prometheus is not None
        }
        for name, query in old.items():
            if new.get(name) is not query:
                query.cancel()
        self._queries[key] = new
        self._changed.set()

    def forget(self, key: Key) -> None:
        """Stop the queries of a policy."""
        for query in self._queries.pop(key, {}).values():
            query.cancel()

    def results(self, key: Key) -> Mapping[str, QueryResult]:
        """Return the last results of a policy, by source; nothing of what was not queried yet."""
        return {
            name: query.result if query.expires_in(self.clock) else _EXPIRED
            for name, query in self._queries.get(key, {}).items()
            if query.result is not None
        }

    def expires_in(self, key: Key) -> timedelta | None:
        """Return when the first result of a policy will not count any more; None if none does."""
        left = [query.expires_in(self.clock) for query in self._queries.get(key, {}).values()]
        return min(filter(None, left), default=None)

    async def run(self) -> None:
        """Query until cancelled: each query by itself, so that none waits for another server."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                for key, queries in self._queries.items():
                    for query in queries.values():
                        if query.task is None:
                            query.task = tasks.create_task(self._repeat(key, query))
                await self._changed.wait()

    async def _repeat(self, key: Key, query: _Query) -> None:
        while True:
            executed = Moment.of(self.clock)
            result = await self._execute(key, query)
            changed = query.result != result or not query.expires_in(self.clock)
            query.result, query.executed = result, executed
            if changed:
                self.notify(key)
            left = interval_of(query.source).total_seconds() - executed.since(self.clock)
            await self.clock.sleep(left)

    async def _execute(self, key: Key, query: _Query) -> QueryResult:
        """Return the result; whatever a server does is only a problem of its query."""
        try:
            body = await self.fetch(query.source)
            if len(body) > _SMALL:
                return QueryResult(await asyncio.to_thread(parse_response, query.source, body))
            return QueryResult(parse_response(query.source, body))
        except QueryError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - no server may stop the controllers
            problem = f"unexpected {type(error).__name__}"
        result = QueryResult(problem=f"the query failed: {problem}")
        if query.result != result:
            log.warning("query failed", policy=str(key), error=problem)
        return result
