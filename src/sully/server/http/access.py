"""Authentication, impersonation, authorization, flow control and audit of each request.

One `Visit` goes with each request. `Door.admit` checks identity, impersonation and permission;
`Door.enter` then reads the body and takes a seat among the requests under way: nobody holds a seat
by sending slowly. Both count to whom the credentials name. Writes, refusals and what is done as
somebody else, and on demand all reads, are in the audit log, whatever their end was.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sully.machinery.errors import ApiError, Unauthorized
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.server.audit.events import DECISION, REASON, Entry
from sully.server.audit.log import AuditLog
from sully.server.authentication.authenticator import Authenticator
from sully.server.authentication.groups import ANONYMOUS
from sully.server.authentication.impersonation import PREFIX, impersonate, wanted
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.authorization.enforce import refusal
from sully.server.flowcontrol.limits import BODY, READ, UNREAD, WATCH, WRITE, Limits, Slot
from sully.server.flowcontrol.priority import flow_of
from sully.server.http.exchange import Exchange
from sully.server.requests import Target, User

_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_REFUSED = (401, 403)


@dataclass(slots=True)
class Visit:
    """What is known about a request, also when it fails."""

    caller: User | None = None  # whom the credentials name
    user: User | None = None  # as whom the request acts
    target: Target | None = None
    verb: str = ""
    slots: tuple[Slot, ...] = ()
    allowed: bool | None = None  # None: nobody was asked
    why: str = ""
    constraint: str = ""
    error: ApiError | None = None


@dataclass(slots=True)
class Door:
    """Lets requests in."""

    authenticator: Authenticator
    authorizer: Authorizer
    limits: Limits
    clock: Clock
    ids: Ids
    audit: AuditLog | None = None
    audit_reads: bool = False  # whether it is also told who read which objects
    anonymous: bool = False  # whether those without credentials get past pages that are public

    def greet(self, exchange: Exchange, visit: Visit) -> None:
        """Find out who asks; raises Unauthorized."""
        visit.caller = visit.user = self.authenticator.authenticate(
            exchange.scope, exchange.headers
        )

    def admit(self, exchange: Exchange, visit: Visit, asked: Attributes) -> User:
        """Return as whom a request may go on; raises Unauthorized or Forbidden."""
        user = visit.user
        if user is None:
            raise ValueError("who asks must be known first")
        if user is ANONYMOUS and not self.anonymous:
            raise Unauthorized("Unauthorized")
        for name in exchange.headers:
            if name.startswith(PREFIX):
                user = visit.user = self._other(exchange, user, visit, asked)
                break
        verdict = self.authorizer.decide(user, asked)
        visit.allowed, visit.why = verdict.allowed, verdict.reason
        if not verdict.allowed:
            raise refusal(user, asked, verdict)
        if asked.verb == "watch" and user is not visit.caller:
            self._note_start(exchange, visit)
        return user

    async def enter(self, exchange: Exchange, visit: Visit, asked: Attributes) -> None:
        """Read the body of a write and take a seat; raises TooManyRequests."""
        flow = flow_of(visit.caller or ANONYMOUS, asked)
        exchange.unread = partial(self.limits.enter, flow, UNREAD)
        if exchange.method in _WRITES:
            await self.receive(exchange, visit, asked)
        visit.slots += (self.limits.enter(flow, kind_of(exchange, asked)),)

    async def receive(self, exchange: Exchange, visit: Visit, asked: Attributes) -> bytes:
        """Read the body of a request, which counts while the request lasts."""
        flow = flow_of(visit.caller or ANONYMOUS, asked)
        held = self.limits.enter(flow, BODY, 0)
        visit.slots += (held,)
        return await exchange.body(held)

    def allows(self, exchange: Exchange, asked: Attributes) -> bool:
        """Say whether a request that was admitted would be admitted now."""
        visit = Visit()
        try:
            self.greet(exchange, visit)
            self.admit(exchange, visit, asked)
        except ApiError:
            return False
        return True

    def seconds_left(self, exchange: Exchange) -> float:
        """Return how long the credentials of a request are still good."""
        return self.authenticator.seconds_left(exchange.scope, exchange.headers)

    def _other(self, exchange: Exchange, user: User, visit: Visit, asked: Attributes) -> User:
        wish = wanted(exchange.scope["headers"])
        if wish is None:
            return user
        visit.allowed = False
        other, visit.constraint = impersonate(user, wish, asked, self.authorizer)
        return other

    def _note_start(self, exchange: Exchange, visit: Visit) -> None:
        """Note that a watch as somebody else begins: it may last, and outlast the server."""
        if self.audit is not None:
            entry = self._entry(exchange, visit, self.clock.now())
            entry.stage, entry.code = "ResponseStarted", 200
            self.audit.write(entry)

    def leave(self, exchange: Exchange, visit: Visit, received: datetime | None) -> None:
        """Note that a request has ended."""
        for slot in visit.slots:
            slot.release()
        if received is not None and self.audit is not None and self._counts(exchange, visit):
            self.audit.write(self._entry(exchange, visit, received))

    def received(self) -> datetime | None:
        """Return when a request began, where there is an audit log."""
        return None if self.audit is None else self.clock.now()

    def _counts(self, exchange: Exchange, visit: Visit) -> bool:
        """Say whether a request is audited: reviews only ask, and pages are not objects."""
        if exchange.code in _REFUSED or visit.allowed is False or visit.user is not visit.caller:
            return True
        wrote = exchange.method in _WRITES
        if visit.target is None:
            return wrote
        return self.audit_reads or (wrote and not visit.target.resource.virtual)

    def _entry(self, exchange: Exchange, visit: Visit, received: datetime) -> Entry:
        client = exchange.scope.get("client")
        return Entry(
            id=self.ids.uid(),
            verb=visit.verb.lower() or exchange.method.lower(),
            uri=exchange.path + ("?dryRun=All" if exchange.query.get("dryRun") else ""),
            received=received,
            ended=self.clock.now(),
            code=exchange.code,
            reason="" if visit.error is None else visit.error.reason,
            user=visit.caller,
            acting=None if visit.user is visit.caller else visit.user,
            target=visit.target,
            name=exchange.object_name,
            agent=exchange.header("user-agent"),
            source=client[0] if client else "",
            annotations=_annotations(visit),
        )


def kind_of(exchange: Exchange, asked: Attributes) -> str:
    """Say what a request counts as."""
    if exchange.method in _WRITES:
        return WRITE
    return WATCH if asked.verb == "watch" else READ


def _annotations(visit: Visit) -> dict[str, str]:
    if visit.allowed is None:
        return {}
    found = {DECISION: "allow" if visit.allowed else "forbid", REASON: visit.why}
    if visit.constraint:
        found["authentication.k8s.io/impersonation-constraint"] = visit.constraint
    return found
