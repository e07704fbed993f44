"""The routes of the dashboard: a path for each page and each change."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from sully.cli.client.spinner import no_spinners
from sully.cli.command import CommandError
from sully.cli.dashboard import fleet_queries, operations, queries
from sully.dashboard.app import RouteError, Routes


def routes() -> Routes:
    """Return all routes; an error of a command is shown on the page."""
    live: Mapping[str, Any] = {
        "select": queries.select,
        "attributes": queries.attributes,
        "device": queries.device,
        "rules": queries.rules,
        "evictions": queries.evictions,
        "pending": queries.pending,
        "clusters": fleet_queries.clusters,
        "charts": fleet_queries.charts,
    }
    answers: Mapping[str, Any] = {
        **live,
        "history": queries.history,
        "explain": queries.explain,
        "operations": operations.operations,
    }
    changes: Mapping[str, Any] = {
        "plan": operations.plan,
        "apply": operations.apply,
        "operation": operations.control,
        "pause": operations.pause,
    }
    return Routes(
        {name: _as_route(work) for name, work in answers.items()},
        {name: _as_route(work) for name, work in changes.items()},
        live=frozenset(live),
    )


def _as_route(work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(work)
    async def route(*args: Any) -> Any:
        with no_spinners():
            try:
                return await work(*args)
            except CommandError as error:
                raise RouteError(str(error)) from error

    return route
