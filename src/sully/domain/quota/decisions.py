"""Whether the quotas of a namespace have room for a write, and what is used after it.

https://kubernetes.io/docs/concepts/policy/resource-quotas/ has the rules. The texts of refusals are
those of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sully.domain.quota.evaluators import Evaluator
from sully.domain.quota.pods import Usage
from sully.machinery.quantity import Quantity, parse_quantity

Obj = dict[str, Any]

_ZERO = Quantity.of(0)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a write must not happen."""

    text: str


@dataclass(frozen=True, slots=True)
class Charge:
    """What `status.used` of a quota says after the write."""

    name: str
    used: dict[str, str]


def uncounted(quota: Obj, evaluator: Evaluator) -> set[str]:
    """Return the limits for objects of a kind whose use was never counted."""
    hard, used = quota["spec"].get("hard") or {}, quota["status"].get("used") or {}
    return evaluator.matching(hard.keys() - used.keys())


def decide(
    quotas: Sequence[Obj],
    evaluator: Evaluator,
    obj: Obj,
    old: Obj | None = None,
    *,
    only_counted: bool,
) -> list[Charge] | Refusal:
    """Charge an object, or its change, to all quotas that concern it, or refuse it.

    With `only_counted`, a limit that was never counted does not limit yet, as in Kubernetes.
    """
    concerned: list[Obj] = []
    for quota in quotas:
        if not matches(quota, evaluator, obj):
            continue
        refused = _unfit(quota, evaluator, obj, only_counted=only_counted)
        if refused is not None:
            return refused
        concerned.append(quota)
    if not concerned:
        return []
    usage = evaluator.usage(obj)
    negative = sorted(name for name, amount in usage.items() if amount.sign() < 0)
    if negative:
        return Refusal(f"quota usage is negative for resource(s): {','.join(negative)}")
    charges = []
    for quota in concerned:
        known = old is not None and matches(quota, evaluator, old)
        more = _more(usage, evaluator.usage(old) if known and old is not None else {})
        charged = _charge(quota, more)
        if isinstance(charged, Refusal):
            return charged
        if charged is not None:
            charges.append(charged)
    return charges


def matches(quota: Obj, evaluator: Evaluator, obj: Obj) -> bool:
    """Say whether a quota limits something that objects like this one use."""
    return bool(evaluator.matching(_limited(quota))) and in_scopes(quota, evaluator, obj)


def in_scopes(quota: Obj, evaluator: Evaluator, obj: Obj) -> bool:
    """Say whether a quota counts an object."""
    spec = quota["spec"]
    wanted: list[Obj] = [
        {"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()
    ]
    wanted += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(evaluator.in_scope(obj, each) for each in wanted)


def total(quota: Obj, evaluator: Evaluator, objects: Iterable[Obj]) -> Usage:
    """Return what objects of a kind use of a quota."""
    sums: Usage = dict.fromkeys(evaluator.matching(quota["spec"].get("hard") or {}), _ZERO)
    for obj in objects:
        if in_scopes(quota, evaluator, obj):
            for name, amount in evaluator.usage(obj).items():
                if name in sums:
                    sums[name] += amount
    return sums


def same_amounts(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Compare amounts, however they are written."""
    return left.keys() == right.keys() and all(
        parse_quantity(left[name]) == parse_quantity(right[name]) for name in left
    )


def _limited(quota: Obj) -> set[str]:
    return {*(quota["spec"].get("hard") or ()), *(quota["status"].get("hard") or ())}


def _unfit(quota: Obj, evaluator: Evaluator, obj: Obj, *, only_counted: bool) -> Refusal | None:
    """Refuse an object that leaves out what is limited, or whose quota knows no numbers."""
    name, status = quota["metadata"]["name"], quota["status"]
    limited = evaluator.matching(status.get("hard") or {} if only_counted else _limited(quota))
    missing = evaluator.unspecified(obj, limited)
    if missing:
        return Refusal(f"failed quota: {name}: must specify {missing}")
    if limited - (status.get("used") or {}).keys():
        return Refusal(f"status unknown for quota: {name}, resources: {','.join(sorted(limited))}")
    return None


def _more(usage: Usage, before: Usage) -> Usage:
    left = {name: amount - before.get(name, _ZERO) for name, amount in usage.items()}
    return {name: amount for name, amount in left.items() if amount.sign() > 0}


def _charge(quota: Obj, more: Usage) -> Charge | Refusal | None:
    name, status = quota["metadata"]["name"], quota["status"]
    hard, used = status.get("hard") or {}, status.get("used") or {}
    asked = {resource: amount for resource, amount in more.items() if resource in hard}
    if not asked:
        return None
    after = {each: parse_quantity(used.get(each, "0")) + asked[each] for each in asked}
    exceeded = sorted(each for each in asked if after[each] > parse_quantity(hard[each]))
    if not exceeded:
        return Charge(name, used | {each: str(amount) for each, amount in after.items()})
    requested = _listed({each: str(asked[each]) for each in exceeded}, exceeded)
    return Refusal(
        f"exceeded quota: {name}, requested: {requested},"
        f" used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}"
    )


def _listed(amounts: Mapping[str, str], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)
