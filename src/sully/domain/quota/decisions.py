"""Whether the quotas of a namespace allow a write, and what is used after it.

https://kubernetes.io/docs/concepts/policy/resource-quotas/ has the rules. The texts of refusals are
those of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sully.domain.quota.evaluators import Evaluator
from sully.domain.quota.objects import ResourceQuota
from sully.domain.quota.pods import REQUESTS, Usage
from sully.machinery.compat import Compat
from sully.machinery.formats.quantity import Quantity, parse_quantity

Obj = dict[str, Any]

_ZERO = Quantity.of(0)


class Refusal(msgspec.Struct, frozen=True):
    """Why a write must not happen."""

    text: str


class Charge(msgspec.Struct, frozen=True):
    """`status.used` of a quota after the write."""

    name: str
    used: dict[str, str]


def uncounted(quota: ResourceQuota, evaluator: Evaluator) -> set[str]:
    """Return the limits for objects of a kind whose use was never counted."""
    return evaluator.matching(quota.spec.hard.keys() - quota.status.used.keys())


def decide(
    quotas: Sequence[ResourceQuota],
    evaluator: Evaluator,
    obj: Obj,
    old: Obj | None = None,
    *,
    compat: Compat,
) -> list[Charge] | Refusal:
    """Charge an object, or its change, to all quotas that concern it, or refuse it.

    In Kubernetes limits apply once the controller has written them to the status.
    """
    immediately = compat.enforces_quota_immediately
    for quota in quotas:
        refused = _unfit(quota, evaluator, obj, immediately=immediately)
        if refused is not None:
            return refused
    negative = sorted(name for name, used in evaluator.usage(obj).items() if used.sign() < 0)
    if negative:
        return Refusal(f"quota usage is negative for resource(s): {','.join(negative)}")
    for quota in quotas:
        more = {
            n: used for n, used in _delta(quota, evaluator, obj, old).items() if used.sign() > 0
        }
        refused = _exceeded(quota, more, immediately=immediately)
        if refused is not None:
            return refused
    return account(quotas, evaluator, obj, old)


def account(
    quotas: Sequence[ResourceQuota], evaluator: Evaluator, obj: Obj | None, old: Obj | None
) -> list[Charge]:
    """Return the usage of quotas after an object was written or deleted, also over a limit.

    Limits that were never counted stay so.
    """
    charges = []
    for quota in quotas:
        used, delta = quota.status.used, _delta(quota, evaluator, obj, old)
        after = {
            name: max(parse_quantity(used[name]) + more, _ZERO)
            for name, more in delta.items()
            if name in used and not (more.sign() < 0 and is_recounted(name))
        }
        if any(after.values()) or any(used[name] != "0" for name in after):
            changed = used | {name: str(amount) for name, amount in after.items()}
            charges.append(Charge(quota.metadata.name, changed))
    return charges


def is_recounted(name: str) -> bool:
    """Report whether what is released of a resource is not known from the deleted object.

    Devices may stand for an extended resource that a pod requests. How much of it a claim uses then
    depends on the pod, so the controller counts all of them again.
    """
    return name.startswith(REQUESTS) and "/" in name


def matches(quota: ResourceQuota, evaluator: Evaluator, obj: Obj) -> bool:
    """Report whether a quota limits something that objects like this one use."""
    return bool(evaluator.matching(_limited(quota))) and in_scopes(quota, evaluator, obj)


def in_scopes(quota: ResourceQuota, evaluator: Evaluator, obj: Obj) -> bool:
    """Report whether a quota counts an object."""
    return all(evaluator.in_scope(obj, requirement) for requirement in quota.requirements)


def total(quota: ResourceQuota, evaluator: Evaluator, objects: Iterable[Obj]) -> Usage:
    """Return what objects of a kind use of a quota."""
    sums: Usage = dict.fromkeys(evaluator.matching(quota.spec.hard), _ZERO)
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


def _limited(quota: ResourceQuota) -> set[str]:
    return {*quota.spec.hard, *quota.status.hard}


def _unfit(
    quota: ResourceQuota, evaluator: Evaluator, obj: Obj, *, immediately: bool
) -> Refusal | None:
    """Refuse an object without a value that is limited, or whose quota has no usage yet."""
    if not matches(quota, evaluator, obj):
        return None
    name, status = quota.metadata.name, quota.status
    limited = evaluator.matching(_limited(quota) if immediately else status.hard)
    unspecified = evaluator.unspecified(obj, limited)
    if unspecified:
        return Refusal(f"failed quota: {name}: must specify {unspecified}")
    if limited - status.used.keys():
        return Refusal(f"status unknown for quota: {name}, resources: {','.join(sorted(limited))}")
    return None


def _delta(quota: ResourceQuota, evaluator: Evaluator, obj: Obj | None, old: Obj | None) -> Usage:
    """Return how much more of each resource is used of a quota; less is negative."""
    after, before = (
        evaluator.usage(state) if state is not None and matches(quota, evaluator, state) else {}
        for state in (obj, old)
    )
    delta = {name: amount - before.get(name, _ZERO) for name, amount in after.items()}
    delta |= {name: -amount for name, amount in before.items() if name not in after}
    return {name: amount for name, amount in delta.items() if amount}


def _exceeded(quota: ResourceQuota, more: Usage, *, immediately: bool) -> Refusal | None:
    hard, used = quota.status.hard, quota.status.used
    if immediately:
        # What an admin has lowered holds before the controller has written it.
        hard = hard | {name: most for name, most in quota.spec.hard.items() if name in hard}
    exceeded = sorted(
        name
        for name, amount in more.items()
        if name in hard
        and parse_quantity(used.get(name, "0")) + amount > parse_quantity(hard[name])
    )
    if not exceeded:
        return None
    requested = _listed({name: str(more[name]) for name in exceeded}, exceeded)
    return Refusal(
        f"exceeded quota: {quota.metadata.name}, requested: {requested},"
        f" used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}"
    )


def _listed(amounts: Mapping[str, str], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)
