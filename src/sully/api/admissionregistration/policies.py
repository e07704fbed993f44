"""ValidatingAdmissionPolicies: defaults, validation of their expressions, columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from sully.api.admissionregistration.match_resources import (
    default_match_resources,
    validate_match_resources,
)
from sully.api.admissionregistration.types import ADMISSION, FAIL, GROUP, IGNORE
from sully.api.core import generations
from sully.api.core.checks import one_of
from sully.api.core.columns import AGE, NAME, plain
from sully.api.resource.validation.conditions import validate_conditions
from sully.machinery.cel import CompileError
from sully.machinery.cel.admission import Expressions
from sully.machinery.cel.environment import Program
from sully.machinery.cel.types import BOOL, NULL_TYPE, STRING
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import (
    dns_subdomain_problems,
    label_key_problems,
    rfc1035_label_problems,
)
from sully.machinery.meta import Condition
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]
Errors = Iterator[FieldError]
SPEC = Path("spec")
CONDITIONS_MAX = 64
ANNOTATIONS_MAX = 20
VALUE_MAX = 5 * 1024
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ONE_OF_BOTH = "validations or auditAnnotations must contain at least one item"
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)


class PolicyStrategy(Strategy, frozen=True):
    """Writes to the policy itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fail by default, and match everything."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", FAIL)
        default_match_resources(spec.get("matchConstraints"))

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj["status"] = {}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; count the change."""
        obj["status"] = old.get("status", {})
        generations.follow(obj, old, bump=generations.spec_changed(obj, old))

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check which writes are matched, and that all expressions compile."""
        spec = obj["spec"]
        yield from one_of(spec["failurePolicy"], (FAIL, IGNORE), SPEC.child("failurePolicy"))
        if "paramKind" in spec:
            yield from _param_kind(spec["paramKind"], SPEC.child("paramKind"))
        match = spec.get("matchConstraints")
        if match is None:
            yield SPEC.child("matchConstraints").required()
        else:
            yield from validate_match_resources(match, SPEC.child("matchConstraints"))
            if not match.get("resourceRules"):
                yield SPEC.child("matchConstraints", "resourceRules").required()
        yield from _expressions(obj)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check the new state like a new policy."""
        return self.validate_create(obj, ctx)


class PolicyStatusStrategy(PolicyStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        generations.keep_spec(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check the conditions and the warnings of expressions."""
        at, status = Path("status"), obj.get("status") or {}
        checking = at.child("typeChecking", "expressionWarnings")
        warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
        for position, warning in enumerate(warnings):
            for name in ("warning", "fieldRef"):
                if not warning.get(name):
                    yield checking.index(position).child(name).required()
        conditions = msgspec.convert(status.get("conditions") or [], list[Condition])
        yield from validate_conditions(conditions, at.child("conditions"))


def _param_kind(kind: Obj, at: Path) -> Errors:
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not version:
        yield at.child("apiVersion").required()
    elif version.count("/") > 1:
        yield at.child("apiVersion").invalid(version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, bare = version.rpartition("/")
        if group and (problems := dns_subdomain_problems(group)):
            yield at.child("apiVersion").invalid(group, ",".join(problems))
        if not bare:
            yield at.child("apiVersion").invalid(version, "version must be specified")
        elif problems := rfc1035_label_problems(bare):
            yield at.child("apiVersion").invalid(bare, ",".join(problems))
    if not name:
        yield at.child("kind").required()
    elif problems := rfc1035_label_problems(name.lower()):
        text = "may have mixed case, but should otherwise match: "
        yield at.child("kind").invalid(name, text + ",".join(problems))


def _expressions(obj: Obj) -> Errors:
    spec = obj["spec"]
    compiler = Expressions("paramKind" in spec)
    yield from _conditions(spec.get("matchConditions", ()), compiler)
    for index, variable in enumerate(spec.get("variables", ())):
        yield from _variable(variable, SPEC.child("variables").index(index), compiler)
    validations, annotations = spec.get("validations", ()), spec.get("auditAnnotations", ())
    if not validations and not annotations:
        yield SPEC.child("validations").required(_ONE_OF_BOTH)
        yield SPEC.child("auditAnnotations").required(_ONE_OF_BOTH)
    for index, validation in enumerate(validations):
        yield from _validation(validation, SPEC.child("validations").index(index), compiler)
    yield from _annotations(obj["metadata"].get("name", ""), annotations, compiler)


def _conditions(conditions: list[Obj], compiler: Expressions) -> Errors:
    at, seen = SPEC.child("matchConditions"), set()
    if len(conditions) > CONDITIONS_MAX:
        yield at.too_many(len(conditions), CONDITIONS_MAX)
    for index, condition in enumerate(conditions):
        place, name = at.index(index), condition.get("name", "")
        expression = condition.get("expression", "").strip()
        if not expression:
            yield place.child("expression").required()
        else:
            yield from _compiled(
                expression,
                place.child("expression"),
                lambda source: compiler.compile(source, BOOL, composed=False),
            )
        if not name:
            yield place.child("name").required()
        yield from (
            place.child("name").invalid(name, text) for text in label_key_problems(name) if name
        )
        if name and name in seen:
            yield place.child("name").duplicate(name)
        seen.add(name)


def _variable(variable: Obj, at: Path, compiler: Expressions) -> Errors:
    name, expression = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        yield at.child("name").required("name is not specified")
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        yield at.child("name").invalid(name, "must be a valid CEL identifier")
    if not expression.strip():
        yield at.child("expression").required("expression is not specified")
    else:
        yield from _compiled(
            expression,
            at.child("expression"),
            lambda text: compiler.compile_variable(name, text),
        )


def _validation(validation: Obj, at: Path, compiler: Expressions) -> Errors:
    expression, message = validation.get("expression", ""), validation.get("message", "")
    text = validation.get("messageExpression", "")
    if not expression.strip():
        yield at.child("expression").required("expression is not specified")
    else:
        yield from _compiled(
            expression, at.child("expression"), lambda source: compiler.compile(source, BOOL)
        )
    if text and not text.strip():
        yield at.child("messageExpression").invalid(text, "must be non-empty if specified")
    elif text:
        yield from _compiled(
            text,
            at.child("messageExpression"),
            lambda source: compiler.compile(source, STRING, authorizer=False),
        )
    if message and not message.strip():
        yield at.child("message").invalid(message, "must be non-empty if specified")
    elif re.search(r"[\n\r]", message.strip()):
        yield at.child("message").invalid(message, "must not contain line breaks")
    if "reason" in validation:
        yield from one_of(validation["reason"], REASONS, at.child("reason"))


def _annotations(policy: str, annotations: list[Obj], compiler: Expressions) -> Errors:
    at, seen = SPEC.child("auditAnnotations"), set()
    if len(annotations) > ANNOTATIONS_MAX:
        text = f"must not have more than {ANNOTATIONS_MAX} auditAnnotations"
        yield at.invalid(annotations, text)
    for index, annotation in enumerate(annotations):
        place, key = at.index(index), annotation.get("key", "")
        value = annotation.get("valueExpression", "").strip()
        if not policy:
            yield place.child("key").invalid(key, "requires metadata.name be non-empty")
        else:
            full = f"{policy}/{key}"
            yield from (place.child("key").invalid(full, text) for text in label_key_problems(full))
        if not value:
            yield place.child("valueExpression").required("valueExpression is not specified")
        elif len(value.encode()) > VALUE_MAX:
            text = f"must not exceed {VALUE_MAX} bytes in length"
            yield place.child("valueExpression").required(text)
        else:
            yield from _compiled(
                value,
                place.child("valueExpression"),
                lambda source: compiler.compile(source, STRING, NULL_TYPE),
            )
        if key in seen:
            yield place.child("key").duplicate(key)
        seen.add(key)


def _compiled(expression: str, at: Path, compile_: Callable[[str], Program]) -> Errors:
    try:
        compile_(expression)
    except CompileError as error:
        yield at.invalid(expression, error.detail)


def _shown_kind(obj: Obj) -> str:
    kind = obj["spec"].get("paramKind")
    return "<unset>" if kind is None else f"{kind.get('apiVersion')}/{kind.get('kind')}"


POLICIES = ResourceType(
    group=GROUP,
    kind="ValidatingAdmissionPolicy",
    plural="validatingadmissionpolicies",
    singular="validatingadmissionpolicy",
    namespaced=False,
    versions=(Version("v1", ADMISSION, unconditional_update=False),),
    strategy=PolicyStrategy(reset=(("status",),)),
    status=PolicyStatusStrategy(reset=(("spec",),)),
    categories=("api-extensions",),
    columns=(
        NAME,
        Column(
            "Validations",
            plain(lambda obj: len(obj["spec"].get("validations", ()))),
            type="integer",
            description="Number of validation expressions.",
        ),
        Column("ParamKind", plain(_shown_kind), description="Kind of the parameters."),
        AGE,
    ),
)
