"""Authentication, impersonation, authorization, flow control and audit of each request.

A `RequestContext` accompanies each request. `authorize` checks impersonation and permission;
`take_seat` then reads the body and takes a seat of the priority level: a slow
sender holds none.
Both count against the authenticated user, not the impersonated one. The audit log has all writes,
rejections and impersonated requests, and on demand all reads.
"""

from datetime import datetime
from functools import partial

import msgspec

from sully.machinery.errors import ApiError, Unauthorized
from sully.machinery.serialization.gotext import quote
from sully.runtime.clock import Clock
from sully.runtime.ids import Ids
from sully.server.audit.events import DECISION, REASON, AuditEvent, bounded_user
from sully.server.audit.log import AuditSink
from sully.server.authentication.authenticator import Authenticator
from sully.server.authentication.groups import ANONYMOUS
from sully.server.authentication.impersonation import (
    PREFIX,
    RequestedUser,
    impersonate,
    requested_user,
)
from sully.server.authorization.attributes import Attributes, Authorizer
from sully.server.authorization.enforce import refusal
from sully.server.flowcontrol.limits import BODY, READ, UNREAD, WATCH, WRITE, Limits, Slot
from sully.server.flowcontrol.priority import Flow, flow_of
from sully.server.http.http_request import HttpRequest
from sully.server.requests import Target, User

_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_REFUSED = (401, 403)


class RequestContext(msgspec.Struct):
    """What is known about a request, also when it fails."""

    caller: User | None = None  # the authenticated user
    user: User | None = None  # the user that the request acts as
    target: Target | None = None
    verb: str = ""
    slots: tuple[Slot, ...] = ()
    allowed: bool | None = None  # None: not decided
    reason: str = ""
    constraint: str = ""
    error: ApiError | None = None


class AccessControl(msgspec.Struct):
    """The filters that a request passes before it is served."""

    authenticator: Authenticator
    authorizer: Authorizer
    limits: Limits
    clock: Clock
    ids: Ids
    audit: AuditSink | None = None
    audit_reads: bool = False
    anonymous: bool = False  # whether RBAC decides on requests without credentials

    def authenticate(self, http_request: HttpRequest, context: RequestContext) -> None:
        """Set the user of a request; raises Unauthorized."""
        context.caller = context.user = self.authenticator.authenticate(
            http_request.scope, http_request.headers
        )

    def authorize(
        self, http_request: HttpRequest, context: RequestContext, attributes: Attributes
    ) -> User:
        """Return the user that a request acts as; raises Unauthorized or Forbidden."""
        user = context.user
        if user is None:
            raise ValueError("the request must be authenticated first")
        if user is ANONYMOUS and not self.anonymous:
            raise Unauthorized("Unauthorized")
        for name in http_request.headers:
            if name.startswith(PREFIX):
                user = context.user = self._impersonated(http_request, user, context, attributes)
                break
        decision = self.authorizer.authorize(user, attributes)
        context.allowed, context.reason = decision.allowed, decision.reason
        if not decision.allowed:
            raise refusal(user, attributes, decision)
        if attributes.verb == "watch" and user is not context.caller:
            self._audit_start(http_request, context)
        return user

    async def take_seat(
        self, http_request: HttpRequest, context: RequestContext, attributes: Attributes
    ) -> None:
        """Read the body of a write and take a seat; raises TooManyRequests."""
        flow = flow_of(context.caller or ANONYMOUS, attributes)
        http_request.unread = partial(self.limits.enter, flow, UNREAD)
        if http_request.method in _WRITES:
            await self._read_body(http_request, context, flow)
        context.slots += (self.limits.enter(flow, seat_kind(http_request, attributes)),)

    async def read_body(
        self, http_request: HttpRequest, context: RequestContext, attributes: Attributes
    ) -> bytes:
        """Read the body of a request; its bytes count until the request ends."""
        flow = flow_of(context.caller or ANONYMOUS, attributes)
        return await self._read_body(http_request, context, flow)

    async def _read_body(
        self, http_request: HttpRequest, context: RequestContext, flow: Flow
    ) -> bytes:
        counter = self.limits.enter(flow, BODY, 0)
        context.slots += (counter,)
        return await http_request.body(counter)

    def allows(self, http_request: HttpRequest, attributes: Attributes) -> bool:
        """Report whether an authorized request would be authorized now."""
        context = RequestContext()
        try:
            self.authenticate(http_request, context)
            self.authorize(http_request, context, attributes)
        except ApiError:
            return False
        return True

    def seconds_left(self, http_request: HttpRequest) -> float:
        """Return how long the credentials of a request remain valid."""
        return self.authenticator.seconds_left(http_request.scope, http_request.headers)

    def _impersonated(
        self, http_request: HttpRequest, user: User, context: RequestContext, attributes: Attributes
    ) -> User:
        requested = requested_user(http_request.scope["headers"])
        if requested is None:
            return user
        context.allowed, context.reason = False, _tried(requested)
        acting, context.constraint = impersonate(user, requested, attributes, self.authorizer)
        return acting

    def _audit_start(self, http_request: HttpRequest, context: RequestContext) -> None:
        """Audit the start of an impersonated watch: it may outlast the server."""
        if self.audit is not None:
            entry = self._entry(http_request, context, self.clock.now())
            entry.stage, entry.code = "ResponseStarted", 200
            self.audit.write(entry)

    def finish(
        self, http_request: HttpRequest, context: RequestContext, received: datetime | None
    ) -> None:
        """Release the seats of a request and audit it."""
        for slot in context.slots:
            slot.release()
        if (
            received is not None
            and self.audit is not None
            and self._is_audited(http_request, context)
        ):
            self.audit.write(self._entry(http_request, context, received))

    def received(self) -> datetime | None:
        """Return when a request started, if it may be audited."""
        return None if self.audit is None else self.clock.now()

    def _is_audited(self, http_request: HttpRequest, context: RequestContext) -> bool:
        """Report whether a request is audited: not reviews and pages."""
        if (
            http_request.code in _REFUSED
            or context.allowed is False
            or context.user is not context.caller
        ):
            return True
        wrote = http_request.method in _WRITES
        if context.target is None:
            return wrote
        return self.audit_reads or (wrote and not context.target.resource.virtual)

    def _entry(
        self, http_request: HttpRequest, context: RequestContext, received: datetime
    ) -> AuditEvent:
        client = http_request.scope.get("client")
        return AuditEvent(
            id=self.ids.uid(),
            verb=context.verb.lower() or http_request.method.lower(),
            uri=http_request.path + ("?dryRun=All" if http_request.query.get("dryRun") else ""),
            received=received,
            ended=self.clock.now(),
            code=http_request.code,
            reason="" if context.error is None else context.error.reason,
            user=context.caller,
            acting=None if context.user is context.caller else context.user,
            target=context.target,
            name=http_request.object_name,
            agent=http_request.header("user-agent"),
            source=client[0] if client else "",
            annotations=_annotations(context) | http_request.audit_annotations,
        )


def seat_kind(http_request: HttpRequest, attributes: Attributes) -> str:
    """Return the kind of seat that a request takes."""
    if http_request.method in _WRITES:
        return WRITE
    return WATCH if attributes.verb == "watch" else READ


def _tried(requested: RequestedUser) -> str:
    """Return who a refused impersonation wanted to be, for the audit log."""
    shown = bounded_user(User(requested.name, tuple(requested.groups), requested.uid))
    groups = f" in {', '.join(map(quote, shown.groups))}" if shown.groups else ""
    uid = f" with UID {quote(shown.uid)}" if shown.uid else ""
    return f"impersonation of {quote(shown.name)}{uid}{groups} was refused"


def _annotations(context: RequestContext) -> dict[str, str]:
    if context.allowed is None:
        return {}
    annotations = {DECISION: "allow" if context.allowed else "forbid", REASON: context.reason}
    if context.constraint:
        annotations["authentication.k8s.io/impersonation-constraint"] = context.constraint
    return annotations
