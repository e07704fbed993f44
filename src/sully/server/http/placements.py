"""`/debug/placements/<namespace>/<name>`: why a placement has its clusters, and what if.

GET explains a placement that exists, POST one that is sent, or plays changes of the fleet through.
Nothing is ever written. Who may not read placements in a namespace does not learn which exist, nor
by a what-if which clusters do.
See placement_bodies.py (what is sent), placement_answers.py (what is answered).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

from sully.api.cluster.types import GROUP, Placement
from sully.domain.placement.changes import NoSuchClusterError
from sully.domain.placement.counting import PlacementKey
from sully.domain.placement.deciding import inputs
from sully.domain.placement.fleet import Fleet
from sully.domain.placement.membership import BrokenSetError
from sully.domain.placement.verdicts import Explanation
from sully.domain.placement.whatif import whatif
from sully.machinery.cel import CostBudget, CostBudgetExceededError
from sully.machinery.codec import to_json
from sully.machinery.errors import Forbidden, Unauthorized
from sully.machinery.gotext import quote
from sully.runtime.clock import Clock
from sully.server.authentication.groups import ANONYMOUS
from sully.server.authorization.attributes import Attributes
from sully.server.fleet import StoredFleet
from sully.server.http.access import AccessControl, RequestContext
from sully.server.http.exchange import Exchange
from sully.server.http.placement_answers import explained, foretold
from sully.server.http.placement_bodies import LARGEST, UnreadableBodyError, WhatIf, read_body
from sully.server.requests import User

PREFIX = "/debug/placements/"
QUESTION_UNITS = 10_000_000
"""What evaluating expressions may cost for one question: others wait for the answer."""
Obj = dict[str, Any]


class _RefusedError(Exception):
    """An answer that is no success, in the form of OCM's debug server."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class PlacementPages:
    """Answers questions about placements."""

    fleet: StoredFleet
    access: AccessControl
    clock: Clock

    async def serve(self, exchange: Exchange, context: RequestContext) -> None:
        """Answer one request."""
        try:
            if exchange.method == "GET":
                answer = await self._get(exchange, context)
            elif exchange.method == "POST":
                answer = await self._post(exchange, context)
            else:
                await self._authorize(exchange, context, "get", "")
                raise _RefusedError(405, f"method {exchange.method} not allowed")
        except _RefusedError as error:
            await exchange.answer(error.code, to_json({"error": str(error)}))
            return
        await exchange.answer(200, to_json(answer))

    async def _get(self, exchange: Exchange, context: RequestContext) -> Obj:
        namespace, name = _names(exchange.path)
        if not (namespace and name):
            await self._authorize(exchange, context, "get", "")
            raise _RefusedError(400, "invalid debug path: namespace and name required")
        # Permission first, then existence; OCM checks in the other order.
        await self._authorize(exchange, context, "get", namespace)

        def explain(fleet: Fleet) -> Obj:
            placement = fleet.placements.get((namespace, name))
            if placement is None:
                raise _RefusedError(404, f"placement '{name}' not found")
            return self._explain(fleet, placement)

        return await self._evaluate(explain)

    async def _post(self, exchange: Exchange, context: RequestContext) -> Obj:
        if context.user is ANONYMOUS and not self.access.anonymous:
            # Before the body is read: it says which namespace the question is about.
            raise Unauthorized("Unauthorized")
        announced = exchange.header("content-length")
        try:
            if announced.isdigit() and int(announced) > LARGEST:
                raise UnreadableBodyError("request body too large: http: request body too large")
            asked = read_body(
                await self.access.read_body(exchange, context, _attributes("create", ""))
            )
        except UnreadableBodyError as error:
            await self._authorize(exchange, context, "create", _names(exchange.path)[0])
            raise _RefusedError(400, str(error)) from None
        placement = asked.placement if isinstance(asked, WhatIf) else asked
        namespace = placement.metadata.namespace if placement is not None else ""
        namespace = namespace or _names(exchange.path)[0]
        user = await self._authorize(exchange, context, "create", namespace)
        if not isinstance(asked, WhatIf):
            return await self._evaluate(lambda fleet: self._explain(fleet, asked))
        if not self.fleet.options.compat.extends_placement_debug:
            raise _RefusedError(400, 'failed to unmarshal placement JSON: unknown field "changes"')
        self._check_clusters(asked, user)
        return await self._evaluate(lambda fleet: self._foretell(fleet, asked, user))

    def _check_clusters(self, asked: WhatIf, user: User) -> None:
        """Reject changes of clusters that the user may not read, whether they exist or not."""
        for verb, name in asked.clusters_read():
            question = Attributes(verb, GROUP, "v1", "managedclusters", name=name)
            if not self.access.authorizer.decide(user, question).allowed:
                which = f"managedclusters {quote(name)}" if name else "managedclusters"
                raise _RefusedError(403, f"user does not have permission to {verb} {which}")

    async def _evaluate(self, question: Callable[[Fleet], Obj]) -> Obj:
        try:
            return await self.fleet.evaluate(question)
        except BrokenSetError as error:
            raise _RefusedError(500, str(error)) from None
        except NoSuchClusterError as error:
            raise _RefusedError(400, f"there is no cluster {error}") from None
        except CostBudgetExceededError as error:
            raise _RefusedError(400, str(error)) from None

    def _explain(self, fleet: Fleet, placement: Placement) -> Obj:
        asked = inputs(fleet, placement, self.clock.now())
        explanation = Explanation(replace(asked, budget=CostBudget(QUESTION_UNITS)))
        return explained(placement, explanation, compat=fleet.options.compat)

    def _foretell(self, fleet: Fleet, asked: WhatIf, user: User) -> Obj:
        now = self.clock.now()
        budget = CostBudget(QUESTION_UNITS)
        forecast = whatif(fleet, asked.changes, now, _end(now, asked.lasting), budget)
        seen: dict[str, bool] = {}

        def visible(key: PlacementKey) -> bool:
            if key[0] not in seen:
                question = _attributes("get", key[0])
                seen[key[0]] = self.access.authorizer.decide(user, question).allowed
            return seen[key[0]]

        return foretold(forecast, visible)

    async def _authorize(
        self, exchange: Exchange, context: RequestContext, verb: str, namespace: str
    ) -> User:
        context.verb = verb.upper()
        asked = _attributes(verb, namespace)
        try:
            user = self.access.authorize(exchange, context, asked)
            await self.access.take_seat(exchange, context, asked)
            return user
        except Forbidden:
            text = f"user does not have permission to {verb} placements in namespace {namespace}"
            raise _RefusedError(403, f"{text}: {context.reason}".rstrip(": ")) from None


def _attributes(verb: str, namespace: str) -> Attributes:
    return Attributes(verb, GROUP, "v1beta1", "placements", namespace=namespace)


def _names(path: str) -> tuple[str, str]:
    parts = [unquote(part) for part in path[len(PREFIX) :].split("/") if part]
    return (parts[0], parts[1]) if len(parts) > 1 else (parts[0] if parts else "", "")


def _end(now: datetime, lasting: timedelta) -> datetime:
    try:
        return now + lasting
    except OverflowError:
        return now
