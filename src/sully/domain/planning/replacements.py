"""The pods and claims that controllers create to replace evicted pods.

A pod without a controller is not replaced. Most controllers do not wait until the old pod has
terminated; those whose pods have fixed names, or that run one pod per node, do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from sully.domain.claims.lifecycle import POD_CLAIM
from sully.domain.claims.pods import PodClaim, PodClaimStatus, claim_references
from sully.domain.planning.owners import Recreation, behavior_of
from sully.domain.scheduling.host_ports import host_ports
from sully.domain.scheduling.objects import Pod, PodMetadata, PodSpec, PodStatus
from sully.domain.scheduling.volumes.topology import has_placed_volumes
from sully.machinery.memo import Memo
from sully.machinery.meta import ObjectMeta, OwnerReference
from sully.machinery.serialization.wire import amended

T = TypeVar("T")

_NEW_NAMES: Final = frozenset((Recreation.NEVER, Recreation.WHILE_TERMINATING, Recreation.AS_JOB))
"""Owners that do not wait until the pod is deleted before they create one with another name."""
SIMULATED_MARK: Final = "~"
"""Part of the names and uids of objects that exist only in a plan; no real name has it."""

ClaimSpecLookup = Callable[[str, str], ResourceClaimSpec | None]
"""Returns the spec of a new claim, by its name in the pod and the name of its template."""


_specs: Memo[tuple[str, tuple[PodClaim, ...]], PodSpec] = Memo(1024)
"""By owner and claims."""


class ReplacementPod(msgspec.Struct, frozen=True):
    """A pod that replaces another, and the claims that are created for it."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    missing_template: str = ""
    """The template that does not exist; the pod then stays Pending."""


def is_replaced(pod: Pod) -> bool:
    """Report whether a controller may create another pod when this one is evicted."""
    return behavior_of(pod).recreation is not Recreation.NEVER


def is_replaced_after_deletion(pod: Pod) -> bool:
    """Report whether its controller creates another pod only when this one has terminated."""
    return behavior_of(pod).recreation not in _NEW_NAMES


def new_name(pod: Pod, number: int = 1) -> str:
    """Return the name of a replacement that can exist beside the pod."""
    return f"{pod.metadata.name}{SIMULATED_MARK}{number}"


def slow_start_order(items: Iterable[T], owner: Callable[[T], Hashable]) -> list[T]:
    """Return what is replaced at one time in the order in which controllers create it.

    They all work at the same time, and each creates one at first, then two, then four.
    """
    batches: list[tuple[int, T]] = []
    counts: dict[Hashable, int] = {}
    for item in items:
        key = owner(item)
        counts[key] = counts.get(key, 0) + 1
        batches.append((counts[key].bit_length(), item))
    return [item for _, item in sorted(batches, key=itemgetter(0))]


def replacement_pod(
    pod: Pod,
    now: datetime,
    *,
    spec_of: ClaimSpecLookup,
    number: int = 1,
    name: str = "",
    annotations: Mapping[str, str] | None = None,
) -> ReplacementPod:
    """Return the replacement of a pod: the same spec, no node, and new claims from templates.

    With a name it is another pod of the same owner.
    """
    uid = f"{pod.metadata.uid}{SIMULATED_MARK}{name or number}"
    if not name:
        name = pod.metadata.name
        if not is_replaced_after_deletion(pod):
            name = new_name(pod, number)
    metadata = amended(
        pod.metadata,
        name=name,
        uid=uid,
        resource_version="",
        # JSON has whole seconds, and the queue sorts by them.
        creation_timestamp=now.replace(microsecond=0),
        deletion_timestamp=None,
    )
    if annotations:
        metadata = replace(metadata, annotations={**pod.metadata.annotations, **annotations})
    claims, missing_template = [], ""
    for entry, template in _templates(pod):
        spec = spec_of(entry, template)
        if spec is None:
            missing_template = template
        else:
            claims.append(_claim(metadata, entry, spec))
    statuses = tuple(
        PodClaimStatus(
            name=claim.metadata.annotations[POD_CLAIM], resource_claim_name=claim.metadata.name
        )
        for claim in claims
    )
    new = replace(
        pod,
        metadata=metadata,
        spec=_unassigned(pod),
        status=PodStatus(resource_claim_statuses=statuses),
    )
    return ReplacementPod(new, tuple(claims), missing_template)


def _unassigned(pod: Pod) -> PodSpec:
    """Return the spec of a pod without its node, the same object for equal pods of an owner.

    What is derived from it is then computed once (`scheduler/equivalence/classes.py`).
    """
    if _may_depend_on_others(pod):
        return amended(pod.spec, node_name="")
    # The volume of a token has another name in each pod.
    spec, owner = amended(pod.spec, node_name="", volumes=()), pod.owner
    key = owner.uid if owner is not None else "", spec.resource_claims
    known = _specs.get(key)
    return known if known == spec else _specs.keep(key, spec)


def _may_depend_on_others(pod: Pod) -> bool:
    """Report whether other pods, or volumes, may decide where a pod runs."""
    spec = pod.spec
    if spec.affinity is not None or spec.topology_spread_constraints or spec.scheduling_group:
        return True
    return has_placed_volumes(pod) or bool(host_ports(spec))


def _templates(pod: Pod) -> Iterator[tuple[str, str]]:
    for reference in claim_references(pod, extended=False):
        if reference.template:
            yield reference.entry, reference.template


def _claim(pod: PodMetadata, entry: str, spec: ResourceClaimSpec) -> ResourceClaim:
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.name,
        uid=pod.uid,
        controller=True,
    )
    name = f"{pod.uid}-{entry}"
    metadata = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        uid=name,
        annotations={POD_CLAIM: entry},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=metadata, spec=spec, status=ResourceClaimStatus())
