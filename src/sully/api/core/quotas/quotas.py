"""ResourceQuotas: how much the objects of one namespace may use together.

The rules on write are here. What objects use, and whether a quota allows one more, is in
domain/quota; the server asks it on every create (server/admission/quota.py).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sully.api.core.amounts import amount, is_quota_resource, quota_resource_name
from sully.api.core.checks import IMMUTABLE, NOT_AN_OPERATOR, Errors, as_go
from sully.api.core.columns import AGE, NAME, plain
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_POD_SCOPES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "CrossNamespacePodAffinity",
)
SCOPES = (*_POD_SCOPES, "PriorityClass", "VolumeAttributesClass")
_PAIRS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_OF_PODS = frozenset(
    (
        "pods",
        "cpu",
        "memory",
        "limits.cpu",
        "limits.memory",
        "requests.cpu",
        "requests.memory",
    )
)
_ALLOWED = {
    **dict.fromkeys(("PriorityClass", *_POD_SCOPES), _OF_PODS),
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
_UNSUPPORTED = "unsupported scope"
_MISFIT = "unsupported scope applied to resource"
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating,"
    " ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort,"
    " ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_NO_VALUES = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
_VALUES = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"


def _limits(amounts: Mapping[str, str] | None, at: Path) -> Errors:
    for name, text in sorted((amounts or {}).items()):
        yield from quota_resource_name(name, at.key(name))
        yield from amount(name, text, at.key(name))


def _misfits(scope: str, spec: Obj) -> int:
    """Count the limits that a scope does not apply to."""
    names = [name for name in spec.get("hard") or () if is_quota_resource(name)]
    return sum(name not in _ALLOWED.get(scope, names) for name in names)


def _conflicts(scopes: Iterable[str]) -> int:
    present = set(scopes)
    return sum(pair <= present for pair in _PAIRS)


def _scopes(spec: Obj, at: Path) -> Errors:
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in SCOPES:
            yield at.invalid(scopes, _UNSUPPORTED)
        for _ in range(_misfits(scope, spec)):
            yield at.invalid(scopes, _MISFIT)
    for _ in range(_conflicts(scopes)):
        yield at.invalid(scopes, "conflicting scopes")


def _scope_selector(spec: Obj, at: Path) -> Errors:
    selector = spec.get("scopeSelector")
    if selector is None:
        return
    expressions = selector.get("matchExpressions") or []
    for expression in expressions:
        scope = expression.get("scopeName", "")
        if scope not in SCOPES:
            yield at.child("scopeName").invalid(scope, _UNSUPPORTED)
        for _ in range(_misfits(scope, spec)):
            yield at.invalid(_shown(expressions), _MISFIT)
        yield from _operator(expression, scope, at)
    for _ in range(_conflicts(e.get("scopeName", "") for e in expressions)):
        yield at.invalid(spec.get("scopes"), "conflicting scopes")


def _shown(expressions: Iterable[Obj]) -> Obj:
    parts = [as_go(expression, "ScopeName", "Operator", "Values") for expression in expressions]
    return {"MatchExpressions": parts}


def _operator(expression: Obj, scope: str, at: Path) -> Errors:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if scope in _POD_SCOPES and operator != "Exists":
        yield at.child("operator").invalid(operator, _MUST_EXIST)
    if operator in ("In", "NotIn"):
        if not values:
            yield at.child("values").required(_NO_VALUES)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield at.child("values").invalid(values, _VALUES)
    else:
        yield at.child("operator").invalid(operator, NOT_AN_OPERATOR)


class QuotaStrategy(Strategy, frozen=True):
    """Writes to the quota itself."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status: nothing has been counted."""
        obj["status"] = {}

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check names, amounts and scopes."""
        spec, at = obj["spec"], Path("spec")
        yield from _limits(spec.get("hard"), at.child("hard"))
        yield from _scopes(spec, at.child("scopes"))
        yield from _scope_selector(spec, at.child("scopeSelector", "matchExpressions"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new limits, and that the scopes stay."""
        yield from self.validate_create(obj, ctx)
        scopes = obj["spec"].get("scopes")
        if set(scopes or ()) != set(old["spec"].get("scopes") or ()):
            yield Path("spec.scopes").invalid(scopes, IMMUTABLE)

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn about a new quota that allows more to be requested than used."""
        if old is not None:
            return
        hard = obj["spec"].get("hard") or {}
        for name in ("cpu", "memory", "storage", "ephemeral-storage"):
            bare = (name,) if name in ("cpu", "memory") else ()
            names = (f"requests.{name}", *bare)
            request, limit = (
                next((candidate for candidate in names if candidate in hard), ""),
                f"limits.{name}",
            )
            if not request or limit not in hard:
                continue
            most, least = hard[limit], hard[request]
            if parse_quantity(least) > parse_quantity(most):
                yield f"ResourceQuota {request} ({least}) should be less than {limit} ({most})"


class QuotaStatusStrategy(QuotaStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check names and amounts."""
        for field in ("hard", "used"):
            yield from _limits(obj["status"].get(field), Path("status").child(field))


def _usage(*, limits: bool) -> Any:
    def cell(obj: Obj) -> str:
        hard, used = obj["status"].get("hard") or {}, obj["status"].get("used") or {}
        return ", ".join(
            f"{name}: {used.get(name, '0')}/{hard[name]}"
            for name in sorted(hard)
            if name.startswith("limits.") == limits
        )

    return plain(cell)


RESOURCE_QUOTAS = ResourceType(
    group="",
    kind="ResourceQuota",
    plural="resourcequotas",
    singular="resourcequota",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1", delete_returns_object=True),),
    strategy=QuotaStrategy(reset=(("status",),)),
    status=QuotaStatusStrategy(reset=(("spec",),)),
    short_names=("quota",),
    columns=(
        NAME,
        Column("Request", _usage(limits=False), description="Use of everything but limits."),
        Column("Limit", _usage(limits=True), description="Use of limits of containers."),
        AGE,
    ),
)
