"""`/debug/placements/<namespace>/<name>`: why a placement has its clusters, and what if.

GET explains a placement that exists, POST one that is sent, or plays changes of the fleet through.
Nothing is ever written. A user who may not read placements in a namespace does not learn which
exist, nor by a what-if which clusters do. See bodies.py (requests), responses.py (responses).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from sully.api.cluster.types import GROUP, Placement
from sully.domain.placement.changes import NoSuchClusterError
from sully.domain.placement.incremental.deciding import inputs
from sully.domain.placement.incremental.decision_counts import PlacementKey
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.incremental.membership import BrokenSetError
from sully.domain.placement.results.verdicts import PlacementExplanation
from sully.domain.placement.whatif import whatif
from sully.machinery.cel import CostBudget, CostBudgetExceededError
from sully.machinery.errors import Forbidden, Unauthorized
from sully.machinery.serialization.codec import to_json
from sully.machinery.serialization.gotext import quote
from sully.runtime.clock import Clock
from sully.server.authentication.groups import ANONYMOUS
from sully.server.authorization.attributes import Attributes
from sully.server.fleet import StoredFleet
from sully.server.http.access import AccessControl, RequestContext
from sully.server.http.http_request import HttpRequest
from sully.server.http.placements.bodies import MAX_BYTES, UnreadableBodyError, WhatIf, read_body
from sully.server.http.placements.responses import explanation_body, forecast_body
from sully.server.requests import User

PREFIX = "/debug/placements/"
COST_LIMIT = 10_000_000
"""CEL cost limit of one request: other requests wait meanwhile."""
Obj = dict[str, Any]


class _ResponseError(Exception):
    """An error response in the format of OCM's debug server."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class PlacementPages(msgspec.Struct, frozen=True):
    """Serves `/debug/placements/`."""

    fleet: StoredFleet
    access: AccessControl
    clock: Clock

    async def serve(self, http_request: HttpRequest, context: RequestContext) -> None:
        """Serve one request."""
        try:
            if http_request.method == "GET":
                body = await self._get(http_request, context)
            elif http_request.method == "POST":
                body = await self._post(http_request, context)
            else:
                await self._authorize(http_request, context, "get", "")
                raise _ResponseError(405, f"method {http_request.method} not allowed")
        except _ResponseError as error:
            await http_request.respond(error.code, to_json({"error": str(error)}))
            return
        await http_request.respond(200, to_json(body))

    async def _get(self, http_request: HttpRequest, context: RequestContext) -> Obj:
        namespace, name = _names(http_request.path)
        if not (namespace and name):
            await self._authorize(http_request, context, "get", "")
            raise _ResponseError(400, "invalid debug path: namespace and name required")
        # Permission first, then existence; OCM checks in the other order.
        await self._authorize(http_request, context, "get", namespace)

        def explain(fleet: Fleet) -> Obj:
            placement = fleet.placements.get((namespace, name))
            if placement is None:
                raise _ResponseError(404, f"placement '{name}' not found")
            return self._explain(fleet, placement)

        return await self._evaluate(explain)

    async def _post(self, http_request: HttpRequest, context: RequestContext) -> Obj:
        if context.user is ANONYMOUS and not self.access.anonymous:
            # Before the body is read, which has the namespace.
            raise Unauthorized("Unauthorized")
        content_length = http_request.header("content-length")
        try:
            if content_length.isdigit() and int(content_length) > MAX_BYTES:
                raise UnreadableBodyError("request body too large: http: request body too large")
            body = read_body(
                await self.access.read_body(http_request, context, _attributes("create", ""))
            )
        except UnreadableBodyError as error:
            await self._authorize(http_request, context, "create", _names(http_request.path)[0])
            raise _ResponseError(400, str(error)) from None
        placement = body.placement if isinstance(body, WhatIf) else body
        namespace = placement.metadata.namespace if placement is not None else ""
        namespace = namespace or _names(http_request.path)[0]
        user = await self._authorize(http_request, context, "create", namespace)
        if not isinstance(body, WhatIf):
            return await self._evaluate(lambda fleet: self._explain(fleet, body))
        if not self.fleet.options.compat.extends_placement_debug:
            raise _ResponseError(400, 'failed to unmarshal placement JSON: unknown field "changes"')
        self._check_clusters(body, user)
        return await self._evaluate(lambda fleet: self._forecast(fleet, body, user))

    def _check_clusters(self, body: WhatIf, user: User) -> None:
        """Reject changes of clusters that the user may not read, whether they exist or not."""
        for verb, name in body.clusters_read():
            attributes = Attributes(verb, GROUP, "v1", "managedclusters", name=name)
            if not self.access.authorizer.authorize(user, attributes).allowed:
                which = f"managedclusters {quote(name)}" if name else "managedclusters"
                raise _ResponseError(403, f"user does not have permission to {verb} {which}")

    async def _evaluate(self, evaluation: Callable[[Fleet], Obj]) -> Obj:
        try:
            return await self.fleet.evaluate(evaluation)
        except BrokenSetError as error:
            raise _ResponseError(500, str(error)) from None
        except NoSuchClusterError as error:
            raise _ResponseError(400, f"cluster {error} not found") from None
        except CostBudgetExceededError as error:
            raise _ResponseError(400, str(error)) from None

    def _explain(self, fleet: Fleet, placement: Placement) -> Obj:
        scheduling_inputs = inputs(fleet, placement, self.clock.now())
        explanation = PlacementExplanation(
            replace(scheduling_inputs, budget=CostBudget(COST_LIMIT))
        )
        return explanation_body(placement, explanation, compat=fleet.options.compat)

    def _forecast(self, fleet: Fleet, whatif_body: WhatIf, user: User) -> Obj:
        now = self.clock.now()
        budget = CostBudget(COST_LIMIT)
        forecast = whatif(fleet, whatif_body.changes, now, _end(now, whatif_body.duration), budget)
        allowed: dict[str, bool] = {}

        def visible(key: PlacementKey) -> bool:
            if key[0] not in allowed:
                attributes = _attributes("get", key[0])
                allowed[key[0]] = self.access.authorizer.authorize(user, attributes).allowed
            return allowed[key[0]]

        return forecast_body(forecast, visible)

    async def _authorize(
        self, http_request: HttpRequest, context: RequestContext, verb: str, namespace: str
    ) -> User:
        context.verb = verb.upper()
        attributes = _attributes(verb, namespace)
        try:
            user = self.access.authorize(http_request, context, attributes)
            await self.access.take_seat(http_request, context, attributes)
            return user
        except Forbidden:
            text = f"user does not have permission to {verb} placements in namespace {namespace}"
            raise _ResponseError(403, f"{text}: {context.reason}".rstrip(": ")) from None


def _attributes(verb: str, namespace: str) -> Attributes:
    return Attributes(verb, GROUP, "v1beta1", "placements", namespace=namespace)


def _names(path: str) -> tuple[str, str]:
    parts = [unquote(part) for part in path[len(PREFIX) :].split("/") if part]
    return (parts[0], parts[1]) if len(parts) > 1 else (parts[0] if parts else "", "")


def _end(now: datetime, duration: timedelta) -> datetime:
    try:
        return now + duration
    except OverflowError:
        return now
