"""Responses of subresources with verbs of their own; see subresources.py and scale.py."""

import msgspec

from sully.machinery.strategy import Column, Obj
from sully.server.requests import Request, Target


class ConnectReply(msgspec.Struct):
    """The response of a subresource; `columns` are those of its table, if it has one."""

    obj: Obj
    code: int = 200
    warnings: list[str] = msgspec.field(default_factory=list)
    columns: tuple[Column, ...] = ()


def parent_request(request: Request) -> Request:
    """Return the same request for the object itself."""
    target = request.target
    plain = Target(target.resource, target.version, target.namespace, target.name)
    return Request(request.user, plain, request.options, request.user_agent)
