"""One audited request as an event of audit.k8s.io/v1, at the level Metadata.

Events have names and decisions, never bodies or messages: those may quote a Secret. What a client
chooses (user agent, path, requested and impersonated names) is truncated, so that an event has a
few KiB at most. log.py writes them.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain

import msgspec

from sully.machinery.codec import to_json
from sully.machinery.strategy import Obj
from sully.machinery.timestamps import format_micro_time
from sully.server.authentication.groups import ANONYMOUS, MASTERS
from sully.server.authentication.reviews import user_info
from sully.server.requests import Target, User

DECISION = "authorization.k8s.io/decision"
REASON = "authorization.k8s.io/reason"
TRUNCATED = "...TRUNCATED"
"""Ends a truncated text, as in Kubernetes."""

_MOST_TEXT = 1024  # of a user agent, a path or a reason
_MOST_NAME = 256  # of an object, a user, a group: longer ones are not valid
_MOST_LIST = 1024  # of all groups together, and of all extra values
_MOST_ESCAPED = 6  # bytes that JSON takes for a character: \u0000


class Entry(msgspec.Struct):
    """One request, as it ended."""

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


def bounded(entry: Entry) -> Entry:
    """Truncate what the client chose, in place: entries are queued in memory."""
    entry.uri = cut(entry.uri, _MOST_TEXT)
    entry.verb = cut(entry.verb, _MOST_NAME)
    entry.agent = cut(entry.agent, _MOST_TEXT)
    entry.name = cut(entry.name, _MOST_NAME)
    if entry.user is not None:
        entry.user = bounded_user(entry.user)
    if entry.acting is not None:
        entry.acting = bounded_user(entry.acting)
    if entry.target is not None:
        entry.target = _bounded_target(entry.target)
    entry.annotations = {key: cut(text, _MOST_TEXT) for key, text in entry.annotations.items()}
    return entry


def cut(text: str, most: int) -> str:
    """Return the beginning of a text that takes at most this many bytes as JSON."""
    if len(text) * _MOST_ESCAPED <= most and text.isascii():
        return text
    # Invalid UTF-8 cannot be written.
    text = text[: most + 1].encode("utf-8", "replace").decode()
    taken = 0
    for at, char in enumerate(text):
        taken += _length(char)
        if taken > most:
            return text[:at] + TRUNCATED
    return text


def bounded_user(user: User) -> User:
    """Truncate the names of a user, its groups and its extra values."""
    extra = chain.from_iterable((key, *values) for key, values in user.extra.items())
    length = sum(len(text) + 1 for text in chain((user.name, user.uid), user.groups, extra))
    if length * _MOST_ESCAPED <= 2 * _MOST_LIST:
        return user
    return User(
        cut(user.name, _MOST_NAME),
        # Important groups must not be hidden behind many others.
        tuple(_first(sorted(user.groups, key=_unimportance))),
        cut(user.uid, _MOST_NAME),
        _bounded_extra(user.extra),
    )


def _unimportance(group: str) -> tuple[bool, bool]:
    return group != MASTERS, not group.startswith("system:")


def _first(texts: Iterable[str], most: int = _MOST_LIST) -> Iterable[str]:
    """Yield as many texts as fit, each truncated."""
    for text in texts:
        shown = cut(text, _MOST_NAME)
        most -= _length(shown) + len('"",')
        if most < 0:
            yield TRUNCATED
            return
        yield shown


def _bounded_extra(extra: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    bounded_extra: dict[str, tuple[str, ...]] = {}
    left = _MOST_LIST
    for key, values in extra.items():
        name = cut(key, _MOST_NAME)
        left -= _length(name) + len('"":[],')
        if left < 0:
            bounded_extra[TRUNCATED] = ()
            break
        bounded_extra[name] = tuple(_first(values, left))
        left -= sum(_length(value) + len('"",') for value in bounded_extra[name])
    return bounded_extra


def _bounded_target(target: Target) -> Target:
    namespace, name = cut(target.namespace, _MOST_NAME), cut(target.name, _MOST_NAME)
    if namespace == target.namespace and name == target.name:
        return target
    return msgspec.structs.replace(target, namespace=namespace, name=name)


def _length(text: str) -> int:
    return len(to_json(text)) - len('""')


def line(entry: Entry) -> bytes:
    """Write an entry as one line."""
    event: Obj = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": entry.id,
        "stage": entry.stage,
        # A caller in this process has no address.
        **({"requestURI": entry.uri} if entry.uri else {}),
        "verb": entry.verb,
        "user": {} if entry.user is None else user_info(entry.user),
    }
    if entry.acting is not None:
        event["impersonatedUser"] = user_info(entry.acting)
    if entry.source:
        event["sourceIPs"] = [entry.source]
    if entry.agent:
        event["userAgent"] = entry.agent
    if entry.target is not None:
        event["objectRef"] = _reference(entry.target, entry.name)
    event["responseStatus"] = _status(entry)
    event["requestReceivedTimestamp"] = format_micro_time(entry.received)
    event["stageTimestamp"] = format_micro_time(entry.ended)
    if entry.annotations:
        event["annotations"] = dict(entry.annotations)
    return to_json(event) + b"\n"


def _reference(target: Target, name: str) -> Obj:
    event = {
        "resource": target.resource.plural,
        "namespace": target.namespace,
        "name": target.name or name,
        "apiGroup": target.resource.group,
        "apiVersion": target.version,
        "subresource": target.subresource,
    }
    return {key: value for key, value in event.items() if value}


def _status(entry: Entry) -> Obj:
    status: Obj = {"metadata": {}}
    if entry.code >= 400:
        status["status"] = "Failure"
        if entry.reason:
            status["reason"] = entry.reason
    return status | {"code": entry.code}
