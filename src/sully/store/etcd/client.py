"""Calls the members of an etcd cluster, with failover.

A call that finds a member gone, cut off or without a leader is sent to the next one, until
`PATIENCE` is over. That is safe for reads, and for transactions because the store makes every one
of them depend on the revisions of all it writes: applied once, it cannot be applied again. Whether
an earlier attempt may have been applied is reported with the answer, because then a rejection is
ambiguous.

The messages are in `messages.py`, `tokens.py` has the credentials; the paths below are the
methods of etcd's services.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import grpc
from grpc import aio

from sully.runtime.clock import Clock
from sully.runtime.deadlines import seconds_left
from sully.runtime.log import get_logger
from sully.store.errors import StoreError, UnavailableError
from sully.store.etcd import messages as m
from sully.store.etcd.address import Address, Tls
from sully.store.etcd.tokens import Metadata, Tokens, is_forgotten

TIMEOUT = 10.0
"""Seconds until a call fails: members elect a new leader in about two."""
ATTEMPT_TIMEOUT = 2.0
"""Seconds until another member is tried."""
_RETRY_DELAY = 0.05
"""Seconds between rounds over all members when none answers."""

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A hidden retry could not be distinguished from a first attempt.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A watch on a machine that vanished would otherwise wait indefinitely; etcd allows every 5 s.
    ("grpc.keepalive_time_ms", 6000),
    ("grpc.keepalive_timeout_ms", 3000),
    ("grpc.http2.max_pings_without_data", 0),
    # Channels to one address must not share a connection: a test may close one under another.
    ("grpc.use_local_subchannel_pool", 1),
)

_UNARY = {
    "login": ("/etcdserverpb.Auth/Authenticate", m.AuthenticateRequest, m.AuthenticateResponse),
    "range": ("/etcdserverpb.KV/Range", m.RangeRequest, m.RangeResponse),
    "txn": ("/etcdserverpb.KV/Txn", m.TxnRequest, m.TxnResponse),
    "compact": ("/etcdserverpb.KV/Compact", m.CompactionRequest, m.CompactionResponse),
}
_RETRY = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INTERNAL,
    }
)

_TOO_LARGE = ("too large", "larger than max")

_log = get_logger("store")


class CompactedHistoryError(StoreError):
    """The requested revision was compacted."""

    def __init__(self, compacted: int = 0) -> None:
        self.compacted = compacted
        super().__init__(f"etcd has compacted its history up to {compacted or 'a later revision'}")


class RefusedError(UnavailableError):
    """etcd rejected the request."""

    uncertain = False
    """Whether an earlier attempt may have been applied, before this one was rejected."""


class NoPasswordsError(RefusedError):
    """etcd has authentication disabled."""


class RequestTooLargeError(RefusedError):
    """The request is larger than etcd, or gRPC, accepts."""


class _Member:
    """One endpoint with the methods that are called on it."""

    def __init__(self, endpoint: str, tls: Tls) -> None:
        self.endpoint = endpoint
        self.channel = _channel(endpoint, tls)
        self.unary = {
            name: self.channel.unary_unary(
                path,
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )
            for name, (path, request, response) in _UNARY.items()
        }
        self.watch = self.channel.stream_stream(
            "/etcdserverpb.Watch/Watch",
            request_serializer=m.WatchRequest.SerializeToString,
            response_deserializer=m.WatchResponse.FromString,
        )


def _channel(endpoint: str, tls: Tls) -> Any:
    if tls.ca is None:
        return aio.insecure_channel(endpoint, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(
        tls.ca.read_bytes(),
        tls.key.read_bytes() if tls.key else None,
        tls.certificate.read_bytes() if tls.certificate else None,
    )
    return aio.secure_channel(endpoint, credentials, options=_OPTIONS)


class Client:
    """Calls etcd. Belongs to one event loop; `close` it there."""

    def __init__(self, address: Address, clock: Clock, timeout: float = TIMEOUT) -> None:
        self._members = [_Member(endpoint, address.tls) for endpoint in address.endpoints]
        self._current = 0
        self._clock = clock
        self._tokens = Tokens(address.login, self._authenticate)
        self.timeout = timeout

    @property
    def endpoint(self) -> str:
        """Return the member for the next call."""
        return self._members[self._current].endpoint

    async def range(self, request: m.Message) -> m.Message:
        """Read keys, as the majority of the members has them."""
        response, _ = await self._call("range", request)
        return response

    async def txn(self, request: m.Message) -> tuple[m.Message, bool]:
        """Run a transaction; also return whether an earlier attempt may have been applied."""
        return await self._call("txn", request)

    async def compact(self, revision: int) -> None:
        """Compact history; `CompactedHistoryError` if it was compacted before."""
        await self._call("compact", m.CompactionRequest(revision=revision))

    async def watch(
        self, start: bytes, end: bytes, revision: int
    ) -> AsyncGenerator[m.Message, None]:
        """Yield the changes of a range of keys from a revision on.

        Raises `CompactedHistoryError`, or `UnavailableError` if the member is lost; then the next
        watch asks another one.
        """
        token = await self._tokens.metadata()
        member = self._current
        # A partitioned member must report it, not stall.
        call = self._members[member].watch(metadata=(("hasleader", "true"), *token))
        create = m.WatchCreateRequest(
            key=start, range_end=end, start_revision=revision, progress_notify=True
        )
        try:
            await call.write(m.WatchRequest(create_request=create))
            while (response := await call.read()) is not aio.EOF:
                if response.canceled:
                    if not response.compact_revision:
                        # The response does not distinguish missing permissions from an old token.
                        self._tokens.forget(token)
                    raise _cancelled(response)
                yield response
        except (aio.AioRpcError, asyncio.InvalidStateError) as error:
            self._switch_from(member, error)
            raise UnavailableError(f"lost the watch on etcd: {_text(error)}") from error
        finally:
            call.cancel()
        self._switch_from(member, None)
        raise UnavailableError("etcd ended the watch")

    async def oldest(self, start: bytes, end: bytes) -> int:
        """Return the revision up to which history was compacted; call it only if some was."""
        try:
            async with aclosing(self.watch(start, end, 1)) as responses:
                async for response in responses:
                    if not response.created:
                        break
        except CompactedHistoryError as error:
            return error.compacted
        return 0

    def switch_member(self) -> None:
        """Switch to another member."""
        self._current = (self._current + 1) % len(self._members)

    async def close(self) -> None:
        """Close all connections."""
        for member in self._members:
            await member.channel.close()

    async def _authenticate(self, request: m.Message) -> str:
        try:
            response, _ = await self._call("login", request)
        except NoPasswordsError:
            return ""
        token: str = response.token
        return token

    async def _call(self, name: str, request: m.Message) -> tuple[m.Message, bool]:
        deadline = self._clock.monotonic() + self.timeout
        attempts = 0
        while True:
            token = () if name == "login" else await self._tokens.metadata()
            member, left = self._current, deadline - self._clock.monotonic()
            if name == "txn":
                # Reads are shared: cancelling one reader must not cancel the others.
                left = min(left, _time_left())
            try:
                call = self._members[member].unary[name]
                timeout = max(0.01, min(ATTEMPT_TIMEOUT, left))
                return await call(request, timeout=timeout, metadata=token), attempts > 0
            except aio.AioRpcError as error:
                if not self._old_token(error, token):
                    _check_refusal(error, uncertain=attempts > 0)
                    attempts += 1
                    self._switch_from(member, error)
                if self._clock.monotonic() >= deadline:
                    raise UnavailableError(f"no etcd member answers: {_text(error)}") from error
            if attempts % len(self._members) == 0:
                await self._clock.sleep(_RETRY_DELAY)

    def _old_token(self, error: Any, token: Metadata) -> bool:
        """Report whether to retry a call with another token."""
        return is_forgotten(error) and self._tokens.forget(token)

    def _switch_from(self, member: int, error: Exception | None) -> None:
        """Switch to the next member, unless another call has done so."""
        if member == self._current:
            self.switch_member()
            reason = _text(error) if error else "the stream ended"
            _log.warning(
                "switched to another etcd member",
                previous=self._members[member].endpoint,
                reason=reason,
            )


def _time_left() -> float:
    """Return how long a write may take; raises if the deadline has passed."""
    left = seconds_left()
    if left <= 0:
        raise UnavailableError("request to etcd not sent: deadline exceeded")
    return left


def _check_refusal(error: Any, *, uncertain: bool) -> None:
    """Raise errors that a retry does not fix."""
    if error.code() is grpc.StatusCode.OUT_OF_RANGE and "compacted" in (error.details() or ""):
        raise CompactedHistoryError from error
    if error.code() is grpc.StatusCode.FAILED_PRECONDITION and "not enabled" in error.details():
        raise NoPasswordsError(f"etcd rejected the request: {_text(error)}") from error
    if error.code() not in _RETRY:
        # etcd has one code for several errors; its own client identifies them by text, too.
        too_large = any(text in (error.details() or "") for text in _TOO_LARGE)
        refusal = RequestTooLargeError if too_large else RefusedError
        refused = refusal(f"etcd rejected the request: {_text(error)}")
        refused.uncertain = uncertain
        raise refused from error


def _cancelled(response: m.Message) -> StoreError:
    if response.compact_revision:
        return CompactedHistoryError(response.compact_revision)
    return UnavailableError(f"etcd cancelled the watch: {response.cancel_reason}")


def _text(error: Any) -> str:
    if isinstance(error, aio.AioRpcError):
        return f"{error.details()} ({error.code().name})"
    return str(error)
