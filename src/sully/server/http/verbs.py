"""What a request on objects is by its method and headers: its verb, and the type of its body."""

import re

from sully.machinery.errors import method_not_allowed, route_not_found
from sully.server.http.http_request import HttpRequest
from sully.server.requests import Target

PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_PARAMETERS = re.compile(r'(?:\s*[^\s;="]+=(?:[^\s;"]+|"[^"]*")\s*(?:;|$))*\s*')
_PARAMETER = re.compile(r'([^\s;="]+)=')
_ONLY_CREATED = ("create",)
_POSTED = ("binding", "eviction", "token")
"""Subresources that are only created."""
_METHODS_OF_REFUSED = {
    "attach": ("GET", "POST"),
    "exec": ("GET", "POST"),
    "log": ("GET",),
    "portforward": ("GET", "POST"),
}


def wants_watch(http_request: HttpRequest, target: Target) -> bool:
    """Report whether a GET is a watch."""
    if target.watch:
        return True
    value = http_request.query.get("watch")
    return value is not None and value.lower() not in ("false", "0") and not target.name


def verb_of(http_request: HttpRequest, target: Target) -> str:
    """Return the verb of a request as authorization and metrics name it."""
    if http_request.method in _WRITES:
        return _WRITES[http_request.method]
    if http_request.method == "DELETE":
        return "delete" if target.name else "deletecollection"
    if wants_watch(http_request, target):
        return "watch"
    return "get" if target.name else "list"


def check_method(http_request: HttpRequest, target: Target) -> None:
    """Refuse a method that is not allowed on an object or a collection."""
    method = http_request.method
    if target.name and target.resource.verbs == _ONLY_CREATED:
        raise route_not_found()
    if target.subresource in target.resource.refused:
        if method not in _METHODS_OF_REFUSED.get(target.subresource, (method,)):
            raise method_not_allowed()
        return
    if target.subresource in _POSTED:
        allowed: tuple[str, ...] = ("POST",)
    elif target.name:
        allowed = ("GET", "PUT", "PATCH", "DELETE")
    else:
        allowed = ("GET", "POST", "DELETE")
    connects = target.subresource in target.resource.connect and target.subresource != "finalize"
    if method not in allowed and not (connects and method == "POST"):
        raise method_not_allowed()
    if method == "POST" and target.resource.namespaced and not target.namespace:
        raise method_not_allowed()
    if target.watch and method != "GET":
        raise method_not_allowed()


def patch_type(http_request: HttpRequest) -> str:
    """Return the media type of a patch, whatever its parameters."""
    return http_request.header("content-type").partition(";")[0].strip().lower()


def content_type(http_request: HttpRequest) -> str:
    """Return the media type of a body, without parameters; all of it if they are invalid."""
    header = http_request.header("content-type")
    media, has_parameters, parameters = header.partition(";")
    if not has_parameters:
        return media.strip().lower()
    named = _PARAMETER.findall(parameters)
    valid = _PARAMETERS.fullmatch(parameters) and len(named) == len(set(named))
    return media.strip().lower() if valid and media.strip() else header
