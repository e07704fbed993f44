"""The environment of admission policies, and a write as their input.

Expressions see the object before and after as maps of unknown shape, the request, the namespace,
and, where a policy has them, parameters, an authorizer and variables: named expressions, which are
evaluated when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from sully.machinery.cel import temporal, types
from sully.machinery.cel.authorizer import (
    AUTHORIZER,
    RESOURCE_CHECK,
    AuthorizerValue,
    authorizations,
)
from sully.machinery.cel.declarations import Library, merge
from sully.machinery.cel.environment import Environment, Program
from sully.machinery.cel.errors import CompileError, EvaluationError
from sully.machinery.cel.library.catalogue import kubernetes_library
from sully.machinery.cel.types import Type

REQUEST_AUTHORIZER: Final = "authorizer.requestResource"
_VARIABLES: Final = types.object_type("kubernetes.variables")
_TEXTS: Final = types.list_of(types.STRING)
_LABELS: Final = types.map_of(types.STRING, types.STRING)


def _declare(name: str, /, **fields: Type) -> Type:
    declared = types.object_type(f"kubernetes.{name}")
    _OBJECTS[declared.name] = fields
    return declared


_OBJECTS: Final[dict[str, Mapping[str, Type]]] = {}
_KIND: Final = _declare(
    "GroupVersionKind", group=types.STRING, version=types.STRING, kind=types.STRING
)
_RESOURCE: Final = _declare(
    "GroupVersionResource", group=types.STRING, version=types.STRING, resource=types.STRING
)
_USER: Final = _declare(
    "UserInfo",
    username=types.STRING,
    uid=types.STRING,
    groups=_TEXTS,
    extra=types.map_of(types.STRING, _TEXTS),
)
_REQUEST: Final = _declare(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=types.STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=types.STRING,
    name=types.STRING,
    namespace=types.STRING,
    operation=types.STRING,
    userInfo=_USER,
    dryRun=types.BOOL,
    options=types.DYN,
)
_NAMESPACE: Final = _declare(
    "Namespace",
    metadata=_declare(
        "NamespaceMetadata",
        name=types.STRING,
        generateName=types.STRING,
        namespace=types.STRING,
        labels=_LABELS,
        annotations=_LABELS,
        UID=types.STRING,
        creationTimestamp=types.TIMESTAMP,
        deletionGracePeriodSeconds=types.INT,
        deletionTimestamp=types.TIMESTAMP,
        generation=types.INT,
        resourceVersion=types.STRING,
        finalizers=_TEXTS,
    ),
    spec=_declare("NamespaceSpec", finalizers=_TEXTS),
    status=_declare(
        "NamespaceStatus",
        phase=types.STRING,
        conditions=types.list_of(
            _declare(
                "NamespaceCondition",
                status=types.STRING,
                type=types.STRING,
                lastTransitionTime=types.TIMESTAMP,
                message=types.STRING,
                reason=types.STRING,
            )
        ),
    ),
)


@lru_cache(maxsize=1)
def _library() -> Library:
    return merge((kubernetes_library(), authorizations()))


class Expressions(msgspec.Struct, frozen=True):
    """Compiles the expressions of one policy, one after the other: variables build on variables."""

    has_params: bool
    variables: dict[str, Type] = msgspec.field(default_factory=dict)

    def compile(
        self, expression: str, *results: Type, authorizer: bool = True, composed: bool = True
    ) -> Program:
        """Return a program with one of these result types; raise CompileError."""
        known: dict[str, Type] = {"object": types.DYN, "oldObject": types.DYN}
        known |= {"request": _REQUEST, "namespaceObject": _NAMESPACE}
        if self.has_params:
            known["params"] = types.DYN
        if authorizer:
            known |= {"authorizer": AUTHORIZER, REQUEST_AUTHORIZER: RESOURCE_CHECK}
        objects = dict(_OBJECTS)
        if composed and self.variables:
            known["variables"] = _VARIABLES
            objects[_VARIABLES.name] = dict(self.variables)
        program = Environment(library=_library(), variables=known, objects=objects).compile(
            expression
        )
        known_null = types.NULL_TYPE if program.type == types.NULL else program.type
        if results and known_null not in results:
            raise CompileError(_wrong_type(program.type, results), syntax=False)
        return program

    def compile_variable(self, name: str, expression: str) -> Program:
        """Return the program of a variable, which the following expressions can use."""
        try:
            program = self.compile(expression)
        except CompileError:
            # Its users are checked as if it were there, and fail when they are evaluated.
            self.variables[name] = types.DYN
            raise
        self.variables[name] = program.type
        return program


def _wrong_type(got: Type, results: tuple[Type, ...]) -> str:
    if len(results) == 1:
        return f"must evaluate to {results[0]} but got {got}"
    return f"must evaluate to one of [{' '.join(map(str, results))}] but got {got}"


def namespace_input(namespace: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a namespace as expressions see it: with times, and some of its metadata."""
    if namespace is None:
        return None
    shown = _OBJECTS["kubernetes.NamespaceMetadata"]
    metadata = {
        name: temporal.parse_timestamp(value) if shown[name] == types.TIMESTAMP else value
        for name, value in namespace["metadata"].items()
        if name in shown
    }
    metadata["UID"] = namespace["metadata"].get("uid", "")
    status = dict(namespace.get("status") or {})
    if "conditions" in status:
        status["conditions"] = [
            {**one, "lastTransitionTime": temporal.parse_timestamp(one["lastTransitionTime"])}
            for one in status["conditions"]
            if one.get("lastTransitionTime")
        ]
    return {"metadata": metadata, "spec": namespace.get("spec") or {}, "status": status}


class PolicyInput(msgspec.Struct, frozen=True, kw_only=True):
    """A write as the expressions of one policy see it."""

    obj: Mapping[str, Any] | None
    old: Mapping[str, Any] | None
    request: Mapping[str, Any]
    namespace: Mapping[str, Any] | None = None
    params: Mapping[str, Any] | None = None
    authorizer: AuthorizerValue | None = None

    def activation(self) -> dict[str, Any]:
        """Return the variables of expressions."""
        known: dict[str, Any] = {
            "object": self.obj,
            "oldObject": self.old,
            "request": self.request,
            "namespaceObject": self.namespace,
            "params": self.params,
        }
        if self.authorizer is not None:
            known["authorizer"] = self.authorizer
            resource = self.request["requestResource"]
            check = self.authorizer.group(resource["group"]).resource(resource["resource"])
            check = check.subresource(self.request["requestSubResource"])
            check = check.namespace(self.request["namespace"]).name(self.request["name"])
            known[REQUEST_AUTHORIZER] = check
        return known


class Variables(dict[str, Any]):
    """The variables of a policy, each evaluated when it is first used; `spent` is their cost."""

    __slots__ = ("_activation", "_limit", "_programs", "spent")

    def __init__(
        self,
        programs: Mapping[str, Program | CompileError],
        activation: dict[str, Any],
        limit: int,
    ) -> None:
        super().__init__()
        self._programs = programs
        self._activation = activation
        self._limit = limit
        self.spent = 0

    def __missing__(self, name: str) -> Any:
        program = self._programs[name]
        if isinstance(program, CompileError):
            text = f'composited variable "{name}" fails to compile: {program.detail}'
            raise EvaluationError(text)
        try:
            value, cost = program.evaluate_counted(self._activation, self._limit)
        except EvaluationError as error:
            text = f'composited variable "{name}" fails to evaluate: {error}'
            raise EvaluationError(text) from None
        self.spent += cost
        self[name] = value
        return value
