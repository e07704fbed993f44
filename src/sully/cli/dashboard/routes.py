"""The routes of the dashboard: a path for each page and each change."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from sully.cli.command import CommandError
from sully.cli.dashboard import fleet_queries, operations, queries
from sully.cli.dashboard.bodies import ApplyBody, OperationBody, PauseBody, PlanBody, checked
from sully.cli.output.spinner import no_spinners
from sully.dashboard.app import Dashboard, RouteError, Routes
from sully.dashboard.viewers import Viewer


def routes() -> Routes:
    """Return all routes; an error of a command is shown on the page."""
    live: Mapping[str, Any] = {
        "select": queries.select,
        "attributes": queries.attributes,
        "device": queries.device,
        "rules": queries.rules,
        "evictions": queries.evictions,
        "effects": queries.effects,
        "pending": queries.pending,
        "clusters": fleet_queries.clusters,
        "charts": fleet_queries.charts,
        "operations": operations.operations,
    }
    answers: Mapping[str, Any] = {
        **live,
        "history": queries.history,
        "explain": queries.explain,
    }
    changes: Mapping[str, tuple[Any, Any]] = {
        "plan": (operations.plan, PlanBody),
        "apply": (operations.apply, ApplyBody),
        "operation": (operations.control, OperationBody),
        "pause": (operations.pause, PauseBody),
    }
    return Routes(
        {name: _as_route(work) for name, work in answers.items()},
        {name: _as_route(_typed(work, body)) for name, (work, body) in changes.items()},
        live=frozenset((*live, "plan")),
    )


def _typed(work: Callable[..., Awaitable[Any]], type_: Any) -> Callable[..., Awaitable[Any]]:
    async def change(viewer: Viewer, body: Mapping[str, Any], dashboard: Dashboard) -> Any:
        return await work(viewer, checked(body, type_), dashboard)

    return change


def _as_route(work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(work)
    async def route(*args: Any) -> Any:
        with no_spinners():
            try:
                return await work(*args)
            except CommandError as error:
                raise RouteError(str(error)) from error

    return route
