"""Resources that are created and never stored: reviews of access, tokens and identity.

A client creates one and gets it back with a status. `VirtualResources.add` registers what fills the
status; the kinds are marked `virtual` in their ResourceType.
"""

from collections.abc import Callable

from sully.machinery.errors import ApiError, method_not_allowed
from sully.machinery.patch.ownership import managed
from sully.machinery.strategy import Obj
from sully.server.registry import metadata as meta
from sully.server.registry.bodies.body import Body
from sully.server.registry.bodies.decoding import decode_body
from sully.server.registry.writes import ObjectWriter, Result
from sully.server.requests import Request

Answer = Callable[[Request, Obj], Obj]
"""Takes the request and the decoded object; returns it with its status."""


class VirtualResources:
    """The handlers of virtual resources, by resource."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self._answers: dict[tuple[str, str], Answer] = {}

    def add(self, group: str, plural: str, answer: Answer) -> None:
        """Register the handler of a resource."""
        self._answers[group, plural] = answer

    def create(self, request: Request, body: Body) -> Result:
        """Handle one review."""
        resource = request.target.resource
        answer = self._answers.get((resource.group, resource.plural))
        if answer is None:
            raise method_not_allowed()
        decoded = decode_body(self._writer.objects, request, body)
        obj, ctx = decoded.obj, self._writer.context(request)
        try:
            meta.clear_system_fields(obj)
            meta.settle_namespace(request.target, obj)
            resource.strategy.default(obj, ctx)
            write = self._writer.managed_write(request, resource.strategy, ctx)
            entries = managed.track_update(None, obj, write)
            if entries:
                obj["metadata"]["managedFields"] = entries
            return Result(answer(request, obj), created=True, warnings=decoded.warnings)
        except ApiError as error:
            error.warnings[:0] = decoded.warnings
            raise
