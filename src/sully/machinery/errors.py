"""The answers that are not a success, and their HTTP codes.

ApiError
├── BadRequest            400
├── Unauthorized          401
├── Forbidden             403
├── NotFound              404
├── MethodNotAllowed      405
├── NotAcceptable         406
├── Conflict              409
│   └── AlreadyExists     409
├── Gone                  410
│   └── Expired           410
├── RequestEntityTooLarge 413
├── UnsupportedMediaType  415
├── Invalid               422
├── TooManyRequests       429
├── InternalError         500
├── ServiceUnavailable    503
└── Timeout               504

Class names are the wire reasons. An ApiError is an answer; anything else that is raised is a bug.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from sully.machinery.compat import Compat
from sully.machinery.fields import FieldError
from sully.machinery.serialization.gotext import quote


class ApiError(Exception):
    """An answer with a Status body."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details is not None else None
        self.headers = dict(headers or {})
        # A few errors have metadata, such as a continue token.
        self.list_metadata: dict[str, Any] = {}
        self.warnings: list[str] = []
        # The unknown and duplicate fields because of which an object was refused.
        self.strict_errors: Sequence[str] = ()

    def to_status(self) -> dict[str, Any]:
        """Return the Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


class BadRequest(ApiError):  # noqa: N818 - the class is named as the wire names the reason
    """The request cannot be understood."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):  # noqa: N818 - wire reason
    """The request is not authenticated."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):  # noqa: N818 - wire reason
    """The user may not do this."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):  # noqa: N818 - wire reason
    """The object or path does not exist."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):  # noqa: N818 - wire reason
    """The thing exists, the verb does not."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):  # noqa: N818 - wire reason
    """No form of the answer is one the client accepts."""

    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):  # noqa: N818 - wire reason
    """The write is based on a state that has passed."""

    code, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    """An object with this name exists."""

    reason = "AlreadyExists"


class Gone(ApiError):  # noqa: N818 - wire reason
    """The resource existed and is permanently gone."""

    code, reason = 410, "Gone"


class Expired(Gone):
    """The requested resource version was compacted."""

    reason = "Expired"


class RequestEntityTooLarge(ApiError):  # noqa: N818 - wire reason
    """The body exceeds a limit of the server."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):  # noqa: N818 - wire reason
    """The body's content type is not one the server reads."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):  # noqa: N818 - wire reason
    """The object is well-formed and wrong."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):  # noqa: N818 - wire reason
    """The client must retry later."""

    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    """A failure of the server itself."""

    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):  # noqa: N818 - wire reason
    """Not now."""

    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):  # noqa: N818 - wire reason
    """It took too long."""

    code, reason = 504, "Timeout"


STRICT_DECODING = "strict decoding error: "
"""Precedes the unknown and duplicate fields of an object in a message."""


def qualified(resource: str, group: str) -> str:
    """Name a resource or kind with its group: `devicetaintrules.resource.k8s.io`, `pods`."""
    return f"{resource}.{group}" if group else resource


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def not_found(resource: str, group: str, name: str) -> NotFound:
    """Return the error for an object that does not exist."""
    message = f"{qualified(resource, group)} {quote(name)} not found"
    return NotFound(message, details=_details(name, group, resource))


def already_exists(resource: str, group: str, name: str) -> AlreadyExists:
    """Return the error for a name that is in use."""
    message = f"{qualified(resource, group)} {quote(name)} already exists"
    return AlreadyExists(message, details=_details(name, group, resource))


def conflict(resource: str, group: str, name: str, why: str) -> Conflict:
    """Return the error for a write that conflicts with the current state."""
    message = f"Operation cannot be fulfilled on {qualified(resource, group)} {quote(name)}: {why}"
    return Conflict(message, details=_details(name, group, resource))


def forbidden(resource: str, group: str, name: str, why: str) -> Forbidden:
    """Return the error for a write that is not allowed."""
    subject = f"{qualified(resource, group)} {quote(name)}" if name else qualified(resource, group)
    return Forbidden(f"{subject} is forbidden: {why}", details=_details(name, group, resource))


def pod_not_admitted(pod: dict[str, Any], why: str) -> Forbidden:
    """Return the error for a pod that admission refuses, which may have no name yet."""
    metadata = pod["metadata"]
    name = metadata.get("name") or metadata.get("generateName") or "Unknown"
    return forbidden("pods", "", name, why)


def invalid(kind: str, group: str, name: str, problems: Sequence[FieldError]) -> Invalid:
    """Return one error for field errors; the message has each text once."""
    causes = [{"reason": p.reason, "message": p.body, "field": p.field} for p in problems]
    details = _details(name, group, kind) | ({"causes": causes} if causes else {})
    message = f"{qualified(kind, group)} {quote(name)} is invalid: {aggregate(problems)}"
    return Invalid(message, details=details)


def aggregate(problems: Iterable[FieldError]) -> str:
    """Join problems as clients see them: one bare, several in brackets."""
    return joined(map(str, problems)) or "<nil>"


def joined(problems: Iterable[str]) -> str:
    """Join texts as Kubernetes does: each once, one bare, several in brackets."""
    texts = list(dict.fromkeys(problems))
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)


def route_not_found() -> NotFound:
    """Answer for a path under a served group that leads to no resource."""
    return NotFound("the server could not find the requested resource", details={})


def method_not_allowed() -> MethodNotAllowed:
    """Answer for a verb that a resource does not have."""
    return MethodNotAllowed(
        "the server does not allow this method on the requested resource", details={}
    )


def client_error(message: str, compat: Compat) -> ApiError:
    """Return the error for a bad request to which Kubernetes responds with 500 and no reason."""
    return BadRequest(message) if compat.client_errors_are_400 else ApiError(message)
