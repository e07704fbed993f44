"""Whether the rules of a schema compile, and what they can cost.

The limits and texts are those of Kubernetes: what one rule can cost at most, times how often it is
evaluated on one object, and the sum of all rules.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sully.machinery.cel.errors import CompileError
from sully.machinery.customresources.expressions import declare, largest_count
from sully.machinery.customresources.pruning import EMBEDDED
from sully.machinery.customresources.rules import Rule, compile_rule
from sully.machinery.fields import FieldError, Path

Schema = Mapping[str, Any]
Errors = Iterator[FieldError]

RULE_LIMIT: Final = 10_000_000
SCHEMA_LIMIT: Final = 100_000_000
_REASONS: Final = (
    *("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"),
)
_MOST: Final = 2**64 - 1
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays,"
    " maps, and strings are declared)"
)
_MOST_SHOWN: Final = 4


class _Total(msgspec.Struct):
    """What all rules of a schema can cost, and which cost most."""

    cost: int = 0
    rules: list[tuple[int, Path]] = msgspec.field(default_factory=list)

    def add(self, cost: int, at: Path) -> None:
        self.cost = min(self.cost + cost, _MOST)
        self.rules.append((cost, at))


class _Place(msgspec.Struct, frozen=True):
    """Where a schema is: how often it is in an object, and what keeps it from having an old value.

    count: None without a bound.
    """

    total: _Total
    count: int | None = 1
    uncorrelated: Path | None = None


def rules_problems(schema: Schema, at: Path) -> Errors:
    """Yield everything for which the rules of a structural schema are refused."""
    total = _Total()
    yield from _problems(schema, at, _Place(total), is_root=True)
    if total.cost > SCHEMA_LIMIT:
        for _, place in sorted(total.rules, key=lambda rule: -rule[0])[:_MOST_SHOWN]:
            text = (
                "contributed to estimated rule cost total exceeding cost limit for entire"
                " OpenAPIv3 schema"
            )
            yield place.forbidden(text)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield at.forbidden(_too_expensive(what, total.cost, SCHEMA_LIMIT))


def _problems(schema: Schema, at: Path, place: _Place, *, is_root: bool = False) -> Errors:
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        inside = replace(place, count=_times(place.count, schema.get("maxProperties")))
        yield from _problems(values, at.child("additionalProperties"), inside)
    for name in sorted(schema.get("properties") or {}):
        inner = schema["properties"][name]
        here = at.child("properties").key(name)
        yield from _problems(inner, here, place, is_root=bool(inner.get(EMBEDDED)))
    if isinstance(items := schema.get("items"), Mapping):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        inside = replace(
            place,
            count=_times(place.count, schema.get("maxItems")),
            uncorrelated=place.uncorrelated if keyed else place.uncorrelated or at,
        )
        yield from _problems(items, at.child("items"), inside)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        here = at.child("x-kubernetes-validations").index(index)
        malformed = list(_text_problems(rule, schema, here))
        yield from malformed
        if not malformed:
            yield from _compiled_problems(schema, rule, here, place, is_root=is_root)


def _times(count: int | None, factor: int | None) -> int | None:
    return None if count is None or factor is None else min(count * max(factor, 0), _MOST)


def _text_problems(rule: Schema, schema: Schema, at: Path) -> Errors:
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not text:
        yield at.child("rule").required("rule is not specified")
    elif message and not message.strip():
        yield at.child("message").invalid(message, "must be non-empty if specified")
    elif _has_breaks(message.strip()):
        yield at.child("message").invalid(message, "must not contain line breaks")
    elif _has_breaks(text) and not message.strip():
        yield at.child("message").required("message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        text = "messageExpression must be non-empty if specified"
        yield at.child("messageExpression").required(text)
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield at.child("reason").not_supported(rule["reason"], _REASONS)
    if path := rule.get("fieldPath"):
        if not path.strip():
            yield at.child("fieldPath").invalid(path, "must be non-empty if specified")
        if _has_breaks(path):
            yield at.child("fieldPath").invalid(path, "must not contain line breaks")
        if not _leads_to_field(schema, path):
            yield at.child("fieldPath").invalid(path, "must be a valid path")


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _leads_to_field(schema: Any, path: str) -> bool:
    if not path.startswith("."):
        return False
    for name in path[1:].split("."):
        fields = schema.get("properties") or {}
        schema = fields.get(name)
        if schema is None:
            return False
    return True


def _compiled_problems(
    schema: Schema, rule: Schema, at: Path, place: _Place, *, is_root: bool
) -> Errors:
    try:
        compiled = compile_rule(schema, {**rule, "messageExpression": ""}, is_root=is_root)
    except CompileError as error:
        detail = error.detail if error.syntax else "cel expression must evaluate to a bool"
        yield at.child("rule").invalid(_as_go(rule), detail)
        return
    yield from _cost_problems(compiled, schema, at, place, is_root=is_root)
    if rule.get("messageExpression"):
        yield from _message_problems(schema, rule, at, place, is_root=is_root)
    if compiled.uses_old and place.uncorrelated is not None:
        yield at.child("rule").invalid(
            rule["rule"],
            "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            f" {place.uncorrelated}",
        )
    elif not compiled.uses_old and rule.get("optionalOldSelf") is not None:
        yield at.child("optionalOldSelf").invalid(
            rule["optionalOldSelf"], "may not be set if oldSelf is not used in rule"
        )


def _as_go(rule: Schema) -> dict[str, Any]:
    """Return a rule as Kubernetes prints it, by the fields of its Go type."""
    return {
        "Rule": rule["rule"],
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def _cost_problems(
    compiled: Rule, schema: Schema, at: Path, place: _Place, *, is_root: bool
) -> Errors:
    count = place.count
    if count is None:
        declared = declare(schema, "selfType", is_root=is_root)
        count = largest_count(declared.smallest) if declared is not None else 1
    assert compiled.program is not None, "a rule that does not compile was reported"
    cost = min(compiled.program.cost * count, _MOST)
    if cost > RULE_LIMIT:
        yield at.child("rule").forbidden(_too_expensive("estimated rule cost", cost, RULE_LIMIT))
    place.total.add(cost, at.child("rule"))


def _message_problems(
    schema: Schema, rule: Schema, at: Path, place: _Place, *, is_root: bool
) -> Errors:
    here = at.child("messageExpression")
    try:
        message = compile_rule(schema, rule, is_root=is_root).message
    except CompileError as error:
        expected = "messageExpression must evaluate to a string"
        yield here.invalid(
            _as_go(rule), f"messageExpression {error.detail}" if error.syntax else expected
        )
        return
    cost = 0 if message is None else message.cost
    if cost > RULE_LIMIT:
        what = "estimated messageExpression cost"
        yield here.forbidden(_too_expensive(what, cost, RULE_LIMIT))
    place.total.add(cost, here)


def _too_expensive(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_HINT}"
