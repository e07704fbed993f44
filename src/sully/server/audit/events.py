"""One audited request as an event of audit.k8s.io/v1, at the level Metadata.

Events have names and decisions, never bodies or messages: those may quote a Secret. What a client
chooses (user agent, path, requested and impersonated names) is truncated, so that an event has a
few KiB at most. log.py writes them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from sully.machinery.formats.timestamps import format_micro_time
from sully.machinery.serialization.codec import to_json
from sully.machinery.strategy import Obj
from sully.server.authentication.groups import ANONYMOUS, MASTERS
from sully.server.authentication.reviews import user_info
from sully.server.requests import Target, User

DECISION = "authorization.k8s.io/decision"
REASON = "authorization.k8s.io/reason"
TRUNCATED = "...TRUNCATED"
"""Ends a truncated text, as in Kubernetes."""

_MAX_TEXT = 1024  # of a user agent, a path or a reason
_MAX_NAME = 256  # of an object, a user, a group: longer ones are not valid
_MAX_LIST = 1024  # of all groups together, and of all extra values
_MAX_ESCAPED = 6  # bytes that JSON takes for a character: \u0000

_BEGINNING = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata",'


class AuditEvent(msgspec.Struct):
    """One completed request."""

    id: str
    verb: str
    uri: str
    received: datetime
    ended: datetime
    code: int
    reason: str = ""
    user: User | None = None  # None: not authenticated
    acting: User | None = None  # the impersonated user
    target: Target | None = None
    name: str = ""  # of the object, where the path has none
    agent: str = ""
    source: str = ""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    stage: str = "ResponseComplete"

    @property
    def authenticated(self) -> bool:
        """Report whether the request was authenticated."""
        return self.user is not None and self.user is not ANONYMOUS


def bounded(entry: AuditEvent) -> AuditEvent:
    """Truncate what the client chose, in place: entries are queued in memory.

    A caller in this process, without a URI, chooses nothing.
    """
    if not entry.uri:
        return entry
    entry.uri = truncate(entry.uri, _MAX_TEXT)
    entry.verb = truncate(entry.verb, _MAX_NAME)
    entry.agent = truncate(entry.agent, _MAX_TEXT)
    entry.name = truncate(entry.name, _MAX_NAME)
    if entry.user is not None:
        entry.user = bounded_user(entry.user)
    if entry.acting is not None:
        entry.acting = bounded_user(entry.acting)
    if entry.target is not None:
        entry.target = _bounded_target(entry.target)
    entry.annotations = {key: truncate(text, _MAX_TEXT) for key, text in entry.annotations.items()}
    return entry


def truncate(text: str, limit: int) -> str:
    """Truncate a text to at most this many bytes as JSON."""
    if text.isascii() and _escaped(text, limit) <= limit:
        return text
    # Invalid UTF-8 cannot be written.
    text = text[: limit + 1].encode("utf-8", "replace").decode()
    if _length(text) <= limit:
        return text
    size = 0
    for index, char in enumerate(text):
        size += _length(char)
        if size > limit:
            return text[:index] + TRUNCATED
    return text


def _escaped(text: str, limit: int) -> int:
    """Return at least as many bytes as an ASCII text takes as JSON."""
    longest = len(text) * _MAX_ESCAPED
    if longest <= limit or not text.isprintable():
        return longest
    return len(text) + text.count('"') + text.count("\\")


def bounded_user(user: User) -> User:
    """Truncate the names of a user, its groups and its extra values."""
    texts = [user.name, user.uid, *user.groups]
    for key, values in user.extra.items():
        texts += (key, *values)
    if (len("".join(texts)) + len(texts)) * _MAX_ESCAPED <= 2 * _MAX_LIST:
        return user
    return User(
        truncate(user.name, _MAX_NAME),
        # Important groups must not be hidden behind many others.
        tuple(_fitting(sorted(user.groups, key=_group_order))),
        truncate(user.uid, _MAX_NAME),
        _bounded_extra(user.extra),
    )


def _group_order(group: str) -> tuple[bool, bool]:
    return group != MASTERS, not group.startswith("system:")


def _fitting(texts: Iterable[str], limit: int = _MAX_LIST) -> Iterable[str]:
    """Yield as many texts as fit, each truncated."""
    for text in texts:
        truncated = truncate(text, _MAX_NAME)
        limit -= _length(truncated) + len('"",')
        if limit < 0:
            yield TRUNCATED
            return
        yield truncated


def _bounded_extra(extra: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    bounded_extra: dict[str, tuple[str, ...]] = {}
    left = _MAX_LIST
    for key, values in extra.items():
        name = truncate(key, _MAX_NAME)
        left -= _length(name) + len('"":[],')
        if left < 0:
            bounded_extra[TRUNCATED] = ()
            break
        bounded_extra[name] = tuple(_fitting(values, left))
        left -= sum(_length(value) + len('"",') for value in bounded_extra[name])
    return bounded_extra


def _bounded_target(target: Target) -> Target:
    namespace, name = truncate(target.namespace, _MAX_NAME), truncate(target.name, _MAX_NAME)
    if namespace == target.namespace and name == target.name:
        return target
    return msgspec.structs.replace(target, namespace=namespace, name=name)


def _length(text: str) -> int:
    return len(to_json(text)) - len('""')


def line(entry: AuditEvent) -> bytes:
    """Write an entry as one line."""
    event: Obj = {"auditID": entry.id, "stage": entry.stage}
    if entry.uri:
        event["requestURI"] = entry.uri
    event["verb"] = entry.verb
    event["user"] = {} if entry.user is None else _user(entry.user)
    if entry.acting is not None:
        event["impersonatedUser"] = _user(entry.acting)
    if entry.source:
        event["sourceIPs"] = [entry.source]
    if entry.agent:
        event["userAgent"] = entry.agent
    if entry.target is not None:
        event["objectRef"] = _reference(entry.target, entry.name)
    event["responseStatus"] = _status(entry.code, entry.reason)
    event["requestReceivedTimestamp"] = format_micro_time(entry.received)
    event["stageTimestamp"] = format_micro_time(entry.ended)
    if entry.annotations:
        event["annotations"] = entry.annotations
    return _BEGINNING + to_json(event)[1:] + b"\n"


def _user(user: User) -> Any:
    return user_info(user) if user.extra else _encoded_user(user.name, user.groups, user.uid)


# A few users write nearly all entries.
@lru_cache(maxsize=256)
def _encoded_user(name: str, groups: tuple[str, ...], uid: str) -> msgspec.Raw:
    return msgspec.Raw(to_json(user_info(User(name, groups, uid))))


def _reference(target: Target, name: str) -> Obj:
    reference = {"resource": target.resource.plural}
    if target.namespace:
        reference["namespace"] = target.namespace
    if target.name or name:
        reference["name"] = target.name or name
    if target.resource.group:
        reference["apiGroup"] = target.resource.group
    reference["apiVersion"] = target.version
    if target.subresource:
        reference["subresource"] = target.subresource
    return reference


def _status(code: int, reason: str) -> Obj:
    status: Obj = {"metadata": {}}
    if code >= 400:
        status["status"] = "Failure"
        if reason:
            status["reason"] = reason
    status["code"] = code
    return status
