"""What to report about an eviction loop: why pods are evicted again, and what ends or avoids it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sully.domain.eviction.loops import EvictedAgain, LoopCause

_WHY: Final[Mapping[LoopCause, str]] = {
    LoopCause.TOLERATION_EXPIRES: "They tolerate {taint} for some seconds after it was added. The"
    " scheduler accepts that toleration even when it has expired, so replacements are scheduled on"
    " tainted devices and evicted immediately.",
    LoopCause.TOLERATES_NO_SCHEDULE: "They tolerate {taint} for some seconds after it was added,"
    " and NoSchedule taints with that key. The scheduler accepts that toleration even when it has"
    " expired, so replacements are scheduled on tainted devices and evicted immediately.",
    LoopCause.TOLERATION_WITHOUT_EFFECT: "Their toleration of {taint} names no effect: it allows"
    " scheduling on tainted devices, but only one that names the effect prevents eviction.",
    LoopCause.NAMED_CLAIM: "They use {claim}, which stays allocated while a pod uses it. The"
    " scheduler does not check the taints of devices that are already allocated, so replacements"
    " get the tainted devices and are evicted immediately.",
    LoopCause.UNKNOWN: "Replacements are scheduled on devices with {taint} and evicted from them.",
}
_DRY_RUN: Final = '{"spec":{"mode":"DryRun"}}'
_SCALED: Final = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"))


def why(again: EvictedAgain) -> str:
    """Return why replacements are evicted again."""
    return _WHY[again.cause].format(taint=again.taint, claim=_kind_and_name(again.claim))


def remedies(
    again: EvictedAgain,
    *,
    namespace: str,
    owner: str,
    devices: str,
    rule: str = "",
    creator: str = "",
) -> tuple[str, ...]:
    """Return what avoids a loop, or ends one that runs because of `rule`.

    `owner` is as `Deployment/train`, `devices` an argument of `sully taint device`, `creator` who
    created the rule, as `creator_of` returns it.
    """
    texts = list(_remedies(again, namespace, owner, devices, running=bool(rule)))
    return (*texts, _end_taint(rule, creator)) if rule else tuple(texts)


def _end_taint(rule: str, creator: str) -> str:
    """Return how to remove the taint of a rule: what a controller creates, it creates again."""
    noun, _, name = creator.partition(" ")
    delete = f"kubectl delete devicetaintrule {rule}"
    if noun == "maintenance" and name:
        return f"Or cancel the maintenance: sully maintenance cancel {name}"
    if noun == "policy" and name:
        dry_run = f"kubectl patch devicetaintpolicy {name} --type=merge -p '{_DRY_RUN}'"
        return (
            f"Or set policy {name} to DryRun ({dry_run}), and then delete the rule, which the"
            f" policy would create again: {delete}"
        )
    return f"Or delete the rule: {delete}"


def _remedies(
    again: EvictedAgain, namespace: str, owner: str, devices: str, *, running: bool
) -> Iterator[str]:
    if again.cause is LoopCause.NAMED_CLAIM:
        yield from _free_claim(again, namespace, owner)
    else:
        yield from _prevent_scheduling(again, devices, running=running)
        yield _change_tolerations(again, owner)


def _free_claim(again: EvictedAgain, namespace: str, owner: str) -> Iterator[str]:
    claim = _kind_and_name(again.claim)
    kind, _, name = owner.partition("/")
    if kind in _SCALED:
        scale = f"kubectl scale {kind.lower()}/{name} -n {namespace} --replicas=0"
        yield (f"Scale the pods down, so that {claim} is deallocated, and then up again: {scale}")
    else:
        yield f"Stop {_kind_and_name(owner)} until no pod uses {claim}, so that it is deallocated."
    yield "Or use a ResourceClaimTemplate instead, so that each pod has a claim of its own."


def _prevent_scheduling(again: EvictedAgain, devices: str, *, running: bool) -> Iterator[str]:
    if not again.blocking_key:
        return
    lead = "Prevent scheduling" if running else "Before that, prevent scheduling"
    yield (
        f"{lead} on these devices with a taint that the pods do not tolerate:"
        f" sully taint device {devices} {again.blocking_key}:NoSchedule"
    )


def _change_tolerations(again: EvictedAgain, owner: str) -> str:
    if again.cause is LoopCause.TOLERATION_WITHOUT_EFFECT:
        what = 'set "effect: NoExecute" in the toleration to keep the pods, or remove it'
    else:
        what = "remove the toleration, or its tolerationSeconds to keep the pods"
    kind, _, name = again.claim.partition("/")
    if not name:
        return f"Or {what}, in the claims of {_kind_and_name(owner)}."
    return (
        f"Or {what}: the spec of {kind} {name} is immutable, so create another {kind} and use it in"
        f" {_kind_and_name(owner)}."
    )


def _kind_and_name(text: str) -> str:
    return text.replace("/", " ", 1)
